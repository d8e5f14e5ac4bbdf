/** Profiles and SidecarSets that name a Secret for pods of a namespace and do not give it to one pod, and why. */
import type { ObjectStore } from '../../controller/store.ts';
import type { DoctorInput } from '../../rules/diagnose/doctor-types.ts';
import type { PullSecretProfile } from '../../rules/injection/profile.ts';
import { INJECT_LABEL, type PlannedPod } from '../../rules/injection/profile-plan.ts';
import type { SidecarSet } from '../../rules/injection/sidecar-set.ts';
import { selects } from '../../rules/kubernetes/label-selector.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { plannedFor } from '../explain/injected.ts';
import { podMetadataIn } from '../pod-spec.ts';

type NotGiven = NonNullable<DoctorInput['notGiven']>;

/** What is not given to such a pod. */
export function notGivenIn(store: ObjectStore, template: KubeObject, namespace: string): NotGiven {
  const { labels = {}, annotations = {} } = podMetadataIn(template);
  const { identity, profiles, sets } = plannedFor(store, { namespace, labels, annotations });
  return notGiven(identity, profiles, sets);
}

/**
 * Of each name the first one that could give it. What serves other namespaces alone is not spoken of.
 *
 * @example
 * ```ts
 * import { notGiven } from './not-given.ts';
 * import { readSidecarSet } from '../../rules/injection/sidecar-set.ts';
 * import assert from 'node:assert/strict';
 *
 * const set = readSidecarSet({
 *   metadata: { name: 'side' },
 *   spec: { selector: { matchLabels: { app: 'web' } }, imagePullSecrets: [{ name: 'quay' }] },
 * });
 * const pod = { namespace: 'shop', labels: { app: 'wbe' }, annotations: {}, namespaceLabels: {} };
 * assert.deepEqual(notGiven(pod, [], [set]), [
 *   { secret: 'quay', by: 'SidecarSet/side', why: 'its selector does not match the labels of the pod' },
 * ]);
 * ```
 */
export function notGiven(
  pod: PlannedPod,
  profiles: readonly PullSecretProfile[],
  sets: readonly SidecarSet[],
): NotGiven {
  const labels = pod.namespaceLabels ?? {};
  const ofProfiles = profiles
    // One that only distributes means its Secrets to be listed by hand.
    .filter(({ injects, namespaceSelector }) => injects && selects(namespaceSelector, labels))
    .flatMap((profile) =>
      said(profile.secrets, `PullSecretProfile/${profile.name}`, optedOut(pod) ?? profileSays(profile, pod)),
    );
  const ofSets = sets
    .filter(({ namespaceSelector: of }) => of === undefined || (of.ok && selects(of.requirements, labels)))
    .flatMap((set) =>
      said(
        set.imagePullSecrets.filter((name) => name !== '').map((name) => ({ name })),
        `SidecarSet/${set.name}`,
        setSays(set, pod) ?? optedOut(pod),
      ),
    );
  const names = new Set<string>();
  return [...ofProfiles, ...ofSets].filter(({ secret }) => !names.has(secret) && names.add(secret));
}

function said(secrets: readonly { readonly name: string }[], by: string, why?: string): NotGiven {
  return why === undefined ? [] : secrets.map(({ name: secret }) => ({ secret, by, why }));
}

const MISSES = 'its selector does not match the labels of the pod';

function profileSays({ suspended, selector }: PullSecretProfile, pod: PlannedPod): string | undefined {
  if (suspended) return 'its spec.suspend is set';
  return selects(selector, pod.labels) ? undefined : MISSES;
}

function setSays({ paused, selector }: SidecarSet, pod: PlannedPod): string | undefined {
  if (paused) return 'its injectionStrategy.paused is set';
  if (!selector.ok) return 'its spec.selector cannot be read';
  if (selector.requirements.length === 0) return 'its spec.selector is empty and selects no pod';
  return selects(selector.requirements, pod.labels) ? undefined : MISSES;
}

function optedOut({ labels, namespaceLabels = {} }: PlannedPod): string | undefined {
  const who = labels[INJECT_LABEL] === 'false' ? 'the pod' : 'the namespace';
  const isOut = labels[INJECT_LABEL] === 'false' || namespaceLabels[INJECT_LABEL] === 'false';
  return isOut ? `${who} has the label ${INJECT_LABEL}: "false"` : undefined;
}
