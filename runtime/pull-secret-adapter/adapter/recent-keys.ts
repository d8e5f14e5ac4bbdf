/** A map that forgets what was written longest ago. */
export class RecentKeys<V> {
  readonly #limit: number;
  readonly #entries = new Map<string, V>();

  /**
   * @param limit entries that are kept
   *
   * @example
   * ```ts
   * import { RecentKeys } from './recent-keys.ts';
   * import assert from 'node:assert/strict';
   *
   * const recent = new RecentKeys<number>(2);
   * for (const key of ['a', 'b', 'a', 'c']) recent.set(key, 1);
   * assert.deepEqual([recent.get('a'), recent.get('b'), recent.get('c')], [1, undefined, 1]);
   * ```
   */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: string): V | undefined {
    return this.#entries.get(key);
  }

  set(key: string, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#limit) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }
}
