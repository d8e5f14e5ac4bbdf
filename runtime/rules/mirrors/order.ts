/**
 * Several lists of mirrors for one source become one list that keeps the order of each, as far as they agree.
 *
 * Source of the rule: the documentation of ImageDigestMirrorSet (`a, b, c` and `c, d, e` give `a, b, c, d, e`; contradicting
 * orders are allowed and give an order that is not specified: ours is that of the first list).
 */

/** The merged order, and the first pair that the lists put in opposite orders, if any. */
export interface MergedOrder {
  readonly order: readonly string[];
  readonly conflict?: readonly [string, string];
}

/**
 * @example
 * ```ts
 * import { mergeOrders } from './order.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(mergeOrders([['b', 'c'], ['a', 'b']]).order, ['a', 'b', 'c']);
 * assert.deepEqual(mergeOrders([['a', 'b'], ['b', 'a']]), { order: ['a', 'b'], conflict: ['b', 'a'] });
 * ```
 */
export function mergeOrders(lists: readonly (readonly string[])[]): MergedOrder {
  const [only = []] = lists;
  if (lists.length <= 1) return { order: [...new Set(only)] };
  const before = predecessors(lists);
  const order: string[] = [];
  let conflict: readonly [string, string] | undefined;
  while (before.size > 0) {
    const waiting = [...before.keys()];
    const free = waiting.find((item) => isFree(before, item));
    const next = free ?? waiting[0] ?? '';
    if (free === undefined)
      conflict ??= [[...(before.get(next) ?? [])].find((item) => before.has(item)) ?? next, next];
    before.delete(next);
    order.push(next);
  }
  return conflict === undefined ? { order } : { order, conflict };
}

/** Every item, by first occurrence, with the items that stand directly before it in some list. */
function predecessors(lists: readonly (readonly string[])[]): Map<string, Set<string>> {
  const before = new Map<string, Set<string>>();
  for (const item of lists.flat()) before.set(item, before.get(item) ?? new Set());
  for (const list of lists) {
    const once = [...new Set(list)];
    for (const [at, item] of once.entries()) if (at > 0) before.get(item)?.add(once[at - 1] ?? '');
  }
  return before;
}

function isFree(before: ReadonlyMap<string, ReadonlySet<string>>, item: string): boolean {
  for (const earlier of before.get(item) ?? []) if (before.has(earlier)) return false;
  return true;
}
