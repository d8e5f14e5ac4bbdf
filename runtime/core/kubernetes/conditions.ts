/**
 * Conditions that kstatus and kubectl understand: `Ready` is the summary; `Reconciling` and `Stalled` exist only while true.
 *
 * Source of the rule: metav1.Condition and the kstatus conventions that Flux and Argo CD read.
 */
import { isRecord, recordOf } from '../record.ts';
import { withoutUserInfo } from '../text.ts';
import type { KubeObject } from './object.ts';

/** A metav1.Condition. */
export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  /** CamelCase, stable. */
  readonly reason: string;
  /** For users: says what to do, and never contains a value of a Secret. At most 32768 characters. */
  readonly message: string;
  /** RFC 3339, whole seconds. */
  readonly lastTransitionTime: string;
  readonly observedGeneration?: number;
}

/** A condition without its transition time. */
export type ConditionInput = Omit<Condition, 'lastTransitionTime'>;

/** The conditions in the status of an object; empty if there are none. */
export function conditionsIn(object: Pick<KubeObject, 'status'> | undefined): readonly Condition[] {
  const { conditions } = recordOf(object?.status);
  return Array.isArray(conditions) ? conditions.filter((one): one is Condition => isRecord(one)) : [];
}

/** The condition of a type. */
export function conditionIn(
  object: Pick<KubeObject, 'status'> | undefined,
  type: string,
): Condition | undefined {
  return conditionsIn(object).find((one) => one.type === type);
}

/**
 * The conditions to write: those of `wanted`, with the transition time from `present` if the status is unchanged, otherwise
 * `now`. Types that only `present` has are dropped. User info, which may contain a password, is removed from messages.
 */
export function nextConditions(
  present: readonly Condition[],
  wanted: readonly ConditionInput[],
  now: Date,
): readonly Condition[] {
  const before = new Map(present.map((condition) => [condition.type, condition]));
  const mine = wanted.map((condition): Condition => {
    const old = before.get(condition.type);
    return {
      ...condition,
      message: withoutUserInfo(condition.message).slice(0, 32768),
      lastTransitionTime: old?.status === condition.status ? old.lastTransitionTime : timestamp(now),
    };
  });
  return mine.sort((a, b) => (a.type < b.type ? -1 : 1));
}

/** Reason and message of a condition. */
export type ConditionText = Pick<Condition, 'reason' | 'message'>;

/**
 * State of an object.
 *
 * - `stalled`: needs action by a user
 * - `unknown`: not known
 * - `progressing`: not ready yet, continues without action
 * - `ready`: as desired
 */
export type ObjectState = 'stalled' | 'unknown' | 'progressing' | 'ready';

/**
 * `Ready` of an object by the table of its kind, with `Stalled` or `Reconciling` beside it. The first row with a text decides.
 *
 * @param rows worst first; undefined if the row does not apply. The last row must apply.
 * @throws TypeError if no row applies
 */
export function readinessOf(
  rows: readonly (readonly [ObjectState, ConditionText | undefined])[],
  observedGeneration?: number,
): readonly ConditionInput[] {
  for (const [state, said] of rows) if (said !== undefined) return readiness(state, said, observedGeneration);
  throw new TypeError('the table of conditions has no row for this state');
}

const READY = { stalled: 'False', unknown: 'Unknown', progressing: 'False', ready: 'True' } as const;
const BESIDE: Partial<Record<ObjectState, string>> = { stalled: 'Stalled', progressing: 'Reconciling' };

/** `Ready` for this state, with the conditions that kstatus expects beside it. */
export function readiness(
  state: ObjectState,
  { reason, message }: ConditionText,
  observedGeneration?: number,
): readonly ConditionInput[] {
  const text = { reason, message, ...(observedGeneration === undefined ? {} : { observedGeneration }) };
  const ready = { type: 'Ready', status: READY[state], ...text } as const;
  const beside = BESIDE[state];
  return beside === undefined ? [ready] : [ready, { type: beside, status: 'True', ...text }];
}

/** RFC 3339 without fractions, as the API server stores times. */
export function timestamp(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}
