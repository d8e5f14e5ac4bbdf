/** Predicts the pull secrets that admission injects into a new pod, from the available profiles and SidecarSets. */

import {
  type Labels,
  NAMESPACE_NAME_LABEL,
  readSelector,
  selects,
} from '../../core/kubernetes/label-selector.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { recordOf, recordsIn, textOf, valueAt } from '../../core/record.ts';
import { runOffline } from '../../engine/offline/offline.ts';
import { createReader, type ObjectStore } from '../../engine/store.ts';
import { parseYaml } from '../../kube/yaml.ts';
import { CAUSES } from '../../pull-secret-injection/causes.ts';
import { PROFILE } from '../../pull-secret-injection/kinds/profile.ts';
import { SIDECAR_SET_API_VERSIONS } from '../../pull-secret-injection/kinds/sidecar-set.ts';
import {
  DEFAULT_OPTIONS,
  type InjectionOptions,
  isSkipped,
  optionsSchema,
} from '../../pull-secret-injection/options.ts';
import {
  INJECTION_POLICY_NAME,
  injectionPlan,
  planInjection,
  WEBHOOK_NAME,
} from '../../pull-secret-injection/plan/plan.ts';
import { pullSecretInjection } from '../../pull-secret-injection/reconciler/reconcile.ts';
import {
  accountRefuses,
  KRUISE_WEBHOOK,
  pinnedSetsIn,
  profilesIn,
} from '../../pull-secret-injection/reconciler/view.ts';
import { conditionOf, podMetadataIn, type SourceKind } from './objects.ts';

// What currently mutates such a pod, by the objects in the store: our policy with its binding, our webhook, or Kruise's webhook,
// each only for the namespaces and pods that its selectors match.

const GROUP = 'admissionregistration.k8s.io';
const WEBHOOKS = { apiVersion: `${GROUP}/v1`, kind: 'MutatingWebhookConfiguration' } as const;
const POLICY_VERSIONS = [`${GROUP}/v1`, `${GROUP}/v1beta1`] as const;

/** Kruise's kind, in each supported version. */
export const SIDECAR_SETS: readonly SourceKind[] = SIDECAR_SET_API_VERSIONS.map((apiVersion) => ({
  apiVersion,
  kind: 'SidecarSet',
}));
const DECLARATIONS = [PROFILE, ...SIDECAR_SETS];

/** Policies and webhooks to read. */
const FORCE_KINDS: readonly SourceKind[] = [
  ...POLICY_VERSIONS.flatMap((apiVersion) =>
    ['MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding'].map((kind) => ({
      apiVersion,
      kind,
      name: INJECTION_POLICY_NAME,
    })),
  ),
  { ...WEBHOOKS, name: WEBHOOK_NAME },
  { ...WEBHOOKS, name: KRUISE_WEBHOOK.name },
];

/** Finds what injects into the pod. Manifests count as applied with injection on; live policies and webhooks are evaluated. */
function forceOf(store: ObjectStore, pod: PlannedFor['pod']) {
  const hooks = (name: string) => recordsIn(store.get({ ...WEBHOOKS, name })?.['webhooks']);
  const isDeclared = DECLARATIONS.some((kind) =>
    store.list(kind).some(({ metadata }) => metadata.creationTimestamp === undefined),
  );
  const kruise = hooks(KRUISE_WEBHOOK.name).filter(({ name }) => name === 'mpod.kb.io');
  return {
    /** Profiles are injected into the pod, and SidecarSets if Kruise is not installed. */
    ours: isDeclared || policyTakes(store, pod) || hooks(WEBHOOK_NAME).some((hook) => takes(hook, pod)),
    /** Kruise injects SidecarSets into the pod; undefined if Kruise is not installed. */
    kruise: kruise.length === 0 ? undefined : kruise.some((hook) => takes(hook, pod)),
  };
}

function policyTakes(store: ObjectStore, pod: PlannedFor['pod']): boolean {
  return POLICY_VERSIONS.some((apiVersion) => {
    const ref = { apiVersion, name: INJECTION_POLICY_NAME };
    const policy = store.get({ ...ref, kind: 'MutatingAdmissionPolicy' });
    const isBound = store.get({ ...ref, kind: 'MutatingAdmissionPolicyBinding' }) !== undefined;
    return policy !== undefined && isBound && takes(recordOf(recordOf(policy.spec)['matchConstraints']), pod);
  });
}

function takes(
  { namespaceSelector, objectSelector }: Readonly<Record<string, unknown>>,
  { labels, namespaceLabels }: PlannedFor['pod'],
): boolean {
  return meets(namespaceSelector, namespaceLabels) && meets(objectSelector, labels);
}

/** A missing selector matches everything. */
function meets(selector: unknown, labels: Labels): boolean {
  const read = readSelector(selector ?? {}, { strict: false });
  return read.ok && selects(read.requirements, labels);
}

/** The reconciler's configuration in a folder of rendered manifests; in a cluster, the live policy shows it. */
function toldIn(store: ObjectStore): Partial<InjectionOptions> {
  const own = store
    .list({ apiVersion: 'v1', kind: 'ConfigMap' })
    .filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/component'] === 'reconciler');
  const [text] = own.map((object) => textOf(recordOf(object['data'])['config.yaml']));
  if (text === undefined || own.length > 1) return {};
  const told = recordOf(valueAt(parsed(text), 'systems.pull-secret-injection'));
  const read = Object.entries(TOLD_OPTIONS).map(([name, one]) => [name, one.safeParse(told[name]).data]);
  return Object.fromEntries(read.filter(([, value]) => value !== undefined));
}

