/** A binary heap by due time, then by order: what is due earliest, in logarithmic time, for queues of many thousand keys. */

/** What the heap orders by. */
export interface Due {
  readonly dueAt: number;
  /** Order among what is due at the same time. */
  readonly order: number;
}

/**
 * @example
 * ```ts
 * import { DueHeap } from './due-heap.ts';
 * import assert from 'node:assert/strict';
 *
 * const heap = new DueHeap<{ dueAt: number; order: number }>();
 * for (const dueAt of [3, 1, 2]) heap.push({ dueAt, order: 0 });
 * assert.deepEqual([heap.pop()?.dueAt, heap.pop()?.dueAt, heap.pop()?.dueAt, heap.pop()], [1, 2, 3, undefined]);
 * ```
 */
export class DueHeap<T extends Due> {
  readonly #items: T[] = [];

  push(item: T): void {
    const items = this.#items;
    let at = items.push(item) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#isBefore(at, parent)) return;
      this.#swap(at, parent);
      at = parent;
    }
  }

  get size(): number {
    return this.#items.length;
  }

  /** Forgets what `isWanted` refuses. */
  keep(isWanted: (item: T) => boolean): void {
    const wanted = this.#items.filter(isWanted);
    this.#items.length = 0;
    for (const item of wanted) this.push(item);
  }

  /** The first one, left where it is. */
  peek(): T | undefined {
    return this.#items[0];
  }

  pop(): T | undefined {
    const items = this.#items;
    const first = items[0];
    const last = items.pop();
    if (last === undefined || items.length === 0) return first;
    items[0] = last;
    for (let at = 0; ; ) {
      const left = 2 * at + 1;
      const right = left + 1;
      let next = at;
      if (left < items.length && this.#isBefore(left, next)) next = left;
      if (right < items.length && this.#isBefore(right, next)) next = right;
      if (next === at) return first;
      this.#swap(at, next);
      at = next;
    }
  }

  clear(): void {
    this.#items.length = 0;
  }

  #isBefore(a: number, b: number): boolean {
    const [one, other] = [this.#items[a], this.#items[b]] as [T, T];
    return one.dueAt === other.dueAt ? one.order < other.order : one.dueAt < other.dueAt;
  }

  #swap(a: number, b: number): void {
    const items = this.#items;
    [items[a], items[b]] = [items[b] as T, items[a] as T];
  }
}
