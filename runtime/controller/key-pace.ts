/**
 * How often one key is worked on. A pass decides, and writes: one object that somebody changes without end would otherwise have its key
 * worked on without end, and each pass takes time from those of all other clusters of the process.
 */

export interface KeyPaceOptions {
  /** Milliseconds that never go back. */
  readonly now: () => number;
  /** Passes of one key that follow each other as fast as there is reason to: a chain of writes and answers is short. @default {30} */
  readonly burst?: number;
  /** Passes of one key in a second from then on. @default {5} */
  readonly perSecond?: number;
}

interface Spent {
  readonly at: number;
  readonly passes: number;
}

/** Keys that have rested are forgotten when so many are remembered. */
const REMEMBERED = 1000;

/**
 * A bucket per key that empties by time.
 *
 * @example
 * ```ts
 * import { KeyPace } from './key-pace.ts';
 * import assert from 'node:assert/strict';
 *
 * let now = 0;
 * const pace = new KeyPace({ now: () => now, burst: 2, perSecond: 5 });
 * for (const id of ['a', 'a', 'b']) pace.taken(id);
 * assert.deepEqual([pace.restMs('a'), pace.restMs('b')], [200, 0]);
 * now = 150;
 * assert.equal(pace.restMs('a'), 50);
 * ```
 */
export class KeyPace {
  readonly #options: Required<KeyPaceOptions>;
  readonly #spent = new Map<string, Spent>();
  #sweepAt = REMEMBERED;

  constructor(options: KeyPaceOptions) {
    this.#options = { burst: 30, perSecond: 5, ...options };
  }

  /** A pass of `id` begins. */
  taken(id: string): void {
    const at = this.#options.now();
    this.#spent.set(id, { at, passes: this.#left(id, at) + 1 });
    if (this.#spent.size > this.#sweepAt) this.#sweep(at);
  }

  /** Milliseconds until the next pass of `id` may begin. */
  restMs(id: string): number {
    const { now, burst, perSecond } = this.#options;
    return Math.max(0, ((this.#left(id, now()) + 1 - burst) * 1000) / perSecond);
  }

  #left(id: string, now: number): number {
    const spent = this.#spent.get(id);
    if (spent === undefined) return 0;
    return Math.max(0, spent.passes - ((now - spent.at) * this.#options.perSecond) / 1000);
  }

  #sweep(now: number): void {
    for (const id of this.#spent.keys()) if (this.#left(id, now) === 0) this.#spent.delete(id);
    this.#sweepAt = Math.max(REMEMBERED, 2 * this.#spent.size);
  }
}
