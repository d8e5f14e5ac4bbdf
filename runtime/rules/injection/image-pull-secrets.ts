/**
 * Merging `imagePullSecrets` into a pod: the pod's own first, then the injected ones, the first occurrence of a name wins.
 *
 * Source of the rule: the SidecarSet proposal (`mergeSidecarSecrets`) and its implementation in Kruise.
 */

/** A core/v1 LocalObjectReference. The API server stores an empty name as an absent one. */
export interface LocalObjectReference {
  readonly name?: string;
}

/** What a merge gives. */
export interface MergedPullSecrets {
  /** All names, each once, in first-seen order. */
  readonly merged: readonly string[];
  /** Names that the pod did not have. */
  readonly added: readonly string[];
  /** Whether the pod named a secret more than once; the repetitions are gone from `merged`. */
  readonly deduplicated: boolean;
}

/**
 * Merges names. Total: an entry without a name counts as the empty name, which a kubelet skips.
 *
 * @example
 * ```ts
 * import { mergeImagePullSecrets } from './image-pull-secrets.ts';
 * import assert from 'node:assert/strict';
 *
 * const { merged, added } = mergeImagePullSecrets([{ name: 's2' }, { name: 's3' }, { name: 's3' }], ['s0', 's1', 's2']);
 * assert.deepEqual(merged, ['s2', 's3', 's0', 's1']);
 * assert.deepEqual(added, ['s0', 's1']);
 * ```
 */
export function mergeImagePullSecrets(
  pod: readonly LocalObjectReference[],
  injected: readonly string[],
): MergedPullSecrets {
  const own = pod.map((reference) => reference.name ?? '');
  const first = new Set(own);
  const all = new Set([...own, ...injected]);
  return {
    merged: [...all],
    added: [...all].filter((name) => !first.has(name)),
    deduplicated: first.size !== own.length,
  };
}

/**
 * The patch that turns the pod's list into the merged one: nothing when it is that already, else one operation that sets
 * the whole list. `add` on an object member replaces it if it is there, so the same operation serves both cases.
 */
export function patchImagePullSecrets(
  pod: readonly LocalObjectReference[],
  { merged, added, deduplicated }: MergedPullSecrets,
): readonly SetPullSecrets[] {
  if (added.length === 0 && !deduplicated) return [];
  const kept = new Map(pod.toReversed().map((reference) => [reference.name ?? '', reference]));
  return [
    {
      op: 'add',
      path: '/spec/imagePullSecrets',
      value: merged.map((name) => kept.get(name) ?? { name }),
    },
  ];
}

/** The one JSON-patch operation that is ever sent. */
export interface SetPullSecrets {
  readonly op: 'add';
  readonly path: '/spec/imagePullSecrets';
  readonly value: readonly LocalObjectReference[];
}
