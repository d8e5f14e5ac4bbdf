/** What the reconciler makes of the profiles and SidecarSets in a world. Reading each object is done once per object. */

import {
  type LabelRequirement,
  type Labels,
  NAMESPACE_NAME_LABEL,
  selects,
} from '../../core/kubernetes/label-selector.ts';
import { type KubeObject, LAST_APPLIED } from '../../core/kubernetes/object.ts';
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

// The revisions that Kruise keeps of SidecarSets.

/** Where Kruise keeps the revisions of SidecarSets: anybody may label a ControllerRevision in a namespace of its own. */
export const KRUISE_NAMESPACE = 'kruise-system';

function revisionObjects(reader: Reader): readonly KubeObject[] {
  const kind = { role: 'hosted', apiVersion: 'apps/v1', kind: 'ControllerRevision' } as const;
  return reader.list({ ...kind, namespace: KRUISE_NAMESPACE });
}

/** The revisions that a pinned set may mean; none are looked for where nothing is pinned. */
export function revisionsOf(reader: Reader, { pin }: SidecarSet): readonly SidecarSetRevision[] {
  return pin === undefined ? [] : readRevisions(revisionObjects(reader));
}

const readLists = new WeakMap<readonly KubeObject[], readonly SidecarSetRevision[]>();

/** Reads them, once for each list. */
export function readRevisions(objects: readonly KubeObject[]): readonly SidecarSetRevision[] {
  const known = readLists.get(objects) ?? objects.flatMap((object) => readRevision(object) ?? []);
  readLists.set(objects, known);
  return known;
}

export const KRUISE_WEBHOOK_CONFIGURATION = 'kruise-mutating-webhook-configuration';

/** Who distributes: a profile, or a SidecarSet that names a source namespace. */
export type Distributor = PullSecretProfile;

/** What a SidecarSet is called among profiles, whose names have no slash. */
export const SET_PREFIX = 'sidecarset/';

/** What copies call the profile or SidecarSet. */
export function bringerName({ kind, metadata }: Pick<KubeObject, 'kind' | 'metadata'>): string {
  return kind === PROFILE_KIND ? metadata.name : `${SET_PREFIX}${metadata.name}`;
}

/** Whether it is a SidecarSet. */
export function isSidecarSet({ name }: Pick<Distributor, 'name'>): boolean {
  return name.startsWith(SET_PREFIX);
}

const readProfiles = new WeakMap<KubeObject, ReadProfile>();
const readByName = new Map<string, { readonly text: string; readonly read: ReadProfile }>();
/** As many as one policy holds, and some more. */
const REMEMBERED_PROFILES = 2000;
const readSets = new WeakMap<KubeObject, { readonly set: SidecarSet; readonly distributor?: Distributor }>();

/** Reads one profile, once per object, and gives the same again as long as it says the same: a new status is nothing new. */
export function profileOf(object: KubeObject): ReadProfile {
  const known = readProfiles.get(object);
  if (known !== undefined) return known;
  const { name, annotations, creationTimestamp } = object.metadata;
  const text = JSON.stringify([object.spec ?? null, creationTimestamp, annotations?.[LAST_APPLIED]]);
  const before = readByName.get(name);
  const read = before?.text === text ? before.read : readProfile(object);
  readProfiles.set(object, read);
  if (readByName.size > REMEMBERED_PROFILES) readByName.clear();
  readByName.set(name, { text, read });
  return read;
}

const sortedProfiles = new WeakMap<readonly KubeObject[], readonly PullSecretProfile[]>();

/** The valid profiles, by order and name. */
export function profilesIn(reader: Reader): readonly PullSecretProfile[] {
  const objects = reader.list({ role: 'hosted', apiVersion: PROFILE_API_VERSION, kind: PROFILE_KIND });
  const known = sortedProfiles.get(objects);
  if (known !== undefined) return known;
  const profiles = objects
    .flatMap((object) => {
      const read = profileOf(object);
      return read.ok ? [read.profile] : [];
    })
    .sort(compareProfiles);
  sortedProfiles.set(objects, profiles);
  return profiles;
}

