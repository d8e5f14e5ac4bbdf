/**
 * Which secrets the SidecarSets of a cluster inject into a pod that is being created.
 *
 * Source of the rule: the SidecarSet webhook of Kruise, step by step: active pods only, paused sets out, selectors, pinned
 * revisions, a canary in place of its base, and nothing at all when no set brings a container.
 */

import { selects } from '../kubernetes/label-selector.ts';
import {
  type LocalObjectReference,
  type MergedPullSecrets,
  mergeImagePullSecrets,
} from './image-pull-secrets.ts';
import {
  compareSidecarSets,
  type PodIdentity,
  type SidecarSet,
  type SidecarSetContent,
  type SidecarSetRevision,
  sidecarSetSelects,
} from './sidecar-set.ts';

/** The pod that is being created. */
export interface SidecarSetPod extends PodIdentity {
  readonly imagePullSecrets: readonly LocalObjectReference[];
  /** `Succeeded` and `Failed` pods are left alone. */
  readonly phase?: string;
  readonly deleting?: boolean;
}

export interface SidecarSetOptions {
  /** Inject secrets even when no set brings a container. Upstream does not. @default {false} */
  readonly withoutContainers?: boolean;
  /** A pinned revision that is missing: refuse the pod (as upstream) or use the current content. @default {'fail'} */
  readonly missingRevision?: 'fail' | 'current';
  /** A draw from 0 up to 100, per set, for partitions in percent. @default {() => 100} (the current content) */
  readonly draw?: (set: string) => number;
}

/** What happens to the pod. */
export type SidecarSetInjection =
  | { readonly outcome: 'skipped' }
  | { readonly outcome: 'failed'; readonly problem: string }
  | {
      readonly outcome: 'injected';
      /** Sorted by name. */
      readonly sets: readonly string[];
      readonly pullSecrets: MergedPullSecrets;
    };

interface Matched {
  readonly set: SidecarSet;
  readonly content: SidecarSetContent;
}

/** Decides for one pod. `sets` in any order: the answer does not depend on it. */
export function injectSidecarSets(
  pod: SidecarSetPod,
  sets: readonly SidecarSet[],
  revisions: readonly SidecarSetRevision[],
  options: SidecarSetOptions = {},
): SidecarSetInjection {
  if (pod.deleting === true || pod.phase === 'Succeeded' || pod.phase === 'Failed')
    return { outcome: 'skipped' };
  const matched: Matched[] = [];
  for (const set of sets.toSorted(compareSidecarSets)) {
    const found = matchSet(set, pod, revisions, options);
    if ('problem' in found) return { outcome: 'failed', problem: found.problem };
    if ('content' in found) matched.push({ set, content: found.content });
  }
  const replaced = new Set(matched.map(({ set }) => set.canaryOf));
  const effective = matched.filter(({ set }) => !replaced.has(set.name));
  const containers = effective.reduce((sum, { content }) => sum + content.containers, 0);
  if (effective.length === 0 || (containers === 0 && options.withoutContainers !== true)) {
    return { outcome: 'skipped' };
  }
  const injected = effective.flatMap(({ content }) => content.imagePullSecrets);
  return {
    outcome: 'injected',
    sets: effective.map(({ set }) => set.name).sort(),
    pullSecrets: mergeImagePullSecrets(pod.imagePullSecrets, injected),
  };
}

type Match = { readonly content: SidecarSetContent } | { readonly problem: string } | Record<string, never>;

function matchSet(
  set: SidecarSet,
  pod: SidecarSetPod,
  revisions: readonly SidecarSetRevision[],
  options: SidecarSetOptions,
): Match {
  if (set.paused) return {};
  const selected = sidecarSetSelects(set, pod);
  if (selected === false) return {};
  if (selected !== true) return { problem: `Cannot match SidecarSet "${set.name}": ${selected.problem}` };
  if (set.pin === undefined) return { content: set };
  // Upstream looks the revision up before it asks whether it is wanted, so a missing one fails in every case.
  const pinned = pinnedRevision(set, revisions);
  if (pinned === undefined) {
    return options.missingRevision === 'current' ? { content: set } : { problem: missing(set) };
  }
  const choice = takesPinned(set, pod, options.draw ?? (() => 100));
  if (typeof choice !== 'boolean') return choice;
  return { content: choice ? pinned : set };
}

