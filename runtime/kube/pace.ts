/**
 * How fast the answers of one cluster are read. A server that says ten thousand changes a second, or lists without end, would otherwise have the whole event loop, and every
 * other cluster of the process would wait. What is not read waits at the server's end of the connection.
 */

import { pause } from '../http/retry.ts';
import { PullwrightError } from '../rules/errors.ts';
import { WANTED_PAGE_BYTES } from './list-pages.ts';
import { Places } from './semaphore.ts';

/** Changes that come at once are read at once, up to as many: a rotation of thousands of copies is one. */
const BURST = 10_000;
/** Changes of one cluster that are taken in a second for long: more than any makes. */
const MOST_A_SECOND = 500;
/** A pause is worth a timer, and what comes after it is little enough to be one turn among those of others. */
const PAUSE_MS = 50;
/** So many bytes of an answer cost as much time as a change. */
const BYTES = 64 * 1024;
/** No object is much larger. */
const STORED_BYTES = 1024 * 1024;
/** And a request as much as so many. */
const REQUEST = 20;

/** Pages of one cluster that are read at the same time: a cluster has some fifty lists, and each begins with a page. */
const PAGES_AT_ONCE = 2;
/** A list that hangs does not keep the others of its cluster waiting. */
const PATIENCE_MS = 5000;
/** A page that was too large was read up to there, and is asked for again in smaller ones. */
const TOO_LARGE = 4;

/** What a page of a list costs, in changes. */
export function costOfPage(bytes: number): number {
  return REQUEST + weighed(bytes, WANTED_PAGE_BYTES);
}

function costOfFailure(error: unknown, mostBytes: number): number {
  const isTooLarge = error instanceof PullwrightError && error.code === 'AnswerTooLarge';
  return REQUEST + (isTooLarge ? (TOO_LARGE * mostBytes) / BYTES : 0);
}

/** What a line of a watch costs, in changes. */
export function costOfLine(bytes: number): number {
  return Math.max(1, weighed(bytes, STORED_BYTES));
}

/**
 * By the third power beyond what is usual: eight megabytes take the time of all for as long as a hundred changes, and no good server sends
 * them again and again.
 */
function weighed(bytes: number, usual: number): number {
  return (bytes / BYTES) * Math.max(1, bytes / usual) ** 2;
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
 * assert.deepEqual([pace.taken(), pace.taken(), pace.taken()], [0, 0, 50]);
 * now = 200;
 * assert.deepEqual([pace.taken(), pace.taken()], [0, 50]);
 * ```
 */
export class Pace {
  readonly #burst: number;
  readonly #perSecond: number;
  readonly #now: () => number;
  readonly #places = new Places({ count: PAGES_AT_ONCE, patienceMs: PATIENCE_MS });
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

  /**
   * Asks for a page when it is its turn, and counts it.
   *
   * @param mostBytes what `ask` reads of an answer that is too large
   * @throws what `ask` throws
   */
  async page<T extends { readonly bytes: number }>(
    ask: () => Promise<T>,
    mostBytes: number,
    signal: AbortSignal,
  ): Promise<T> {
    const place = await this.#places.enter();
    try {
      for (let waitMs = this.taken(0); waitMs > 0 && !signal.aborted; waitMs = this.taken(0)) {
        place.moved();
        await pause(Math.min(waitMs, PATIENCE_MS / 2), signal);
      }
      place.moved();
      const page = await ask();
      this.taken(costOfPage(page.bytes));
      return page;
    } catch (error) {
      this.taken(costOfFailure(error, mostBytes));
      throw error;
    } finally {
      place.leave();
    }
  }
}
