/**
 * How fast the answers of one cluster are read. A server that says ten thousand changes a second, or lists without end, would otherwise have the whole event loop, and every
 * other cluster of the process would wait. What is not read waits at the server's end of the connection.
 */

/** Changes that come at once are read at once, up to as many: a rotation of thousands of copies is one. */
const BURST = 10_000;
/** Changes of one cluster that are taken in a second for long: more than any makes. */
const MOST_A_SECOND = 500;
/** A pause is worth a timer. */
const PAUSE_MS = 200;
/** So many bytes of an answer cost as much time as a change. */
const BYTES = 64 * 1024;
/** And a request as much as so many. */
const REQUEST = 20;

/** What a page of a list costs, in changes. */
export function costOfPage(bytes: number): number {
  return REQUEST + bytes / BYTES;
}

/** What a line of a watch costs, in changes. */
export function costOfLine(bytes: number): number {
  return Math.max(1, bytes / BYTES);
}

/**
 * Counts what was taken: a bucket that fills again by time.
 *
 * @example
 * ```ts
 * import { Pace } from './pace.ts';
 * import assert from 'node:assert/strict';
 *
 * let now = 0;
 * const pace = new Pace({ burst: 3, perSecond: 10 }, () => now);
 * assert.deepEqual([pace.taken(), pace.taken(), pace.taken()], [0, 0, 200]);
 * now = 200;
 * assert.deepEqual([pace.taken(), pace.taken()], [0, 200]);
 * ```
 */
export class Pace {
  readonly #burst: number;
  readonly #perSecond: number;
  readonly #now: () => number;
  #at: number;
  #left: number;

  /**
   * @param limits changes at once, and in a second from then on
   * @param now milliseconds that only grow
   */
  constructor(
    {
      burst = BURST,
      perSecond = MOST_A_SECOND,
    }: { readonly burst?: number; readonly perSecond?: number } = {},
    now: () => number = () => performance.now(),
  ) {
    [this.#burst, this.#perSecond, this.#now] = [burst, perSecond, now];
    [this.#at, this.#left] = [now(), burst];
  }

  /** One more was taken, or what costs as much as `changes`; gives the milliseconds to wait before the next. */
  taken(changes = 1): number {
    const now = this.#now();
    const refilled = this.#left + ((now - this.#at) * this.#perSecond) / 1000;
    this.#left = Math.min(this.#burst, refilled) - changes;
    this.#at = now;
    return this.#left > 0 ? 0 : Math.max(PAUSE_MS, (-this.#left * 1000) / this.#perSecond);
  }
}
