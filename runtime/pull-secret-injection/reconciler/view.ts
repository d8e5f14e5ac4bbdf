/** What the reconciler makes of the profiles and SidecarSets in a world. Reading each object is done once per object. */

import {
  type LabelRequirement,
  type Labels,
  NAMESPACE_NAME_LABEL,
  selects,
} from '../../core/kubernetes/label-selector.ts';
import { type KubeObject, LAST_APPLIED } from '../../core/kubernetes/object.ts';
import { oncePer } from '../../core/record.ts';
import type { Reader } from '../../engine/contract.ts';
import {
  compareProfiles,
  PLAIN_COPIES,
  PROFILE_API_VERSION,
  PROFILE_KIND,
  type ProfileSource,
  type PullSecretProfile,
  type ReadProfile,
  readProfile,
} from '../kinds/profile.ts';
import {
  pinVariants,
  readRevision,
  readSidecarSet,
  SIDECAR_SET_API_VERSIONS,
  type SidecarSet,
  type SidecarSetRevision,
  SOURCE_NAMESPACE_ANNOTATION,
} from '../kinds/sidecar-set.ts';
import { secretRef, sourceName } from '../names.ts';
import { excludedNamespaces, type InjectionOptions, isOutside } from '../options.ts';
import { DISTRIBUTE_LABEL, type InjectionPlan, injectionPlan } from '../plan/plan.ts';

/** Where Kruise keeps the revisions of SidecarSets: a tenant may label a ControllerRevision in its own namespace. */
export const KRUISE_NAMESPACE = 'kruise-system';

function revisionObjects(reader: Reader): readonly KubeObject[] {
  const kind = { role: 'hosted', apiVersion: 'apps/v1', kind: 'ControllerRevision' } as const;
  return reader.list({ ...kind, namespace: KRUISE_NAMESPACE });
}

/** The revisions that a pinned set may mean; none are looked for where nothing is pinned. */
export function revisionsOf(reader: Reader, { pin }: SidecarSet): readonly SidecarSetRevision[] {
  return pin === undefined ? [] : revisionObjects(reader).flatMap((object) => readRevision(object) ?? []);
}

export const KRUISE_WEBHOOK_CONFIGURATION = 'kruise-mutating-webhook-configuration';

/** Who distributes: a profile, or a SidecarSet that names a source namespace. */
export type Distributor = PullSecretProfile;

/** Name of a SidecarSet among profiles, whose names have no slash. */
export const SET_PREFIX = 'sidecarset/';

/** What copies call the profile or SidecarSet. */
export function bringerName({ kind, metadata }: Pick<KubeObject, 'kind' | 'metadata'>): string {
  return kind === PROFILE_KIND ? metadata.name : `${SET_PREFIX}${metadata.name}`;
}

/** Whether it is a SidecarSet. */
export function isSidecarSet({ name }: Pick<Distributor, 'name'>): boolean {
  return name.startsWith(SET_PREFIX);
}

const readByName = new Map<string, { readonly text: string; readonly read: ReadProfile }>();
/** As many as one policy holds, and some more. */
const REMEMBERED_PROFILES = 2000;

/** Reads one profile, once per object, and returns the same value while the spec is equal: a new status changes nothing. */
export const profileOf: (object: KubeObject) => ReadProfile = oncePer((object) => {
  const { name, annotations, creationTimestamp } = object.metadata;
  const text = JSON.stringify([object.spec ?? null, creationTimestamp, annotations?.[LAST_APPLIED]]);
  const before = readByName.get(name);
  const read = before?.text === text ? before.read : readProfile(object);
  if (readByName.size > REMEMBERED_PROFILES) readByName.clear();
  readByName.set(name, { text, read });
  return read;
});

function profileObjects(reader: Reader): readonly KubeObject[] {
  return reader.list({ role: 'hosted', apiVersion: PROFILE_API_VERSION, kind: PROFILE_KIND });
}

const sortedProfiles = oncePer((objects: readonly KubeObject[]): readonly PullSecretProfile[] =>
  objects
    .map(profileOf)
    .flatMap((read) => (read.ok ? [read.profile] : []))
    .sort(compareProfiles),
);

/** The valid profiles, by order and name. */
export function profilesIn(reader: Reader): readonly PullSecretProfile[] {
  return sortedProfiles(profileObjects(reader));
}

function setLists(reader: Reader): readonly (readonly KubeObject[])[] {
  return SIDECAR_SET_API_VERSIONS.map((apiVersion) =>
    reader.list({ role: 'hosted', apiVersion, kind: 'SidecarSet' }),
  );
}

