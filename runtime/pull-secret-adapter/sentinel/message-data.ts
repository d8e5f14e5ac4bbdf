/** The `data` of an event, out of expressions: texts are CEL, numbers and truth values stand for themselves, maps lie inside each other. */
import { isRecord } from '../../rules/record.ts';
import { trimEndOf } from '../../rules/text/trim.ts';
import type { ApiCondition } from '../cluster.ts';
import { CelError, type CelProgram, celCompiler } from './cel.ts';

/** A cluster as the expressions see it. */
export interface MessageResource {
  readonly generation: number;
  readonly conditions: readonly ApiCondition[];
  /** Everything else that expressions may name: `id`, `kind`, `href`, `labels` and so on. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** A definition, as it is written. */
export interface DataNode {
  readonly [name: string]: string | number | boolean | DataNode;
}

/** Makes the data of an event. */
export type MessageData = (resource: MessageResource, reason: string) => Readonly<Record<string, unknown>>;

/** What the running system sends about a cluster. */
export const DEFAULT_MESSAGE_DATA: DataNode = {
  id: 'resource.id',
  kind: 'resource.kind',
  href: 'resource.href',
  generation: 'resource.generation',
};

const MAX_DEPTH = 8;
const MAX_FIELDS = 200;

type Compiled =
  | { readonly literal: number | boolean }
  | { readonly program: CelProgram }
  | { readonly children: CompiledMap };
type CompiledMap = readonly (readonly [name: string, node: Compiled])[];

/**
 * Compiles a definition. What has no value for a cluster is left out of its events, and so is a map that would be empty.
 *
 * @throws TypeError that names the field
 *
 * @example
 * ```ts
 * import { messageData } from './message-data.ts';
 * import assert from 'node:assert/strict';
 *
 * const data = messageData({ id: 'resource.id', owner: { id: 'resource.owner_references.id' }, version: 1 });
 * assert.deepEqual(data({ generation: 1, conditions: [], fields: { id: 'cls-1' } }, ''), { id: 'cls-1', version: 1 });
 * ```
 */
export function messageData(definition: DataNode): MessageData {
  const compile = celCompiler({ variables: { resource: 'map', reason: 'string' } });
  let fields = 0;
  const node = (value: unknown, path: string, depth: number): Compiled => {
    fields += 1;
    if (fields > MAX_FIELDS || depth > MAX_DEPTH)
      throw new TypeError(
        `message_data is too large: expected at most ${MAX_FIELDS} fields, ${MAX_DEPTH} deep`,
      );
    if (typeof value === 'number' || typeof value === 'boolean') return { literal: value };
    if (isRecord(value)) return { children: map(value, path, depth + 1) };
    if (typeof value !== 'string')
      throw new TypeError(
        `${path} is ${value === null ? 'empty' : 'a list'}: expected an expression of CEL, or a map`,
      );
    try {
      return { program: compile(value) };
    } catch (error) {
      throw error instanceof CelError ? new TypeError(`${path}: ${error.message}`) : error;
    }
  };
  // The running system writes the names in their order, too.
  const map = (value: Readonly<Record<string, unknown>>, path: string, depth: number): CompiledMap =>
    Object.keys(value)
      .sort()
      .map((name) => [name, node(value[name], `${path}.${name}`, depth)] as const);
  const root = map(definition, 'message_data', 0);
  return (resource, reason) => evaluateMap(root, { resource: resourceOf(resource), reason });
}

function resourceOf({ generation, conditions, fields }: MessageResource): Readonly<Record<string, unknown>> {
  const seen = conditions.map(({ observed_generation: observed = 0, ...condition }) => ({
    ...condition,
    observed_generation: BigInt(observed),
  }));
  const status = conditions.length === 0 ? {} : { conditions: seen };
  return { ...fields, generation: BigInt(generation), status };
}

function evaluateMap(
  nodes: CompiledMap,
  variables: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const data: Record<string, unknown> = {};
  for (const [name, node] of nodes) {
    const value = evaluate(node, variables);
    if (value !== undefined) data[name] = value;
  }
  return data;
}

function evaluate(node: Compiled, variables: Readonly<Record<string, unknown>>): unknown {
  if ('literal' in node) return node.literal;
  if ('children' in node) {
    const inner = evaluateMap(node.children, variables);
    return Object.keys(inner).length === 0 ? undefined : inner;
  }
  try {
    return jsonOf(node.program.evaluate(variables));
  } catch (error) {
    if (error instanceof CelError) return undefined;
    throw error;
  }
}

/** As the running system writes values of CEL; undefined for what JSON has no form for. */
function jsonOf(value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (value === null || ['string', 'number', 'boolean'].includes(typeof value)) return value ?? undefined;
  if (value instanceof Date) return timeText(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (Array.isArray(value)) return value.map(jsonOf);
  if (value instanceof Map) return jsonOf(Object.fromEntries(value));
  if (Object.getPrototypeOf(value) !== Object.prototype) return undefined;
  return Object.fromEntries(Object.entries(value as object).map(([name, one]) => [name, jsonOf(one)]));
}

/** As Go writes RFC 3339: no zeros at the end of a second. */
function timeText(time: Date): string {
  const [second = '', fraction = ''] = time.toISOString().slice(0, -1).split('.');
  const kept = trimEndOf(fraction, '0');
  return kept === '' ? `${second}Z` : `${second}.${kept}Z`;
}
