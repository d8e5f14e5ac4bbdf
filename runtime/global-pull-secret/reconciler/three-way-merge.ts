/**
 * Merges what we want into a map that others write to as well: ours are added and changed, what we put there earlier and no
 * longer want is removed, and everything else stays.
 *
 * What is ours is known from a ledger: for each key the digests of the values that we wrote. A key whose value is not one of
 * them was changed by somebody else and is theirs from then on.
 */

/** A map of values that are only ever compared by digest. */
export type Entries<V> = ReadonlyMap<string, V>;

/** For each key, the digests of values that we wrote. */
export type OwnedDigests = Readonly<Record<string, readonly string[]>>;

export interface ThreeWay<V> {
  readonly present: Entries<V>;
  readonly wanted: Entries<V>;
  readonly owned: OwnedDigests;
  readonly digest: (value: V) => string;
}

/** The merged map, and the keys in it that belong to others; both sorted by key. */
export interface Merged<V> {
  readonly entries: Entries<V>;
  readonly foreign: readonly string[];
}

/**
 * The merged map. A key that both want is ours.
 *
 * @example
 * ```ts
 * import { mergeThreeWays } from './three-way-merge.ts';
 * import assert from 'node:assert/strict';
 *
 * const merged = mergeThreeWays({
 *   present: new Map([['ours', 'old'], ['dropped', 'x'], ['theirs', 'y'], ['taken', 'z']]),
 *   wanted: new Map([['ours', 'new']]),
 *   owned: { ours: ['old'], dropped: ['x'], taken: ['what we wrote'] },
 *   digest: (value) => value,
 * });
 * assert.deepEqual([...merged.entries], [['ours', 'new'], ['taken', 'z'], ['theirs', 'y']]);
 * assert.deepEqual(merged.foreign, ['taken', 'theirs']);
 * ```
 */
export function mergeThreeWays<V>(input: ThreeWay<V>): Merged<V> {
  const foreign = [...input.present].filter(([key, value]) => {
    if (input.wanted.has(key)) return false;
    const digests = Object.hasOwn(input.owned, key) ? input.owned[key] : undefined;
    return digests === undefined || !digests.includes(input.digest(value));
  });
  const entries = new Map([...foreign, ...input.wanted].sort(([a], [b]) => (a < b ? -1 : 1)));
  return { entries, foreign: foreign.map(([key]) => key).sort() };
}

/** The ledger for `entries`, with what `before` owned of them and of everything else. */
export function ownedAlso<V>(
  before: OwnedDigests,
  entries: Entries<V>,
  digest: (value: V) => string,
): OwnedDigests {
  const after = new Map(Object.entries(before));
  for (const [key, value] of entries)
    after.set(key, [...new Set([...(after.get(key) ?? []), digest(value)])]);
  return Object.fromEntries([...after].sort(([a], [b]) => (a < b ? -1 : 1)));
}