/** The SidecarSet objects in the newest version that the cluster serves; each once. */
export function sidecarSetObjects(reader: Reader): readonly KubeObject[] {
  const oldestFirst = setLists(reader).toReversed().flat();
  return [...new Map(oldestFirst.map((object) => [object.metadata.name, object])).values()];
}

/** A SidecarSet, read once per object. */
export const sidecarSetOf: (object: KubeObject) => SidecarSet = oncePer(readSidecarSet);

const unpinnedDistributor = oncePer((object: KubeObject) => distributorWith(object, []));

function distributorOf(reader: Reader, object: KubeObject): readonly Distributor[] {
  const set = sidecarSetOf(object);
  return set.pin === undefined
    ? unpinnedDistributor(object)
    : distributorWith(object, revisionsOf(reader, set));
}

/** What a SidecarSet distributes if it says where its secrets come from. */
function distributorWith(
  object: KubeObject,
  revisions: readonly SidecarSetRevision[],
): readonly Distributor[] {
  const set = sidecarSetOf(object);
  const namespace = object.metadata.annotations?.[SOURCE_NAMESPACE_ANNOTATION];
  const selector = set.namespaceSelector ?? { ok: true as const, requirements: [] };
  if (typeof namespace !== 'string' || !selector.ok) return [];
  // Of a pinned set the names that pods get now, and those that they will get when the pin goes.
  const pinned = pinVariants(set, revisions).flatMap((one) => one.imagePullSecrets);
  const names = [...new Set([...pinned, ...set.imagePullSecrets])].filter((name) => name !== '');
  return [
    {
      name: bringerName(object),
      order: Number.MAX_SAFE_INTEGER,
      selector: [],
      namespaceSelector: selector.requirements,
      secrets: names.map((name) => ({ name, sources: [{ namespace, name }], onCollision: 'FirstWins' })),
      injects: false,
      distributes: true,
      suspended: set.paused,
      copies: PLAIN_COPIES,
    },
  ];
}

/** Whether Kruise's own pod webhook is at work: SidecarSets are its business then. */
export function kruiseInjects(reader: Reader): boolean {
  const configuration = reader.get({
    role: 'hosted',
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    name: KRUISE_WEBHOOK_CONFIGURATION,
  });
  const webhooks = configuration?.['webhooks'];
  return Array.isArray(webhooks) && webhooks.some((hook: { name?: unknown }) => hook.name === 'mpod.kb.io');
}

/** Everything that injects, with pinned revisions. A set whose revision is missing is ignored, as upstream rejects it. */
export function planIn(reader: Reader, options: InjectionOptions): InjectionPlan {
  const sets = kruiseInjects(reader) ? [] : pinnedSetsIn(reader);
  return injectionPlan(profilesIn(reader), sets, { withoutContainers: options.withoutContainers });
}

/** The SidecarSets of the cluster, with or without Kruise, with pinned revisions. */
export function pinnedSetsIn(reader: Reader): readonly SidecarSet[] {
  return sidecarSetObjects(reader)
    .map(sidecarSetOf)
    .flatMap((set) => pinVariants(set, revisionsOf(reader, set)));
}

/** What distributes. */
export interface Distribution {
  /** In the order in which they win. */
  readonly distributors: readonly Distributor[];
  /** Who distributes a Secret of this name, in order. */
  readonly byName: ReadonlyMap<string, readonly Distributor[]>;
  /** The source Secrets, as `<namespace>/<name>`. */
  readonly sources: ReadonlySet<string>;
  /** Profiles and SidecarSets that cannot be read now, as copies call them: their copies stay until they can. */
  readonly unreadable: ReadonlySet<string>;
}

type Lists = readonly (readonly unknown[])[];

function sameLists(a: Lists, b: Lists): boolean {
  return a.every((list, at) => {
    const other = b[at] ?? [];
    return (
      list === other || (list.length === other.length && list.every((one, index) => one === other[index]))
    );
  });
}

/** By the list of profiles. */
const distributions = new WeakMap<object, { readonly lists: Lists; readonly made: Distribution }>();
/** By the first member. */
const lastWith = new WeakMap<Distributor, { readonly lists: Lists; readonly made: Distribution }>();

/** Everything that distributes. The same object as long as it means the same, also when a status was written in between. */
export function distributionIn(reader: Reader): Distribution {
  const objects = profileObjects(reader);
  const isPinned = sidecarSetObjects(reader).some((object) => sidecarSetOf(object).pin !== undefined);
  const lists = [...setLists(reader), isPinned ? revisionObjects(reader) : []];
  const known = distributions.get(objects);
  if (known !== undefined && sameLists(known.lists, lists)) return known.made;
  const made = settled(makeDistribution(reader, objects));
  distributions.set(objects, { lists, made });
  return made;
}

