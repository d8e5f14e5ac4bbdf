/**
 * When Sentinel speaks of a cluster and what it says, in the words of HyperFleet's own Sentinel: `message_decision` (named parameters and a
 * result) and `message_data` (the data of an event), both in CEL.
 *
 * Source of the rule: the Sentinel of HyperFleet. Parameters may name each other; a condition that is not there has empty texts and
 * generation 0; a part of the data that has no value is left out. Unlike there, an expression that can never give a truth value is refused
 * before anything runs, and one that has no value for a cluster is counted.
 */
import { isRecord } from '../../rules/record.ts';
import { type CelCompiler, CelError, type CelProgram, celCompiler } from './cel.ts';
import {
  type DataNode,
  DEFAULT_MESSAGE_DATA,
  type MessageData,
  type MessageResource,
  messageData,
} from './message-data.ts';

export interface MessageVerdict {
  readonly publish: boolean;
  readonly reason: string;
  /** An expression had no value. */
  readonly failed: boolean;
}

/** What a file of messages says, compiled. */
export interface Messages {
  /** Absent: by generation and age. */
  readonly decide?: (resource: MessageResource, now: Date | undefined) => MessageVerdict;
  readonly data: MessageData;
}

/** Without such a file. */
export const DEFAULT_MESSAGES: Messages = { data: messageData(DEFAULT_MESSAGE_DATA) };

const KEPT_NAME = 'message_decision.params has a name that CEL keeps for itself: expected another';
const MAX_PARAMETERS = 50;
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;
const OWN_NAMES: ReadonlySet<string> = new Set(['resource', 'now', 'reason', 'condition']);
/** Words of the language. Source: the definition of CEL. */
const RESERVED: ReadonlySet<string> = new Set(
  'as break const continue else false for function if import in let loop namespace null package return true var void while'.split(
    ' ',
  ),
);
const NO_CONDITION = { status: '', observed_generation: 0n, last_updated_time: '', last_transition_time: '' };

/**
 * Reads and compiles.
 *
 * @param value `message_decision` and `message_data`, each of which may be left out
 * @throws TypeError that names the part: what is there, what is wanted
 *
 * @example
 * ```ts
 * import { readMessages } from './messages.ts';
 * import assert from 'node:assert/strict';
 *
 * const { decide, data } = readMessages({
 *   message_decision: { params: { seen: 'condition("Reconciled").observed_generation' }, result: 'resource.generation > seen' },
 *   message_data: { id: 'resource.id', origin: '"our-sentinel"' },
 * });
 * assert.equal(decide?.({ generation: 2, conditions: [] }, new Date()).publish, true);
 * assert.deepEqual(data({ generation: 2, conditions: [], fields: { id: 'cls-1' } }, ''), { id: 'cls-1', origin: 'our-sentinel' });
 * assert.throws(() => readMessages({ message_decision: { result: 'resource.' } }), /message_decision\.result/);
 * ```
 */
export function readMessages(value: unknown): Messages {
  if (!isRecord(value))
    throw new TypeError('It is not a map: expected message_decision, message_data, or both');
  const { message_decision: decision, message_data: given, ...others } = value;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw new TypeError(`"${unknown}" is not known: expected message_decision and message_data`);
  if (decision === undefined && given === undefined)
    throw new TypeError('It says nothing: expected message_decision, message_data, or both');
  if (given !== undefined && !(isRecord(given) && Object.hasOwn(given, 'id')))
    throw new TypeError('message_data has no "id": an event that names no cluster is a dead letter');
  const data = messageData((given as DataNode | undefined) ?? DEFAULT_MESSAGE_DATA);
  return decision === undefined ? { data } : { decide: readDecision(decision), data };
}

