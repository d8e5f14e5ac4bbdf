/**
 * JSON as Go's json.Marshal writes it: compact, keys sorted by their bytes at every level, `<`, `>`, `&`, U+2028 and U+2029
 * escaped, numbers as float64, the last of equal keys, no newline at the end.
 *
 * Source of the rule: encoding/json of Go 1.26 for `map[string]any`; the merged pull secret of existing clusters has these
 * bytes, so equal content gives equal bytes and no node is touched when Pullwright takes over.
 */
import { compareBytes } from './bytes.ts';
import type { JsonMember, JsonNode } from './json.ts';

/** `float64`: as Go does, with its loss. `exact`: an integer that a float64 cannot hold keeps its digits. */
export type NumberMode = 'float64' | 'exact';

/**
 * Writes `node`.
 *
 * @example
 * ```ts
 * import { encodeGoJson } from './json-encode.ts';
 * import { parseGoJson } from './json.ts';
 * import assert from 'node:assert/strict';
 *
 * const parsed = parseGoJson('{ "b": 1.50, "a": "<" }');
 * assert.equal(parsed.ok && encodeGoJson(parsed.value, 'float64'), '{"a":"\\u003c","b":1.5}');
 * ```
 */
export function encodeGoJson(node: JsonNode, numbers: NumberMode): string {
  const parts: string[] = [];
  const work: (JsonNode | string)[] = [node];
  for (let next = work.pop(); next !== undefined; next = work.pop()) {
    if (typeof next === 'string') parts.push(next);
    else if (next.kind === 'array') work.push(...bracketed('[', ']', arrayParts(next.items)));
    else if (next.kind === 'object') work.push(...bracketed('{', '}', objectParts(next.members)));
    else parts.push(encodeScalar(next, numbers));
  }
  return parts.join('');
}

/** Reversed, because the work list is taken from its end. */
function bracketed(open: string, close: string, inner: (JsonNode | string)[]): (JsonNode | string)[] {
  return [close, ...inner.reverse(), open];
}

function arrayParts(items: readonly JsonNode[]): (JsonNode | string)[] {
  return items.flatMap((item, index) => (index === 0 ? [item] : [',', item]));
}

function objectParts(members: readonly JsonMember[]): (JsonNode | string)[] {
  const [only] = members;
  if (only !== undefined && members.length === 1) return [`${encodeGoText(only.key)}:`, only.value];
  const unique = new Map(members.map((member) => [member.key, member.value]));
  return [...unique]
    .sort(([a], [b]) => compareBytes(a, b))
    .flatMap(([key, value], index) => [`${index === 0 ? '' : ','}${encodeGoText(key)}:`, value]);
}

function encodeScalar(node: JsonNode, numbers: NumberMode): string {
  if (node.kind === 'string') return encodeGoText(node.value);
  if (node.kind === 'number') return encodeNumber(node.literal, numbers);
  return node.kind === 'bool' ? String(node.value) : 'null';
}

// Printable ASCII that needs no escape.
const PLAIN = /^[ !#-%'-;=?-[\]-~]*$/;
const ESCAPED = /[<>&\u2028\u2029]/g;

/** A text in quotes. */
export function encodeGoText(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`;
  return JSON.stringify(text.toWellFormed()).replace(
    ESCAPED,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function encodeNumber(literal: string, numbers: NumberMode): string {
  const value = Number(literal);
  const lossy = !Number.isFinite(value) || (/^-?[0-9]+$/.test(literal) && !Number.isSafeInteger(value));
  if (numbers === 'exact' && lossy) return literal;
  return Object.is(value, -0) ? '-0' : String(value);
}

/** The first number that a float64 cannot hold at all: Go refuses the document for it. */
export function firstHugeNumber(node: JsonNode): string | undefined {
  const work: JsonNode[] = [node];
  for (let next = work.pop(); next !== undefined; next = work.pop()) {
    if (next.kind === 'number' && !Number.isFinite(Number(next.literal))) return next.literal;
    if (next.kind === 'array') work.push(...next.items.toReversed());
    if (next.kind === 'object') work.push(...next.members.map((member) => member.value).reverse());
  }
  return undefined;
}
