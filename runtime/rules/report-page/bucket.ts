/** A token bucket: so many at once, so many a second. */

export interface BucketOptions {
  /** A second. */
  readonly rate: number;
  /** At once, after a rest. */
  readonly burst: number;
}

/**
 * Counts what is taken.
 *
 * @example
 * ```ts
 * import { Bucket } from './bucket.ts';
 * import assert from 'node:assert/strict';
 *
 * const bucket = new Bucket({ rate: 1, burst: 2 }, 0);
 * assert.deepEqual([bucket.take(0), bucket.take(0), bucket.take(0), bucket.take(1000)], [true, true, false, true]);
 * ```
 */
export class Bucket {
  readonly #options: BucketOptions;
  #left: number;
  #at: number;

  /** @param now milliseconds that only grow */
  constructor(options: BucketOptions, now: number) {
    this.#options = options;
    this.#left = options.burst;
    this.#at = now;
  }

  /** Takes one; false when there is none. */
  take(now: number): boolean {
    const { rate, burst } = this.#options;
    this.#left = Math.min(burst, this.#left + ((now - this.#at) / 1000) * rate);
    this.#at = now;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
