/**
 * The delays of client-go's default controller rate limiter: per key exponential, overall a token bucket; the longer one counts.
 *
 * A 403 is tried again every ten seconds and not ever more rarely: rights are usually missing because somebody is just
 * installing or repairing them.
 */
import { exponentialMs } from '../rules/back-off.ts';

export interface RateLimitOptions {
  /** Milliseconds that never go back. */
  readonly now: () => number;
  /** @default {5} */
  readonly firstMs?: number;
  /** @default {1000000} */
  readonly maxMs?: number;
  /** Per second. @default {10} */
  readonly rate?: number;
  /** @default {100} */
  readonly burst?: number;
}

/**
 * @example
 * ```ts
 * import { RateLimiter } from './rate-limit.ts';
 * import assert from 'node:assert/strict';
 *
 * const limiter = new RateLimiter({ now: () => 0 });
 * assert.deepEqual([1, 2, 3].map(() => limiter.delayOf('a')), [5, 10, 20]);
 * limiter.forget('a');
 * assert.equal(limiter.delayOf('a'), 5);
 * ```
 */
export class RateLimiter {
  readonly #options: Required<RateLimitOptions>;
  readonly #failures = new Map<string, number>();
  #tokens: number;
  #at: number;

  constructor(options: RateLimitOptions) {
    this.#options = { firstMs: 5, maxMs: 1_000_000, rate: 10, burst: 100, ...options };
    this.#tokens = this.#options.burst;
    this.#at = options.now();
  }

  /** Milliseconds until the next try of `id`; counts one failure. */
  delayOf(id: string): number {
    const failures = this.#failures.get(id) ?? 0;
    this.#failures.set(id, failures + 1);
    return Math.max(exponentialMs(this.#options, failures), this.#take());
  }

  /** How often `id` failed in a row. */
  failuresOf(id: string): number {
    return this.#failures.get(id) ?? 0;
  }

  forget(id: string): void {
    this.#failures.delete(id);
  }

  /** Takes a token, on credit if need be; gives the milliseconds until it is there. */
  #take(): number {
    const { now, rate, burst } = this.#options;
    const at = now();
    // A clock that went back gives nothing, and takes nothing.
    this.#tokens = Math.min(burst, this.#tokens + (Math.max(0, at - this.#at) * rate) / 1000);
    this.#at = at;
    this.#tokens -= 1;
    return this.#tokens >= 0 ? 0 : (-this.#tokens * 1000) / rate;
  }
}
