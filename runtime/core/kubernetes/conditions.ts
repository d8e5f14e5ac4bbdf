/**
 * Conditions as kstatus and kubectl understand them: `Ready` sums up; `Reconciling` and `Stalled` are there only while true.
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
  /** For a person; says what to do; never holds a value of a Secret. At most 32768 characters. */
  readonly message: string;
  /** RFC 3339, whole seconds. */
  readonly lastTransitionTime: string;
  readonly observedGeneration?: number;
}

/** A condition that has no time yet. */
export type ConditionInput = Omit<Condition, 'lastTransitionTime'>;

/** The conditions in the status of an object; none where it has none. */
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
 * Gives the conditions that should stand on the object now: those of `wanted`, each with the transition time of the same
 * type in `present` when its status has not changed, else `now`. Types that only `present` has are dropped. Messages lose user info, which may hold a password.
 */
export function nextConditions(
  present: readonly Condition[],
  wanted: readonly ConditionInput[],
  now: Date,
): readonly Condition[] {
  const before = new Map(present.map((condition) => [condition.type, condition]));
  const mine = wanted.map((condition): Condition => {
    const old = before.get(condition.type);
    const same = old !== undefined && old.status === condition.status;
    return {
      ...condition,
      message: withoutUserInfo(condition.message).slice(0, 32768),
      lastTransitionTime: same ? old.lastTransitionTime : timestamp(now),
    };
  });
  return mine.sort((a, b) => (a.type < b.type ? -1 : 1));
}

/** A reason and what a person reads. */
export interface ConditionText {
  readonly reason: string;
  readonly message: string;
}

/**
 * State of an object.
 *
 * - `stalled`: a person must act
 * - `unknown`: the state is unknown
 * - `progressing`: not ready yet, continues without help
 * - `ready`: as desired
 */
export type ObjectState = 'stalled' | 'unknown' | 'progressing' | 'ready';

/**
 * `Ready` of an object by the table of its kind, with `Stalled` or `Reconciling` beside it: the first row that says something
 * decides.
 *
 * @param rows worst first: what is said, or undefined where it is not the case; the last one always says something.
 * @throws TypeError when no row says anything, which is a table without an end.
 */
export function readinessOf(
  rows: readonly (readonly [ObjectState, ConditionText | undefined])[],
  observedGeneration?: number,
): readonly ConditionInput[] {
  for (const [state, said] of rows) if (said !== undefined) return readiness(state, said, observedGeneration);
  throw new TypeError('the table of conditions has no row for what is the case');
}

const READY = { stalled: 'False', unknown: 'Unknown', progressing: 'False', ready: 'True' } as const;
const BESIDE = {
  stalled: 'Stalled',
  unknown: undefined,
  progressing: 'Reconciling',
  ready: undefined,
} as const;

/** `Ready` of an object in this state, and the conditions that kstatus expects beside it. */
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