/** The SidecarSet objects in the newest version that the cluster serves; each once. */
export function sidecarSetObjects(reader: Reader): readonly KubeObject[] {
  const found = new Map<string, KubeObject>();
  for (const apiVersion of SIDECAR_SET_API_VERSIONS) {
    for (const object of reader.list({ role: 'hosted', apiVersion, kind: 'SidecarSet' }))
      if (!found.has(object.metadata.name)) found.set(object.metadata.name, object);
  }
  return [...found.values()];
}

/** A SidecarSet, and what it distributes if it says where its secrets come from. */
export function sidecarSetOf(object: KubeObject): {
  readonly set: SidecarSet;
  readonly distributor?: Distributor;
} {
  const known = readSets.get(object) ?? readSet(object);
  readSets.set(object, known);
  return known;
}

function readSet(object: KubeObject): { readonly set: SidecarSet; readonly distributor?: Distributor } {
  const set = readSidecarSet(object);
  const namespace = object.metadata.annotations?.[SOURCE_NAMESPACE_ANNOTATION];
  const namespaces = set.namespaceSelector ?? { ok: true as const, requirements: [] };
  if (typeof namespace !== 'string' || !namespaces.ok) return { set };
  return {
    set,
    distributor: {
      name: `${SET_PREFIX}${set.name}`,
      order: Number.MAX_SAFE_INTEGER,
      selector: [],
      namespaceSelector: namespaces.requirements,
      secrets: secretsFrom(namespace, set.imagePullSecrets),
      injects: false,
      distributes: true,
      suspended: set.paused,
      copies: PLAIN_COPIES,
    },
  };
}

function secretsFrom(namespace: string, names: readonly string[]): Distributor['secrets'] {
  return [...new Set(names)]
    .filter((name) => name !== '')
    .map((name) => ({ name, sources: [{ namespace, name }], onCollision: 'FirstWins' }));
}

