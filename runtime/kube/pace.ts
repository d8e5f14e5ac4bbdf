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
/** And a page that goes on without having brought much: forty at once, and two a second. */
const THIN = 250;

/** Pages of one cluster that are read at the same time: a cluster has some fifty lists, and each begins with a page. */
const PAGES_AT_ONCE = 2;
/** A list that hangs does not keep the others of its cluster waiting. */
const PATIENCE_MS = 5000;
/** A page that was too large was read up to there, and is asked for again in smaller ones: a list of heavy objects begins so. */
const PAGE_TOO_LARGE = 512;
/** No API server has one object that is too large: whoever sends it sends it again. As much as a page or a line of eight megabytes. */
const OBJECT_TOO_LARGE = 8192;
/** A minute, whatever was read: longer would tell nobody when the cluster is read again. */
const MOST_DEBT = 30_000;

/**
 * What a page of a list costs, in changes.
 *
 * @param isThin there are more pages, and this one has few of the objects that were asked for: no API server gives many such
 */
export function costOfPage(bytes: number, isThin = false): number {
  return (isThin ? THIN : REQUEST) + (bytes / BYTES) * Math.max(1, bytes / WANTED_PAGE_BYTES) ** 3;
}

/**
 * What a request costs that failed, in changes.
 *
 * @param came objects that came before: none of an answer that is too large is one that no API server gives
 */
export function costOfFailure(error: unknown, came: number = 0): number {
  if (!(error instanceof PullwrightError) || error.code !== 'AnswerTooLarge') return REQUEST;
  return REQUEST + (came > 0 ? PAGE_TOO_LARGE : OBJECT_TOO_LARGE);
}

/**
 * What a line of a watch costs, in changes. As with pages, by a high power beyond what is usual: eight megabytes take the time of all for as
 * long as a hundred changes, and no good server sends them again and again.
 */
export function costOfLine(bytes: number): number {
  return Math.max(1, (bytes / BYTES) * Math.max(1, bytes / STORED_BYTES) ** 2);
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
    this.#left = Math.max(-MOST_DEBT, Math.min(this.#burst, refilled) - changes);
    this.#at = now;
    return this.#left > 0 ? 0 : Math.max(PAUSE_MS, (-this.#left * 1000) / this.#perSecond);
  }

  /**
   * Resolves when something may be asked for, or when `signal` is aborted.
   *
   * @param moved called again and again until then
   */
  async turn(signal: AbortSignal, moved?: () => void): Promise<void> {
    for (let waitMs = this.taken(0); waitMs > 0 && !signal.aborted; waitMs = this.taken(0)) {
      moved?.();
      await pause(Math.min(waitMs, PATIENCE_MS / 2), signal);
    }
    moved?.();
  }

  /**
   * Asks for a page when it is its turn, and counts it.
   *
   * @param ask counts each object that comes
   * @param limit objects that it asks for
   * @throws what `ask` throws
   */
  async page<T extends { readonly bytes: number; readonly next?: string }>(
    ask: (count: () => void) => Promise<T>,
    limit: number,
    signal: AbortSignal,
  ): Promise<T> {
    let came = 0;
    const place = await this.#places.enter();
    try {
      await this.turn(signal, () => place.moved());
      const page = await ask(() => void (came += 1));
      this.taken(costOfPage(page.bytes, page.next !== undefined && came < limit / 10));
      return page;
    } catch (error) {
      this.taken(costOfFailure(error, came));
      throw error;
    } finally {
      place.leave();
    }
  }
}
