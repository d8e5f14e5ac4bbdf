/** The header `Retry-After`: seconds, or a date. Source of the rule: RFC 9110. */

/** Thirty years: so long no answer is waited for, and a number of any length is still one. */
const MOST_SECONDS = 1_000_000_000;

/**
 * How long to wait, in milliseconds; undefined when the header says nothing that can be read.
 *
 * @param header value of the header
 * @param now milliseconds since 1970
 *
 * @example
 * ```ts
 * import { retryAfterMs } from './retry-after.ts';
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
