import assert from 'node:assert/strict';
import { type JsonNode, parseGoJson } from '../../runtime/core/go/json.ts';

/** A value as the readers of pull secrets see it. */
export function jsonNode(value: unknown): JsonNode {
  const parsed = parseGoJson(JSON.stringify(value));
  assert.ok(parsed.ok);
  return parsed.value;
}
