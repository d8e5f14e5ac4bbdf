/**
 * Configurable decisions and event data in CEL, in the format of HyperFleet's Sentinel: `message_decision` (named parameters and
 * a result) and `message_data`.
 *
 * Source of the rule: the Sentinel of HyperFleet. Parameters may reference each other; a missing condition has empty strings and
 * generation 0; data without a value is omitted. Unlike there, a result that cannot be a boolean is rejected at startup, and
 * failed evaluations are counted.
 */
import { z } from 'zod';
import { trimEndOf } from '../../core/text.ts';
import type { HyperfleetCluster } from '../cluster.ts';
import { type CelCompiler, CelError, type CelProgram, celCompiler } from './cel.ts';

// The `data` of an event: strings are CEL expressions, numbers and booleans are literals, and maps may be nested.

/** A definition of event data. */
export interface DataNode {
  readonly [name: string]: string | number | boolean | DataNode;
}

/** The event data of the running system. */
const DEFAULT_MESSAGE_DATA: DataNode = {
  id: 'resource.id',
  kind: 'resource.kind',
  href: 'resource.href',
  generation: 'resource.generation',
};

const MAX_DEPTH = 8;
const MAX_FIELDS = 200;

type Variables = Readonly<Record<string, unknown>>;
/** Returns undefined if the cluster has no such value. */
type ValueOf<T = unknown> = (variables: Variables) => T;

/**
 * Compiles a definition to a function that builds the data of an event. Events omit missing values and empty maps.
 *
 * @throws TypeError with the path of the field
 */
export function messageData(definition: DataNode) {
  const compile = celCompiler({ resource: 'map', reason: 'string' });
  let fields = 0;
  const node = (value: DataNode[string], path: string, depth: number): ValueOf => {
    fields += 1;
    if (fields > MAX_FIELDS || depth > MAX_DEPTH)
      throw new TypeError(
        `message_data is too large: expected at most ${MAX_FIELDS} fields, ${MAX_DEPTH} deep`,
      );
    if (typeof value === 'string') return jsonValueOf(compiled(compile, path, value));
    if (typeof value !== 'object') return () => value;
    const inner = map(value, path, depth + 1);
    return (variables) => {
      const values = inner(variables);
      return Object.keys(values).length === 0 ? undefined : values;
    };
  };
  const map = (value: DataNode, path: string, depth: number): ValueOf<Variables> => {
    const nodes = Object.entries(value).map(
      ([name, one]) => [name, node(one, `${path}.${name}`, depth)] as const,
    );
    return (variables) =>
      Object.fromEntries(
        nodes.map(([name, one]) => [name, one(variables)]).filter(([, one]) => one !== undefined),
      );
  };
  const root = map(definition, 'message_data', 0);
  return (cluster: HyperfleetCluster, reason: string) => root({ resource: resourceOf(cluster), reason });
}

function jsonValueOf(program: CelProgram): ValueOf {
  return (variables) => {
    try {
      return jsonOf(program.evaluate(variables));
    } catch (error) {
      if (error instanceof CelError) return undefined;
      throw error;
    }
  };
}

/** The cluster for expressions, without `spec`, which contains the pull secret. */
function resourceOf(cluster: HyperfleetCluster): Readonly<Record<string, unknown>> {
  const { id, name, generation, labels, ownerReferences, createdTime = '', updatedTime = '' } = cluster;
  const conditions = conditionsOf(cluster);
  return {
    id,
    name,
    kind: 'Cluster',
    href: `/api/hyperfleet/v1/clusters/${id}`,
    created_time: createdTime,
    updated_time: updatedTime,
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...(Object.keys(ownerReferences).length === 0 ? {} : { owner_references: ownerReferences }),
    generation: BigInt(generation),
    status: conditions.length === 0 ? {} : { conditions },
  };
}

function conditionsOf({ conditions }: HyperfleetCluster): readonly Readonly<Record<string, unknown>>[] {
  return conditions.map((condition) => ({
    ...condition,
    observed_generation: BigInt(condition.observed_generation ?? 0),
    last_updated_time: condition.last_updated_time ?? '',
    last_transition_time: condition.last_transition_time ?? '',
  }));
}

/** Converts a CEL value to JSON like the running system; undefined if JSON has no representation. */
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

/** RFC 3339 as formatted by Go, without trailing zeros. */
function timeText(time: Date): string {
  const [second = '', fraction = ''] = time.toISOString().slice(0, -1).split('.');
  const kept = trimEndOf(fraction, '0');
  return kept === '' ? `${second}Z` : `${second}.${kept}Z`;
}

export interface MessageVerdict {
  readonly publish: boolean;
  readonly reason: string;
  /** An expression failed. @default {false} */
  readonly failed?: boolean;
}

/** A compiled messages file. Without `decide`, generation and age decide. */
export type Messages = Readonly<ReturnType<typeof readMessages>>;

/** Used without a messages file. */
export const DEFAULT_MESSAGES: Messages = readMessages({});

