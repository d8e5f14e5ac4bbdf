/**
 * How fast one watch is read. A server that says ten thousand changes a second would otherwise have the whole event loop, and every
 * other cluster of the process would wait. What is not read waits at the server's end of the connection.
 */

/** Changes of one watch that are taken in a second: more than any cluster makes for long. */
export const MOST_CHANGES_A_SECOND = 2000;

/**
 * Counts what was taken, second by second.
 *
 * @example
 * ```ts
 * import { Pace } from './pace.ts';
 * import assert from 'node:assert/strict';
 *
 * let now = 0;
 * const pace = new Pace(2, () => now);
 * assert.deepEqual([pace.taken(), pace.taken()], [0, 1000]);
 * now = 1000;
 * assert.equal(pace.taken(), 0);
 * ```
 */
export class Pace {
  readonly #most: number;
  readonly #now: () => number;
  #since: number;
  #count = 0;

  /**
   * @param most in a second
   * @param now milliseconds that only grow
   */
  constructor(most: number = MOST_CHANGES_A_SECOND, now: () => number = () => performance.now()) {
    this.#most = most;
    this.#now = now;
    this.#since = now();
  }

  /** One more was taken; gives the milliseconds to wait before the next. */
  taken(): number {
    const now = this.#now();
    if (now - this.#since >= 1000) [this.#since, this.#count] = [now, 0];
    this.#count += 1;
    return this.#count < this.#most ? 0 : 1000 - (now - this.#since);
  }
}
