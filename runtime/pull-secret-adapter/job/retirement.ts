/**
 * Which older versions of a secret go, and when the next one is due: two credentials are valid for a time after a rotation, and no longer
 * when somebody revokes the older ones. Pure.
 *
 * Source of the rule: the rotation design of HyperFleet (a window in which both credentials work; `force_immediate`), and Google's
 * documentation of delayed destruction (`versionDestroyTtl`).
 */

export interface RetirementPolicy {
  /** So many older versions stay at most. */
  readonly keepVersions: number;
  /** So long one stays after it was replaced; undefined: until `keepVersions` pushes it out. */
  readonly previousForSeconds: number | undefined;
  /** So long after that Google destroys it; 0: it stays disabled. */
  readonly destroyAfterSeconds: number;
}

/** A version that is enabled, by its number, and when it was made. */
export interface DatedVersion {
  readonly number: number;
  /** Milliseconds since 1970; NaN when unknown: such a version is taken to have been made just now. */
  readonly madeAt: number;
}

export interface Retirement {
  /** Older versions that may stay, the newest first. */
  readonly stay: readonly number[];
  /** Older versions that go now, the newest first. */
  readonly go: readonly number[];
  /** When the next of those that stay has to go, milliseconds since 1970. */
  readonly nextAt: number | undefined;
}

/** What is enabled, what of it is current, what has an alias and so is in use under it, and the time. */
export interface RetirementState {
  readonly enabled: readonly DatedVersion[];
  readonly current: number;
  readonly named: ReadonlySet<number>;
  readonly now: number;
}

/**
 * Judges every older version. A version counts as replaced when the next one that can be read was made.
 *
 * @example
 * ```ts
 * import { planRetirement } from './retirement.ts';
 * import assert from 'node:assert/strict';
 *
 * const enabled = [{ number: 1, madeAt: 0 }, { number: 2, madeAt: 1000 }, { number: 3, madeAt: 9000 }];
 * const state = { enabled, current: 3, named: new Set<number>(), now: 12_000 };
 * const week = { keepVersions: 5, previousForSeconds: 10, destroyAfterSeconds: 0 };
 * assert.deepEqual(planRetirement(week, state), { stay: [2], go: [1], nextAt: 19_000 });
 * ```
 */
export function planRetirement(policy: RetirementPolicy, state: RetirementState): Retirement {
  const { current, named, now } = state;
  const sorted = [...state.enabled].sort((a, b) => b.number - a.number);
  const stay: number[] = [];
  const go: number[] = [];
  let nextAt: number | undefined;
  for (const [index, { number }] of sorted.entries()) {
    if (number >= current || named.has(number)) continue;
    const until = endOf(policy, sorted[index - 1], now);
    if (stay.length >= policy.keepVersions || until <= now) {
      go.push(number);
      continue;
    }
    stay.push(number);
    if (Number.isFinite(until)) nextAt = Math.min(nextAt ?? until, until);
  }
  return { stay, go, nextAt };
}

/** Until when a version stays whose successor is `next`. */
function endOf(
  { previousForSeconds }: RetirementPolicy,
  next: DatedVersion | undefined,
  now: number,
): number {
  if (previousForSeconds === undefined) return Number.POSITIVE_INFINITY;
  const replacedAt = next === undefined || Number.isNaN(next.madeAt) ? now : next.madeAt;
  return replacedAt + previousForSeconds * 1000;
}

/**
 * The policy in short, so that a change of it is seen.
 *
 * @example
 * ```ts
 * import { policyText } from './retirement.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(policyText({ keepVersions: 1, previousForSeconds: 604_800, destroyAfterSeconds: 0 }), 'keep-1.for-604800.destroy-0');
 * ```
 */
export function policyText({
  keepVersions,
  previousForSeconds,
  destroyAfterSeconds,
}: RetirementPolicy): string {
  return `keep-${keepVersions}.for-${previousForSeconds ?? 'ever'}.destroy-${destroyAfterSeconds}`;
}