function readDecision(value: unknown): NonNullable<Messages['decide']> {
  if (!isRecord(value)) throw new TypeError('message_decision is not a map: expected params and result');
  const { params = {}, result, ...others } = value;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw new TypeError(`message_decision.${unknown} is not known: expected params and result`);
  if (!isRecord(params))
    throw new TypeError('message_decision.params is not a map: expected names to expressions');
  const names = Object.keys(params);
  if (names.length > MAX_PARAMETERS)
    throw new TypeError(
      `message_decision.params has ${names.length} entries: expected at most ${MAX_PARAMETERS}`,
    );
  const wrong = names.find((name) => !NAME.test(name) || OWN_NAMES.has(name));
  if (wrong !== undefined)
    throw new TypeError(
      `message_decision.params has the name "${wrong}": expected letters, digits and "_", and none of ${[...OWN_NAMES].join(', ')}`,
    );
  if (names.some((name) => RESERVED.has(name))) throw new TypeError(KEPT_NAME);
  let known: ReadonlyMap<string, Readonly<Record<string, unknown>>> = new Map();
  const compile = decisionCompiler(names, (type) => known.get(type) ?? NO_CONDITION);
  const programs = inOrder(
    names.map((name) => [name, compiled(compile, `params.${name}`, params[name])] as const),
  );
  const outcome = compiled(compile, 'result', result);
  if (!['bool', 'dyn'].includes(outcome.type))
    throw new TypeError(`message_decision.result is of type ${outcome.type}: expected bool`);
  return (resource, now) => {
    known = conditionsOf(resource);
    return verdictOf(programs, outcome, resource, now);
  };
}

function decisionCompiler(
  names: readonly string[],
  condition: (type: string) => Readonly<Record<string, unknown>>,
): CelCompiler {
  const parameters = Object.fromEntries(names.map((name) => [name, 'dyn'] as const));
  try {
    return celCompiler({
      variables: { ...parameters, resource: 'map', now: 'google.protobuf.Timestamp' },
      condition,
    });
  } catch {
    throw new TypeError(KEPT_NAME);
  }
}

function compiled(compile: CelCompiler, place: string, expression: unknown): CelProgram {
  if (typeof expression !== 'string')
    throw new TypeError(`message_decision.${place} is no text: expected an expression of CEL`);
  try {
    return compile(expression);
  } catch (error) {
    throw error instanceof CelError ? new TypeError(`message_decision.${place}: ${error.message}`) : error;
  }
}

type Parameter = readonly [name: string, program: CelProgram];

/** Each after those that it names. @throws TypeError for a circle */
function inOrder(parameters: readonly Parameter[]): readonly Parameter[] {
  const waiting = new Map(parameters);
  const sorted: Parameter[] = [];
  while (waiting.size > 0) {
    const ready = [...waiting].filter(([, { names }]) => ![...names].some((name) => waiting.has(name)));
    if (ready.length === 0)
      throw new TypeError(
        `message_decision.params name each other in a circle: ${[...waiting.keys()].join(', ')}`,
      );
    for (const [name] of ready) waiting.delete(name);
    sorted.push(...ready);
  }
  return sorted;
}

function conditionsOf({
  conditions,
}: MessageResource): ReadonlyMap<string, Readonly<Record<string, unknown>>> {
  return new Map(
    conditions.map(({ type, status, ...rest }) => [
      type,
      {
        status,
        observed_generation: BigInt(rest.observed_generation ?? 0),
        last_updated_time: rest.last_updated_time ?? '',
        last_transition_time: rest.last_transition_time ?? '',
      },
    ]),
  );
}

function verdictOf(
  parameters: readonly Parameter[],
  outcome: CelProgram,
  resource: MessageResource,
  now: Date | undefined,
): MessageVerdict {
  const no = (reason: string, failed = false): MessageVerdict => ({ publish: false, reason, failed });
  if (now === undefined) return no('now time is zero');
  const variables: Record<string, unknown> = {
    resource: { ...resource.fields, generation: BigInt(resource.generation) },
    now,
  };
  let place = '';
  try {
    for (const [name, program] of parameters) {
      place = `param "${name}"`;
      variables[name] = program.evaluate(variables);
    }
    place = 'result';
    const publish = outcome.evaluate(variables);
    if (typeof publish !== 'boolean') return no('result expression did not return bool', true);
    return publish
      ? { publish, reason: 'message decision matched', failed: false }
      : no('message decision result is false');
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    return no(`${place} evaluation failed: ${error.message}`, true);
  }
}
