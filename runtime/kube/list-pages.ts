/**
 * How many objects the next page of a list asks for. Pages are counted in objects and cost memory in bytes: a page of 500 Secrets may
 * be a megabyte or half a gigabyte.
 */

/** A page is refused beyond this, and read again in smaller ones. */
export const MOST_PAGE_BYTES: number = 8 * 1024 * 1024;
/** One object alone may have more: no API server stores larger ones. */
export const MOST_OBJECT_BYTES: number = 32 * 1024 * 1024;
/** What a page should weigh. */
const WANTED_BYTES = 2 * 1024 * 1024;

/** What was asked for, and what came: bytes, or `too large`. */
export interface ReadPage {
  readonly limit: number;
  /** Objects that came before an answer was too large; as long as none is known, the next page is half of it. @default {0} */
  readonly came?: number;
  readonly answer: number | 'too large';
}

/**
 * Of what was too large, as many as weigh two megabytes, by those that came, and half of it at most; else as many objects as weigh two megabytes, at most twice as many as before and never more than `most`.
 *
 * @example
 * ```ts
 * import { nextPageSize } from './list-pages.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(nextPageSize({ limit: 500, answer: 'too large' }, 500), 250);
 * assert.equal(nextPageSize({ limit: 500, answer: 'too large', came: 12 }, 500), 3);
 * assert.equal(nextPageSize({ limit: 500, answer: 400_000 }, 500), 500);
 * assert.equal(nextPageSize({ limit: 4, answer: 6_000_000 }, 500), 1);
 * assert.equal(nextPageSize({ limit: 4, answer: 1000 }, 500), 8);
 * ```
 */
export function nextPageSize({ limit, answer, came = 0 }: ReadPage, most: number): number {
  if (answer === 'too large') {
    const light = came === 0 ? limit : (came * WANTED_BYTES) / MOST_PAGE_BYTES;
    return Math.max(1, Math.floor(Math.min(limit / 2, light)));
  }
  const fitting = Math.floor((limit * WANTED_BYTES) / Math.max(1, answer));
  return Math.max(1, Math.min(most, limit * 2, Math.max(fitting, answer <= WANTED_BYTES ? limit : 1)));
}