/** What a pinned set brings: the names that pods get now, and those that they will get when the pin goes. */
function withPinned(object: KubeObject, revisions: readonly SidecarSetRevision[]): Distributor | undefined {
  const { set, distributor } = sidecarSetOf(object);
  if (distributor === undefined || set.pin === undefined) return distributor;
  const namespace = String(object.metadata.annotations?.[SOURCE_NAMESPACE_ANNOTATION]);
  const names = pinVariants(set, revisions).flatMap(({ imagePullSecrets }) => imagePullSecrets);
  return { ...distributor, secrets: secretsFrom(namespace, [...names, ...set.imagePullSecrets]) };
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

/** Everything that injects, with pinned revisions put in. A set whose revision is missing is left out, as upstream refuses it. */
export function planIn(reader: Reader, options: InjectionOptions): InjectionPlan {
  const sets = kruiseInjects(reader) ? [] : pinnedSetsIn(reader);
  return injectionPlan(profilesIn(reader), sets, { withoutContainers: options.withoutContainers });
}

/** The SidecarSets of the cluster, whoever injects them, with pinned revisions put in. */
export function pinnedSetsIn(reader: Reader): readonly SidecarSet[] {
  return sidecarSetObjects(reader).flatMap((object) => {
    const { set } = sidecarSetOf(object);
    return pinVariants(set, revisionsOf(reader, set));
  });
}

function sameList(a: readonly KubeObject[], b: readonly KubeObject[]): boolean {
  return a === b || (a.length === b.length && a.every((object, at) => object === b[at]));
}

/** What distributes, in the order in which it wins. */
export interface Distribution {
  readonly distributors: readonly Distributor[];
  /** Who distributes a Secret of this name, in order. */
  readonly byName: ReadonlyMap<string, readonly Distributor[]>;
}

/** By the lists that it was made from, and by its first member. */
const madeFrom = new WeakMap<
  object,
  { readonly sets: readonly (readonly KubeObject[])[]; readonly made: Distribution }
>();
const lastWith = new WeakMap<Distributor, Distribution>();

/** Everything that distributes. The same object as long as it means the same, also when a status was written in between. */
export function distributionIn(reader: Reader): Distribution {
  const profiles = profilesIn(reader);
  const sets = SIDECAR_SET_API_VERSIONS.map((apiVersion) =>
    reader.list({ role: 'hosted', apiVersion, kind: 'SidecarSet' }),
  );
  const pins = sidecarSetObjects(reader).some((object) => sidecarSetOf(object).set.pin !== undefined);
  const pinned = pins ? revisionObjects(reader) : [];
  sets.push(pinned);
  const known = madeFrom.get(profiles);
  if (known !== undefined && known.sets.every((list, at) => sameList(list, sets[at] ?? [])))
    return known.made;
  const made = settle(makeDistribution(reader, profiles, readRevisions(pinned)));
  madeFrom.set(profiles, { sets, made });
  return made;
}

function settle(made: Distribution): Distribution {
  const [first] = made.distributors;
  if (first === undefined) return made;
  const before = lastWith.get(first);
  const same =
    before?.distributors.length === made.distributors.length &&
    before.distributors.every((one, at) => one === made.distributors[at]);
  if (same) return before;
  lastWith.set(first, made);
  return made;
}

function makeDistribution(
  reader: Reader,
  profiles: readonly PullSecretProfile[],
  revisions: readonly SidecarSetRevision[],
): Distribution {
  const sets = sidecarSetObjects(reader).flatMap((object) => withPinned(object, revisions) ?? []);
  const distributors = [...profiles, ...sets.sort(compareProfiles)].filter((one) => one.distributes);
  const byName = new Map<string, Distributor[]>();
  for (const one of distributors)
    for (const secret of one.secrets.filter(({ sources }) => sources.length > 0))
      byName.set(secret.name, [...(byName.get(secret.name) ?? []), one]);
  return { distributors, byName };
}

const sourceNames = new WeakMap<Distribution, ReadonlySet<string>>();

/** The Secrets that something is to be brought from, as `<namespace>/<name>`. */
export function sourcesIn(reader: Reader): ReadonlySet<string> {
  const distribution = distributionIn(reader);
  const known = sourceNames.get(distribution);
  if (known !== undefined) return known;
  const names = distribution.distributors.flatMap(({ secrets }) =>
    secrets.flatMap(({ sources }) => sources.map(sourceName)),
  );
  const made = new Set(names);
  sourceNames.set(distribution, made);
  return made;
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

// Profiles and SidecarSets that cannot be read now: what they brought stays until they can.

interface Unreadable {
  readonly sets: readonly (readonly KubeObject[])[];
  readonly names: ReadonlySet<string>;
}

/** By the list of profiles: asked for with each copy. */
const unreadable = new WeakMap<readonly KubeObject[], Unreadable>();

/** Their names, as copies call them. */
export function unreadableIn(reader: Reader): ReadonlySet<string> {
  const profiles = reader.list({ role: 'hosted', apiVersion: PROFILE_API_VERSION, kind: PROFILE_KIND });
  const sets = SIDECAR_SET_API_VERSIONS.map((apiVersion) =>
    reader.list({ role: 'hosted', apiVersion, kind: 'SidecarSet' }),
  );
  const known = unreadable.get(profiles);
  if (known?.sets.every((list, at) => list === sets[at]) === true) return known.names;
  const names = new Set([
    ...profiles.filter((object) => !profileOf(object).ok).map(bringerName),
    ...sidecarSetObjects(reader)
      .filter((object) => sidecarSetOf(object).set.namespaceSelector?.ok === false)
      .map(bringerName),
  ]);
  unreadable.set(profiles, { sets, names });
  return names;
}