const KEPT_NAME = 'message_decision.params has a name that CEL reserves: expected another';
const NAME = /^(?!(?:resource|now|reason|condition)$)[A-Za-z_][A-Za-z0-9_]{0,62}$/;
/** Reserved words that the library accepts as names of variables; it rejects the others. */
const RESERVED: readonly string[] = ['false', 'in', 'null', 'true'];
const NO_CONDITION = { status: '', observed_generation: 0n, last_updated_time: '', last_transition_time: '' };

const expression = z.string().min(1).max(4096);

/** `message_decision`: whether an event is published. */
export const decisionSchema = z.strictObject({
  params: z
    .record(z.string(), expression)
    .refine((params) => Object.keys(params).length <= 50, { error: 'expected at most 50 parameters' })
    .refine((params) => Object.keys(params).every((name) => NAME.test(name)), {
      error: 'expected names of letters, digits and "_", and none of resource, now, reason and condition',
    })
    .exactOptional()
    .describe('Names that the result can use'),
  result: expression.describe('Whether the event is sent'),
});

export const dataSchema: z.ZodType<DataNode, DataNode> = z.lazy(() =>
  z.record(
    z.string().min(1).max(100),
    z.union([z.string().max(4096), z.number(), z.boolean(), dataSchema], {
      error: 'expected a CEL expression or a map',
    }),
  ),
);

/**
 * Compiles the messages of a fleet or of the `--messages` file.
 *
 * @throws TypeError with the path, the problem and the expected value
 */
export function readMessages({
  messageDecision: decision,
  messageData: data,
}: {
  readonly messageDecision?: z.output<typeof decisionSchema>;
  readonly messageData?: DataNode;
}) {
  if (data !== undefined && !Object.hasOwn(data, 'id'))
    throw new TypeError('message_data: "id" is required: an event without a cluster is a dead letter');
  return {
    ...(decision === undefined ? {} : { decide: readDecision(decision) }),
    data: messageData(data ?? DEFAULT_MESSAGE_DATA),
  };
}

function readDecision({ params = {}, result }: z.output<typeof decisionSchema>) {
  const names = Object.keys(params);
  if (names.some((name) => RESERVED.includes(name))) throw new TypeError(KEPT_NAME);
  let known: ReturnType<typeof conditionsOf> = [];
  const compile = decisionCompiler(
    names,
    (type) => known.find((condition) => condition['type'] === type) ?? NO_CONDITION,
  );
  const programs = inOrder(
    Object.entries(params).map(
      ([name, text]) => [name, compiled(compile, `message_decision.params.${name}`, text)] as const,
    ),
  );
  const outcome = compiled(compile, 'message_decision.result', result);
  if (!['bool', 'dyn'].includes(outcome.type))
    throw new TypeError(`message_decision.result is of type ${outcome.type}: expected bool`);
  return (cluster: HyperfleetCluster, now: Date) => {
    known = conditionsOf(cluster);
    return verdictOf(programs, outcome, { resource: resourceOf(cluster), now });
  };
}

function decisionCompiler(
  names: readonly string[],
  condition: (type: string) => Readonly<Record<string, unknown>>,
): CelCompiler {
  const parameters = Object.fromEntries(names.map((name) => [name, 'dyn'] as const));
  try {
    return celCompiler({ ...parameters, resource: 'map', now: 'google.protobuf.Timestamp' }, condition);
  } catch {
    throw new TypeError(KEPT_NAME);
  }
}

/** @throws TypeError with the path of the expression */
function compiled(compile: CelCompiler, place: string, text: string): CelProgram {
  try {
    return compile(text);
  } catch (error) {
    throw error instanceof CelError ? new TypeError(`${place}: ${error.message}`) : error;
  }
}

type Parameter = readonly [name: string, program: CelProgram];

/** Sorts parameters by their references. @throws TypeError for a cycle */
function inOrder(parameters: readonly Parameter[]): readonly Parameter[] {
  const waiting = new Map(parameters);
  const sorted: Parameter[] = [];
  while (waiting.size > 0) {
    const ready = [...waiting].filter(([, { names }]) => ![...names].some((name) => waiting.has(name)));
    if (ready.length === 0)
      throw new TypeError(
        `message_decision.params refer to each other in a cycle: ${[...waiting.keys()].join(', ')}`,
      );
    for (const [name] of ready) waiting.delete(name);
    sorted.push(...ready);
  }
  return sorted;
}

function verdictOf(
  parameters: readonly Parameter[],
  outcome: CelProgram,
  variables: Record<string, unknown>,
): MessageVerdict {
  const no = (reason: string, failed = false): MessageVerdict => ({ publish: false, reason, failed });
  let place = '';
  try {
    for (const [name, program] of parameters) {
      place = `param "${name}"`;
      variables[name] = program.evaluate(variables);
    }
    place = 'result';
    const publish = outcome.evaluate(variables);
    if (typeof publish !== 'boolean') return no('result expression did not return bool', true);
    return publish ? { publish, reason: 'message decision matched' } : no('message decision result is false');
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    return no(`${place} evaluation failed: ${error.message}`, true);
  }
}
