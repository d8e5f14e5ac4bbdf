/** Tries again what may come right by itself. Pauses and chance are arguments, so that a test owns them. */

export interface RetryOptions {
  /** Calls in all. @default {3} */
  readonly attempts?: number;
  readonly retryable: (error: unknown) => boolean;
  /** How long the other side wants to be left alone; longer than {@link LONGEST_WAIT_MS} ends the attempts. */
  readonly waitFor?: (error: unknown) => number | undefined;
  /** Waits; rejects when the run was interrupted. */
  readonly pause: (ms: number) => Promise<void>;
  /** In [0, 1). */
  readonly random?: () => number;
}

/** A pod that waits longer than this only costs: the Job is made again later. */
export const LONGEST_WAIT_MS = 30_000;

/** Pause before the next call: 1 s, 2 s, 4 s ..., 20 % more or less. `attempt` counts from 1. */
export function backoffMs(attempt: number, random: () => number = Math.random): number {
  return Math.round(1000 * 2 ** (attempt - 1) * (0.8 + 0.4 * random()));
}

/**
 * @example
 * ```ts
 * import { retry } from './retry.ts';
 * import assert from 'node:assert/strict';
 *
 * let calls = 0;
 * const value = await retry(async () => {
 *   calls += 1;
 *   if (calls < 3) throw new Error('not yet');
 *   return 'done';
 * }, { retryable: () => true, pause: async () => undefined });
 * assert.deepEqual([value, calls], ['done', 3]);
 * ```
 */
export async function retry<T>(operation: () => Promise<T>, options: RetryOptions): Promise<T> {
  const attempts = options.attempts ?? 3;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await operation();
    } catch (error) {
      const wanted = options.waitFor?.(error) ?? 0;
      if (attempt >= attempts || wanted > LONGEST_WAIT_MS || !options.retryable(error)) throw error;
      await options.pause(Math.max(wanted, backoffMs(attempt, options.random)));
    }
  }
}
