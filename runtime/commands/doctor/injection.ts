/** What profiles and SidecarSets would give a pod that was made now. */
import type { ObjectStore } from '../../controller/store.ts';
import type { DoctorInput } from '../../rules/diagnose/doctor.ts';
import { readProfile } from '../../rules/injection/profile.ts';
import { exemption, injectionPlan, planInjection } from '../../rules/injection/profile-plan.ts';
import { readSidecarSet, SIDECAR_SET_API_VERSIONS } from '../../rules/injection/sidecar-set.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';

/** Names that would be injected and that `own` lacks, with what would inject them. */
export function notInjectedInto(
  store: ObjectStore,
  pod: KubeObject,
  own: readonly string[],
): DoctorInput['notInjected'] {
  const { namespace = '', labels = {}, annotations = {} } = pod.metadata;
  const found = store.get({ apiVersion: 'v1', kind: 'Namespace', name: namespace });
  const namespaceLabels = { ...found?.metadata.labels, 'kubernetes.io/metadata.name': namespace };
  const identity = { namespace, labels, annotations, namespaceLabels };
  // Our own namespace has the name that the fleet gave it.
  const isOwn = found?.metadata.labels?.['app.kubernetes.io/part-of'] === 'pullwright';
  if (exemption(identity, [isOwn ? namespace : 'pullwright-system']) !== undefined) return [];
  const profiles = store
    .list({ apiVersion: 'pullwright.dev/v1alpha1', kind: 'PullSecretProfile' })
    .map(readProfile)
    .flatMap((read) => (read.ok ? [read.profile] : []));
  const sets = SIDECAR_SET_API_VERSIONS.flatMap((apiVersion) =>
    store.list({ apiVersion, kind: 'SidecarSet' }),
  );
  const plan = injectionPlan(profiles, sets.map(readSidecarSet));
  return planInjection(plan, identity).by.flatMap(({ source, names }) =>
    names.filter((name) => !own.includes(name)).map((secret) => ({ secret, by: source })),
  );
}
