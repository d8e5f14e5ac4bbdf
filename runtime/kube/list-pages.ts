/**
 * How many objects the next page of a list asks for. Pages are counted in objects and cost memory in bytes: a page of 500 Secrets may
 * be a megabyte or half a gigabyte.
 */

import { PullwrightError } from '../rules/errors.ts';
import type { ListPage } from './client.ts';

/** A page is refused beyond this, and read again in smaller ones. */
export const MOST_PAGE_BYTES: number = 8 * 1024 * 1024;
/** One object alone may have more: no API server stores larger ones. */
export const MOST_OBJECT_BYTES: number = 32 * 1024 * 1024;
/** What a page should weigh. */
export const WANTED_PAGE_BYTES: number = 2 * 1024 * 1024;

/** What was asked for, and what came: bytes, or `too large`. */
export interface ReadPage {
  readonly limit: number;
  /** Objects that came before an answer was too large; where it is not known, the next page is half of it. */
  readonly came?: number;
  readonly answer: number | 'too large';
}

/**
 * Of what was too large, as many as weigh two megabytes, by those that came, and half of it at most: one where not even the first came whole. Else as many objects as weigh two megabytes, at most twice as many as before and never more than `most`.
 *
 * @example
 * ```ts
 * import { nextPageSize } from './list-pages.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(nextPageSize({ limit: 500, answer: 'too large' }, 500), 250);
 * assert.equal(nextPageSize({ limit: 500, answer: 'too large', came: 12 }, 500), 3);
 * assert.equal(nextPageSize({ limit: 500, answer: 'too large', came: 0 }, 500), 1);
 * assert.equal(nextPageSize({ limit: 500, answer: 400_000 }, 500), 500);
 * assert.equal(nextPageSize({ limit: 4, answer: 6_000_000 }, 500), 1);
 * assert.equal(nextPageSize({ limit: 4, answer: 1000 }, 500), 8);
 * ```
 */
export function nextPageSize({ limit, answer, came }: ReadPage, most: number): number {
  if (answer === 'too large') {
    const light = came === undefined ? limit : (came * WANTED_PAGE_BYTES) / MOST_PAGE_BYTES;
    return Math.max(1, Math.floor(Math.min(limit / 2, light)));
  }
  const fitting = Math.floor((limit * WANTED_PAGE_BYTES) / Math.max(1, answer));
  return Math.max(1, Math.min(most, limit * 2, Math.max(fitting, answer <= WANTED_PAGE_BYTES ? limit : 1)));
}

/** What one request for a page asks for. */
export interface AskedPage {
  readonly limit: number;
  readonly maxBytes: number;
  /** To be called with each object that arrives: how many came tells how heavy they are. */
  readonly count: () => void;
}

/**
 * Pages of one list, as many objects in each as their weight allows: one that is too large is asked for again in smaller ones, which go on from
 * the same place.
 *
 * @example
 * ```ts
 * import { ShrinkingPages } from './list-pages.ts';
 * import { PullwrightError } from '../rules/errors.ts';
 * import assert from 'node:assert/strict';
 *
 * const asked: number[] = [];
 * const page = await new ShrinkingPages(500).read(async ({ limit, count }) => {
 *   asked.push(limit);
 *   for (let came = 0; came < 300; came += 1) count();
 *   if (limit > 200) throw new PullwrightError('Cannot list', { code: 'AnswerTooLarge' });
 *   return { items: [], resourceVersion: '1', bytes: 1000 };
 * });
 * assert.deepEqual([asked, page.bytes], [[500, 75], 1000]);
 * ```
 */
export class ShrinkingPages {
  readonly #most: number;
  #limit: number;

  /** @param most objects in a page */
  constructor(most: number) {
    this.#most = most;
    this.#limit = most;
  }

  /** @throws what `ask` throws, `AnswerTooLarge` once a single object is too large */
  async read(ask: (asked: AskedPage) => Promise<ListPage>): Promise<ListPage> {
    for (;;) {
      const limit = this.#limit;
      const maxBytes = limit === 1 ? MOST_OBJECT_BYTES : MOST_PAGE_BYTES;
      let came = 0;
      try {
        const page = await ask({ limit, maxBytes, count: () => void (came += 1) });
        this.#limit = nextPageSize({ limit, answer: page.bytes }, this.#most);
        return page;
      } catch (error) {
        if (limit === 1 || !(error instanceof PullwrightError) || error.code !== 'AnswerTooLarge')
          throw error;
        this.#limit = nextPageSize({ limit, answer: 'too large', came }, this.#most);
      }
    }
  }
}