/** `Partial` gives the pinned revision to pods outside the update; every other policy gives it to all. */
function takesPinned(
  set: SidecarSet,
  pod: SidecarSetPod,
  draw: (set: string) => number,
): boolean | { readonly problem: string } {
  if (set.pin?.policy !== 'Partial' || set.update.paused) return true;
  const { selector, partitionPercent } = set.update;
  if (selector?.ok === false) {
    return { problem: `Cannot read updateStrategy of SidecarSet "${set.name}": ${selector.problem}` };
  }
  if (selector !== undefined && !selects(selector.requirements, pod.labels)) return true;
  return draw(set.name) < partitionPercent;
}

/** By name, else the newest of the custom version. */
function pinnedRevision(
  { name, pin }: SidecarSet,
  revisions: readonly SidecarSetRevision[],
): SidecarSetRevision | undefined {
  if (pin?.revisionName !== undefined)
    return revisions.find((revision) => revision.name === pin.revisionName);
  return revisions
    .filter((revision) => revision.sidecarSet === name && revision.customVersion === pin?.customVersion)
    .sort((a, b) => b.revision - a.revision || (a.name < b.name ? 1 : -1))[0];
}

function missing({ name, pin }: SidecarSet): string {
  const wanted = pin?.revisionName ?? `version ${pin?.customVersion ?? ''}`;
  return `Cannot inject SidecarSet "${name}": its injectionStrategy names the revision "${wanted}", which does not exist`;
}

/** The set with the content of its pinned revision, where all pods get the same; see {@link pinVariants}. */
export function pinContent(
  set: SidecarSet,
  revisions: readonly SidecarSetRevision[],
): SidecarSet | undefined {
  const variants = pinVariants(set, revisions);
  return variants.find(({ only }) => only === undefined || only.meeting);
}

/**
 * The set with the content of its pinned revision put in, for evaluators that decide once for all pods. With policy `Partial` the pods
 * outside `updateStrategy.selector` get the pinned content, and the others the current one, unless `partition` gives them all the pinned:
 * two sets that no pod meets both of. A partition in between cannot be drawn here; {@link isDrawn} tells. Empty when the revision is missing,
 * as upstream refuses the pod then.
 *
 * @example
 * ```ts
 * import { readSidecarSet } from './sidecar-set.ts';
 * import { pinVariants } from './sidecar-set-injection.ts';
 * import assert from 'node:assert/strict';
 *
 * const set = readSidecarSet({
 *   metadata: { name: 'log' },
 *   spec: {
 *     selector: { matchLabels: { app: 'web' } },
 *     imagePullSecrets: [{ name: 'new' }],
 *     injectionStrategy: { revision: { revisionName: 'log-1', policy: 'Partial' } },
 *     updateStrategy: { selector: { matchLabels: { canary: 'yes' } } },
 *   },
 * });
 * const old = { name: 'log-1', sidecarSet: 'log', revision: 1, imagePullSecrets: ['old'], containers: 1 };
 * assert.deepEqual(pinVariants(set, [old]).map(({ imagePullSecrets, only }) => [imagePullSecrets[0], only?.meeting]), [
 *   ['new', true],
 *   ['old', false],
 * ]);
 * ```
 */
export function pinVariants(
  set: SidecarSet,
  revisions: readonly SidecarSetRevision[],
  missingRevision: 'skip' | 'current' = 'skip',
): readonly SidecarSet[] {
  if (set.pin === undefined) return [set];
  const pinned = pinnedRevision(set, revisions);
  if (pinned === undefined) return missingRevision === 'current' ? [set] : [];
  const old: SidecarSet = {
    ...set,
    imagePullSecrets: pinned.imagePullSecrets,
    containers: pinned.containers,
  };
  if (set.pin.policy !== 'Partial' || set.update.paused) return [old];
  const { selector, partitionPercent } = set.update;
  if (partitionPercent === 100) return [old];
  if (selector === undefined) return [set];
  // Upstream refuses such a pod.
  if (!selector.ok) return [];
  const { requirements } = selector;
  return [
    { ...set, only: { requirements, meeting: true } },
    { ...old, only: { requirements, meeting: false } },
  ];
}

/** Whether upstream draws for each pod which content it gets. */
export function isDrawn({ pin, update }: SidecarSet): boolean {
  const { paused, partitionPercent } = update;
  return pin?.policy === 'Partial' && !paused && partitionPercent > 0 && partitionPercent < 100;
}
