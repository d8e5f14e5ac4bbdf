/** What another release has that this one has not. */
import type { Release } from './release-image.ts';

export interface ReleaseDifference {
  readonly from: string;
  readonly to: string;
  readonly added: Readonly<Record<string, string>>;
  readonly removed: Readonly<Record<string, string>>;
  readonly changed: Readonly<Record<string, { readonly from: string; readonly to: string }>>;
  readonly unchanged: number;
}

/**
 * Compares the images of components by name.
 *
 * @example
 * ```ts
 * import { releaseDifference } from './release-difference.ts';
 * import assert from 'node:assert/strict';
 *
 * const release = (version: string, images: readonly (readonly [string, string])[]) =>
 *   ({ version, digest: '', architecture: 'amd64', components: new Map(images) });
 * const found = releaseDifference(release('1', [['a', 'x'], ['b', 'y']]), release('2', [['b', 'z'], ['c', 'x']]));
 * assert.deepEqual([found.added, found.removed, found.changed], [{ c: 'x' }, { a: 'x' }, { b: { from: 'y', to: 'z' } }]);
 * ```
 */
export function releaseDifference(one: Release, other: Release): ReleaseDifference {
  const added = [...other.components].filter(([name]) => !one.components.has(name));
  const removed = [...one.components].filter(([name]) => !other.components.has(name));
  const both = [...one.components].flatMap(([name, from]): readonly [string, string, string][] => {
    const to = other.components.get(name);
    return to === undefined ? [] : [[name, from, to]];
  });
  const changed = both.filter(([, from, to]) => from !== to);
  return {
    from: one.version,
    to: other.version,
    added: Object.fromEntries(added),
    removed: Object.fromEntries(removed),
    changed: Object.fromEntries(changed.map(([name, from, to]) => [name, { from, to }])),
    unchanged: both.length - changed.length,
  };
}