function settled(made: Distribution): Distribution {
  const [first] = made.distributors;
  if (first === undefined) return made;
  const lists = [made.distributors, [...made.unreadable]];
  const before = lastWith.get(first);
  if (before !== undefined && sameLists(before.lists, lists)) return before.made;
  lastWith.set(first, { lists, made });
  return made;
}

function makeDistribution(reader: Reader, objects: readonly KubeObject[]): Distribution {
  const sets = sidecarSetObjects(reader);
  const bringing = sets.flatMap((object) => distributorOf(reader, object)).sort(compareProfiles);
  const distributors = [...profilesIn(reader), ...bringing].filter((one) => one.distributes);
  const byName = new Map<string, Distributor[]>();
  for (const one of distributors)
    for (const secret of one.secrets.filter(({ sources }) => sources.length > 0))
      byName.set(secret.name, [...(byName.get(secret.name) ?? []), one]);
  const unreadable = [
    ...objects.filter((object) => !profileOf(object).ok),
    ...sets.filter((object) => sidecarSetOf(object).namespaceSelector?.ok === false),
  ];
  const secrets = distributors.flatMap((one) => one.secrets);
  return {
    distributors,
    byName,
    sources: new Set(secrets.flatMap(({ sources }) => sources.map(sourceName))),
    unreadable: new Set(unreadable.map(bringerName)),
  };
}

/** Namespaces of the cluster itself: a selector that means everything does not mean them. */
const SYSTEM_NAMESPACES: readonly string[] = ['kube-system', 'kube-public', 'kube-node-lease'];

/**
 * Whether the profile serves the namespace. One that opted out or is not among those that are named is not served, and those of the cluster, of ourselves and the excluded ones only
 * by a selector that names them.
 */
export function serves(
  one: { readonly namespaceSelector: readonly LabelRequirement[] },
  labels: Labels,
  options: InjectionOptions,
): boolean {
  if (labels[DISTRIBUTE_LABEL] === 'false' || !selects(one.namespaceSelector, labels)) return false;
  const name = labels[NAMESPACE_NAME_LABEL] ?? '';
  if (isOutside(name, options)) return false;
  if (!SYSTEM_NAMESPACES.includes(name) && !excludedNamespaces(options).includes(name)) return true;
  return one.namespaceSelector.some(
    ({ key, operator, values = [] }) =>
      key === NAMESPACE_NAME_LABEL && operator === 'In' && values.includes(name),
  );
}

/** Whether a namespace is being deleted. */
export function isTerminating(namespace: KubeObject): boolean {
  const phase = (namespace.status as { phase?: string } | undefined)?.phase;
  return namespace.metadata.deletionTimestamp !== undefined || phase === 'Terminating';
}

/** Labels of a namespace. The name is what the API server says it is, also in a folder that no API server has seen. */
export function namespaceLabels(namespace: KubeObject): Labels {
  return { ...namespace.metadata.labels, 'kubernetes.io/metadata.name': namespace.metadata.name };
}

// Secrets that are not read, though they may be there: that they are not seen says nothing of them.

/** Why the Secret is not read, and what to do; undefined when it is. */
export function unreadText(
  reader: Reader,
  { namespace, name }: ProfileSource,
  options: InjectionOptions,
): string | undefined {
  const id = sourceName({ namespace, name });
  const { namespaces, secretNames, sources } = options;
  if (isOutside(namespace, options))
    return `Secret "${id}" is not read: the fleet has pull-secret-injection work in ${namesText(namespaces)} alone; add "${namespace}" to its namespaces`;
  if (namespaces.length === 0) return undefined;
  if (secretNames.length > 0 && !secretNames.includes(name) && !sources.includes(id))
    return `Secret "${id}" is not read: the fleet names the Secrets that pull-secret-injection may read; add "${name}" to its secretNames, or the profile to its profiles`;
  if (reader.isUnreadable(secretRef(namespace, name)))
    return `Secret "${id}" may not be read: the Role of pull-secret-injection in namespace "${namespace}" is missing; apply what synth renders for the namespace`;
  return undefined;
}

/** e.g. `"a", "b"`. */
export function namesText(names: readonly string[]): string {
  const some = names.slice(0, 5).map((name) => `"${name}"`);
  return `${some.join(', ')}${names.length > 5 ? ` and ${names.length - 5} more` : ''}`;
}
