/**
 * Conditions as kstatus and kubectl understand them: `Ready` sums up; `Reconciling` and `Stalled` are there only while true.
 *
 * Source of the rule: metav1.Condition and the kstatus conventions that Flux and Argo CD read.
 */

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

/**
 * Gives the conditions that should stand on the object now: those of `wanted`, each with the transition time of the same
 * type in `present` when its status has not changed, else `now`. Types that only `present` has are dropped unless listed in
 * `keep` (conditions of other writers).
 *
 * @example
 * ```ts
 * import { nextConditions } from './conditions.ts';
 * import assert from 'node:assert/strict';
 *
 * const first = nextConditions([], [{ type: 'Ready', status: 'True', reason: 'Merged', message: 'ok' }], new Date(0));
 * const later = nextConditions(first, [{ type: 'Ready', status: 'True', reason: 'Merged', message: 'still' }], new Date(9000));
 * assert.equal(later[0]?.lastTransitionTime, '1970-01-01T00:00:00Z');
 * assert.equal(later[0]?.message, 'still');
 * ```
 */
export function nextConditions(
  present: readonly Condition[],
  wanted: readonly ConditionInput[],
  now: Date,
  keep: readonly string[] = [],
): readonly Condition[] {
  const before = new Map(present.map((condition) => [condition.type, condition]));
  const mine = wanted.map((condition): Condition => {
    const old = before.get(condition.type);
    const same = old !== undefined && old.status === condition.status;
    return {
      ...condition,
      message: condition.message.slice(0, 32768),
      lastTransitionTime: same ? old.lastTransitionTime : timestamp(now),
    };
  });
  const types = new Set(mine.map((condition) => condition.type));
  const others = present.filter((condition) => keep.includes(condition.type) && !types.has(condition.type));
  return [...mine, ...others].sort((a, b) => (a.type < b.type ? -1 : 1));
}

/** What {@link readiness} needs to know. */
export interface Readiness {
  readonly observedGeneration?: number;
  /** The reason and message of `Ready=True`. */
  readonly ready: { readonly reason: string; readonly message: string };
  /** A person must act: `Ready=False`, `Stalled=True`. */
  readonly stalled?: { readonly reason: string; readonly message: string };
  /** Not there yet, and it goes on by itself: `Ready=False`, `Reconciling=True`. */
  readonly progressing?: { readonly reason: string; readonly message: string };
}

/** The kstatus triple of one object. */
export function readiness(input: Readiness): readonly ConditionInput[] {
  const generation =
    input.observedGeneration === undefined ? {} : { observedGeneration: input.observedGeneration };
  const trouble = input.stalled ?? input.progressing;
  if (trouble === undefined) return [{ type: 'Ready', status: 'True', ...input.ready, ...generation }];
  const kind = input.stalled === undefined ? 'Reconciling' : 'Stalled';
  return [
    { type: 'Ready', status: 'False', ...trouble, ...generation },
    { type: kind, status: 'True', ...trouble, ...generation },
  ];
}

/** RFC 3339 without fractions, as the API server stores times. */
export function timestamp(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}
