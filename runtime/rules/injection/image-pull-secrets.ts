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

/** The JSON-patch operation that sets the list. */
export interface SetPullSecrets {
  readonly op: 'add';
  readonly path: '/spec/imagePullSecrets';
  readonly value: readonly LocalObjectReference[];
}

/** On a pod: the names that were added to it, and by whom. */
export const INJECTED_ANNOTATION = 'pullwright.dev/injected-pull-secrets';
/** Characters of the text in {@link INJECTED_ANNOTATION}; a longer one is cut, lest it take the room of the pod's own annotations. */
export const MAX_INJECTED_TEXT = 16_384;

/** Who adds names. */
export interface InjectionSource {
  /** `profile/<name>` or `sidecarset/<name>` */
  readonly source: string;
  readonly names: readonly string[];
}

/**
 * The text of {@link INJECTED_ANNOTATION}: each source with those of its names that were added.
 *
 * @param before the text that is there: when a pod is looked at a second time, names of the first time are its own
 * @example
 * ```ts
 * import { injectedText } from './image-pull-secrets.ts';
 * import assert from 'node:assert/strict';
 *
 * const by = [
 *   { source: 'profile/team', names: ['reg', 'mine'] },
 *   { source: 'sidecarset/log', names: ['pull'] },
 * ];
 * assert.equal(injectedText(by, ['reg', 'pull']), 'profile/team: reg; sidecarset/log: pull');
 * assert.equal(injectedText(by, ['pull'], 'profile/team: reg'), 'profile/team: reg; sidecarset/log: pull');
 * ```
 */
export function injectedText(
  by: readonly InjectionSource[],
  added: readonly string[],
  before: unknown = '',
): string {
  const isAdded = new Set(added);
  const earlier = new Set(typeof before === 'string' ? before.split('; ') : []);
  const wasAdded = new Set(
    [...earlier].flatMap((part) => {
      const [source = '', names = ''] = part.split(': ');
      return names.split(', ').map((name) => `${source}: ${name}`);
    }),
  );
  const text = by
    .map(({ source, names }) => ({
      source,
      names: names.filter((name) => isAdded.has(name) || wasAdded.has(`${source}: ${name}`)),
    }))
    .filter(({ names }) => names.length > 0)
    .map(({ source, names }) => `${source}: ${names.join(', ')}`)
    .join('; ');
  return text.length > MAX_INJECTED_TEXT ? `${text.slice(0, MAX_INJECTED_TEXT)}...` : text;
}

/** Sets {@link INJECTED_ANNOTATION} on a pod with these annotations. */
export function patchInjectedText(
  annotations: Readonly<Record<string, unknown>> | undefined,
  text: string,
): SetAnnotations {
  if (annotations === undefined)
    return { op: 'add', path: '/metadata/annotations', value: { [INJECTED_ANNOTATION]: text } };
  return { op: 'add', path: INJECTED_PATH, value: text };
}

/** Where {@link INJECTED_ANNOTATION} stands, for a JSON patch. */
export const INJECTED_PATH = '/metadata/annotations/pullwright.dev~1injected-pull-secrets';

/** The annotation alone, or with the map that was not there. */
export type SetAnnotations =
  | { readonly op: 'add'; readonly path: typeof INJECTED_PATH; readonly value: string }
  | {
      readonly op: 'add';
      readonly path: '/metadata/annotations';
      readonly value: Readonly<Record<string, string>>;
    };
