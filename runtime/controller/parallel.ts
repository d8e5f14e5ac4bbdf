/** Doing many things at once, but not too many. */

/**
 * Runs `work` on every item, at most `limit` at the same time. Gives the results in the order of the items.
 *
 * @example
 * ```ts
 * import { inParallel } from './parallel.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(await inParallel([1, 2, 3], 2, async (n) => n * n), [1, 4, 9]);
 * ```
 */
export async function inParallel<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = [];
  const entries = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of entries) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}

/** Cuts `items` into runs of neighbours for which `kindOf` is the same. */
export function neighbours<T>(items: readonly T[], kindOf: (item: T) => string): readonly (readonly T[])[] {
  const runs: { readonly kind: string; readonly items: T[] }[] = [];
  for (const item of items) {
    const kind = kindOf(item);
    const last = runs.at(-1);
    if (last?.kind === kind) last.items.push(item);
    else runs.push({ kind, items: [item] });
  }
  return runs.map((run) => run.items);
}
