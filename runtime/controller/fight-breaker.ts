/**
 * Notices that somebody else undoes our writes: the same object set to the same content again and again. Two programs that
 * correct each other load the API server, roll pods, and help nobody; so the younger one gives in and says who it is.
 */

/** Corrections to one content within {@link WINDOW_MS} that are taken for people's edits. */
const TOLERATED = 5;
const WINDOW_MS = 120_000;
/** After giving in, one more try after this time. */
const HOLD_MS = 600_000;

interface Corrections {
  readonly digest: string;
  readonly times: readonly number[];
  /** Given in until then. */
  readonly heldUntil?: number;
}

/**
 * @example
 * ```ts
 * import { FightBreaker } from './fight-breaker.ts';
 * import assert from 'node:assert/strict';
 *
 * let now = 0;
 * const breaker = new FightBreaker(() => now);
 * const answers = [1, 2, 3, 4, 5, 6].map(() => breaker.allows('DaemonSet/a', 'same'));
 * assert.deepEqual(answers, [true, true, true, true, true, false]);
 * assert.equal(breaker.allows('DaemonSet/a', 'other'), true);
 * ```
 */
export class FightBreaker {
  readonly #now: () => number;
  readonly #corrections = new Map<string, Corrections>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Whether `object` may be set to the content of `digest`; counts it if so. */
  allows(object: string, digest: string): boolean {
    const now = this.#now();
    const known = this.#corrections.get(object);
    const before: Corrections = known?.digest === digest ? known : { digest, times: [] };
    if (before.heldUntil !== undefined && now < before.heldUntil) return false;
    const times = [...before.times.filter((at) => now - at < WINDOW_MS), now];
    const givesIn = times.length > TOLERATED;
    const held = givesIn || before.heldUntil !== undefined ? { heldUntil: now + HOLD_MS } : {};
    this.#corrections.set(object, { digest, times, ...held });
    return !givesIn;
  }
}