const { excludedNamespaces, namespaces, secretNames, sources } = optionsSchema.shape;
/** Validated one by one, so that an invalid option does not discard the others. */
const TOLD_OPTIONS = { excludedNamespaces, namespaces, secretNames, sources };

/** Invalid YAML counts as empty. */
function parsed(text: string): unknown {
  try {
    return parseYaml(text);
  } catch {
    return undefined;
  }
}

/** Kinds to read to predict injection into a new pod. */
export function injectionKinds(namespace: string): readonly SourceKind[] {
  return [{ apiVersion: 'v1', kind: 'Namespace', name: namespace }, ...DECLARATIONS, ...FORCE_KINDS];
}

/** Input of the injection plan: the pod (or the template's pod), options, profiles and SidecarSets. */
export type PlannedFor = ReturnType<typeof plannedFor>;

export function plannedFor(store: ObjectStore, object: KubeObject) {
  const { namespace = 'default' } = object.metadata;
  const found = store.get({ apiVersion: 'v1', kind: 'Namespace', name: namespace });
  const namespaceLabels = { ...found?.metadata.labels, [NAMESPACE_NAME_LABEL]: namespace };
  // The fleet configures the name of our own namespace: identify it by its label.
  const isOwn = found?.metadata.labels?.['app.kubernetes.io/part-of'] === 'pullwright';
  const options: InjectionOptions = {
    ...DEFAULT_OPTIONS,
    ...toldIn(store),
    ...(isOwn ? { ownNamespace: namespace } : {}),
  };
  const reader = createReader({
    scope: { name: 'local', controlPlaneNamespace: '' },
    now: new Date(0),
    stores: { hosted: store, management: store },
    reads: pullSecretInjection(options).watches,
    serves: () => true,
  });
  const pod = { namespace, ...podMetadataIn(object), namespaceLabels: namespaceLabels as Labels };
  /** All profiles and SidecarSets, including inactive ones. */
  return { pod, options, profiles: profilesIn(reader), sets: pinnedSetsIn(reader) };
}

/** Names that profiles and SidecarSets would add to `listed`, with the source (`profile/team`), and whether it injects now. */
export function plannedNames(store: ObjectStore, object: KubeObject, listed: readonly string[]) {
  const { pod, options, profiles, sets } = plannedFor(store, object);
  const force = forceOf(store, pod);
  const isExempt = isSkipped(pod, options);
  const seen = new Set(listed);
  return planInjection(injectionPlan(profiles, sets), pod).by.flatMap(({ source, names }) => {
    const byKruise = force.kruise !== undefined && source.startsWith('sidecarset/');
    // Kruise ignores our exemptions.
    if (isExempt && !byKruise) return [];
    const inForce = byKruise ? force.kruise : force.ours;
    return names
      .filter((name) => !seen.has(name) && seen.add(name))
      .map((name) => ({ name, by: source, inForce }));
  });
}

/** Names injected into a new pod, with the object: `PullSecretProfile/team`. None if the ServiceAccount would reject them. */
export function injectedNames(
  store: ObjectStore,
  object: KubeObject,
  listed: readonly string[],
  account: KubeObject | undefined,
) {
  const names = plannedNames(store, object, listed)
    .filter(({ inForce }) => inForce)
    .map(({ name, by }) => ({ name, by: sourceObject(by) }));
  const wanted = [...listed, ...names.map(({ name }) => name)];
  return account !== undefined && accountRefuses(account, wanted) ? [] : names;
}

/** The profile of a source such as `profile/team`; undefined for other sources. */
export function profileOf(store: ObjectStore, source: string): KubeObject | undefined {
  const [sort, name = ''] = source.split('/');
  return sort === 'profile' ? store.get({ ...PROFILE, name }) : undefined;
}

function sourceObject(source: string): string {
  const [sort, ...rest] = source.split('/');
  return `${sort === 'profile' ? PROFILE.kind : 'SidecarSet'}/${rest.join('/')}`;
}

/** Adds the copies that profiles will sync to the store, as the reconciler would. Returns a warning for each failing profile. */
export function bringCopies(store: ObjectStore): readonly string[] {
  if (DECLARATIONS.every((kind) => store.list(kind).length === 0)) return [];
  // With `admission: 'none'` the reconciler deletes the present policy, which shows what is injected: restore it.
  const inForce = FORCE_KINDS.flatMap((kind) => store.list(kind));
  const reported = [...store].filter(({ kind, status }) => kind !== 'Pod' && status !== undefined);
  runOffline({
    reconcilers: [pullSecretInjection({ ...toldIn(store), audit: false, admission: 'none' })],
    scope: { name: 'local', controlPlaneNamespace: '' },
    stores: { hosted: store, management: store },
    now: new Date(),
  });
  for (const object of inForce) store.set(object);
  const notes = store.list(PROFILE).flatMap((profile) =>
    [...TOLD].flatMap((type) => {
      const said = conditionOf(profile, type);
      if (said?.status !== 'False') return [];
      return [`warning: ${PROFILE.kind}/${profile.metadata.name}: ${said.message}`];
    }),
  );
  // Restore statuses of a dump. Simulated statuses are for manifests without one.
  for (const object of reported) store.set(object);
  return notes;
}

const TOLD: ReadonlySet<string> = new Set(CAUSES.map(({ type }) => type));
