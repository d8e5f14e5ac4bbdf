/** Trying again what may come right by itself, as late as the server asks. Pauses are arguments, so that a test owns them. */

/** Statuses after which the same request may succeed. */
const PASSING: readonly number[] = [408, 429, 500, 502, 503, 504];

/** Whether the same request may be answered otherwise a moment later. */
export function isPassingStatus(status: number): boolean {
  return PASSING.includes(status);
}

/** One try: what it gave, or what it threw. */
export type Tried<T> = { readonly value: T } | { readonly error: unknown };

export interface RetryOptions<T> {
  /** Calls in all. */
  readonly tries: number;
  /** Pause after try `round` (0 is the first), on top of what the server asks for; see `rules/back-off.ts`. */
  readonly waitMs: (round: number) => number;
  /** A server that wants to be left alone for longer is not asked again here: whoever called has a rhythm of its own. */
  readonly longestWaitMs: number;
  /** Undefined when another try is of no use; else how long the server wants to be left alone, if it says. */
  readonly again: (tried: Tried<T>) => { readonly afterMs?: number | undefined } | undefined;
  /** Waits; rejects when the run was interrupted. */
  readonly pause: (ms: number) => Promise<void>;
}

/**
 * The last try's value.
 *
 * @throws what the last try threw
 * @example
 * ```ts
 * import { retry } from './retry.ts';
 * import assert from 'node:assert/strict';
 *
 * const pauses: number[] = [];
 * let calls = 0;
 * const status = await retry(async () => (calls++ === 0 ? 503 : 200), {
 *   tries: 3,
 *   waitMs: () => 50,
 *   longestWaitMs: 10_000,
 *   again: (tried) => ('value' in tried && tried.value === 503 ? { afterMs: 2000 } : undefined),
 *   pause: async (ms) => void pauses.push(ms),
 * });
 * assert.deepEqual([status, pauses], [200, [2050]]);
 * ```
 */
export async function retry<T>(attempt: () => Promise<T>, options: RetryOptions<T>): Promise<T> {
  for (let round = 0; ; round += 1) {
    const tried = await attempt().then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    const next = round + 1 >= options.tries ? undefined : options.again(tried);
    if (next === undefined || (next.afterMs ?? 0) > options.longestWaitMs) {
      if ('value' in tried) return tried.value;
      throw tried.error;
    }
    await options.pause((next.afterMs ?? 0) + options.waitMs(round));
  }
}

/** Thirty years: so long no answer is waited for, and a number of any length is still one. */
const MOST_SECONDS = 1_000_000_000;

/**
 * How long the header `Retry-After` says to wait, in milliseconds; undefined when it says nothing that can be read.
 * Source of the rule: RFC 9110: seconds, or a date.
 *
 * @param header value of the header
 * @param now milliseconds since 1970
 *
 * @example
 * ```ts
 * import { retryAfterMs } from './retry.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(retryAfterMs('17', 0), 17_000);
 * assert.equal(retryAfterMs('Thu, 01 Jan 1970 00:01:00 GMT', 30_000), 30_000);
 * assert.equal(retryAfterMs('soon', 0), undefined);
 * ```
 */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d+$/.test(header)) return Math.min(Number(header), MOST_SECONDS) * 1000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
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
