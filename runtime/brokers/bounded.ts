/** Bounds on what a broker is waited for: a connection that hangs answers nothing, and nothing says that it hangs. */
import { setTimeout as sleep } from 'node:timers/promises';

/** An event that has not been confirmed by then counts as not published. It may arrive all the same, and then comes twice. */
export const PUBLISH_MS = 30_000;
/** What a broker is waited for once everything that was being handled has been: a process has half a minute to end. */
export const GOODBYE_MS = 5000;

/**
 * The end of `work`, or a rejection with code `ETIMEDOUT`. The work itself goes on, and what becomes of it then is nobody's concern.
 *
 * @example
 * ```ts
 * import { within } from './bounded.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(await within(60_000, Promise.resolve(1)), 1);
 * await assert.rejects(within(1, new Promise(() => undefined)), { code: 'ETIMEDOUT' });
 * ```
 */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const over = new AbortController();
  const silence = sleep(ms, undefined, { signal: over.signal }).then(
    () => {
      throw Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' });
    },
    // The work has ended first.
    () => work,
  );
  return Promise.race([work, silence]).finally(() => over.abort());
}
