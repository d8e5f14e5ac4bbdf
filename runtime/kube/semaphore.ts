/** A number of places; who finds none waits for its turn. */

/**
 * @example
 * ```ts
 * import { Places } from './semaphore.ts';
 * import assert from 'node:assert/strict';
 *
 * const places = new Places(1);
 * await places.enter();
 * let entered = false;
 * const second = places.enter().then(() => {
 *   entered = true;
 * });
 * assert.equal(entered, false);
 * places.leave();
 * await second;
 * assert.equal(entered, true);
 * ```
 */
export class Places {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Resolves when there is a place. Whoever enters must {@link leave}. */
  enter(): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return Promise.resolve();
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
