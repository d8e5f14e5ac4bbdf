/**
 * Which content of a SidecarSet counts where the decision is made once for all pods.
 *
 * Source of the rule: the SidecarSet webhook of Kruise: `injectionStrategy.revision` and the update's partition.
 */
import type { SidecarSet, SidecarSetRevision } from './sidecar-set.ts';

/** The revision that the set is pinned to: by name, else the newest of the custom version. */
export function pinnedRevision(
  { name, pin }: SidecarSet,
  revisions: readonly SidecarSetRevision[],
): SidecarSetRevision | undefined {
  if (pin?.revisionName !== undefined)
    return revisions.find((revision) => revision.name === pin.revisionName);
  return revisions
    .filter((revision) => revision.sidecarSet === name && revision.customVersion === pin?.customVersion)
    .sort((a, b) => b.revision - a.revision || (a.name < b.name ? 1 : -1))[0];
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

/**
 * Which names pods get, as a sentence for whoever reads the status of the set: a pinned set does not give what its spec lists.
 *
 * @param variants what {@link pinVariants} made of the set
 *
 * @example
 * ```ts
 * import { readSidecarSet } from './sidecar-set.ts';
 * import { namesGiven, pinVariants } from './sidecar-set-injection.ts';
 * import assert from 'node:assert/strict';
 *
 * const set = readSidecarSet({
 *   metadata: { name: 'log' },
 *   spec: { imagePullSecrets: [{ name: 'new' }], injectionStrategy: { revision: { customVersion: 'v1' } } },
 * });
 * const old = { name: 'log-1', sidecarSet: 'log', customVersion: 'v1', revision: 1, imagePullSecrets: ['old'], containers: 1 };
 * assert.equal(namesGiven(set, pinVariants(set, [old])), 'old, of the pinned custom version "v1"');
 * ```
 */
export function namesGiven(set: SidecarSet, variants: readonly SidecarSet[]): string {
  const said = variants.map((variant) => {
    const names = variant.imagePullSecrets.filter((name) => name !== '').join(', ') || 'none';
    const from = variant.imagePullSecrets === set.imagePullSecrets ? '' : `, of the pinned ${pinText(set)}`;
    if (variant.only === undefined) return `${names}${from}`;
    return `${names}${from}, into pods that updateStrategy.selector ${variant.only.meeting ? 'selects' : 'leaves out'}`;
  });
  return said.join('; ');
}

/** The pin, in the words of the set. */
export function pinText({ pin }: SidecarSet): string {
  return pin?.revisionName === undefined
    ? `custom version "${pin?.customVersion ?? ''}"`
    : `revision "${pin.revisionName}"`;
}

/** Whether upstream draws for each pod which content it gets. */
export function isDrawn({ pin, update }: SidecarSet): boolean {
  const { paused, partitionPercent } = update;
  return pin?.policy === 'Partial' && !paused && partitionPercent > 0 && partitionPercent < 100;
}
