/** Waiting times: exponential, bounded, with jitter, so that many clients do not knock in step. */

export { retryAfterMs } from '../http/retry-after.ts';

export interface BackOff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/**
 * Milliseconds to wait before try number `attempt` (0 is the first repetition): half of the exponential time plus a random
 * half.
 *
 * @param random in [0, 1)
 * @example
 * ```ts
 * import { backOffMs } from './back-off.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(backOffMs({ firstMs: 100, maxMs: 5000 }, 0, 0), 50);
 * assert.equal(backOffMs({ firstMs: 100, maxMs: 5000 }, 20, 0.5), 3750);
 * ```
 */
export function backOffMs({ firstMs, maxMs }: BackOff, attempt: number, random: number): number {
  const whole = Math.min(maxMs, firstMs * 2 ** Math.min(attempt, 40));
  return whole / 2 + (whole / 2) * random;
}

/** `ms`, up to `share` more: spreads what would otherwise happen at once. */
export function jitterMs(ms: number, share: number, random: number): number {
  return ms * (1 + share * random);
}

/** Resolves after `ms`, or at once when `signal` is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end, { once: true });
  });
}
