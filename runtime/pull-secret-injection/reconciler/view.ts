/** What the reconciler makes of the profiles and SidecarSets in a world. Reading each object is done once per object. */
import type { World } from '../../controller/contract.ts';
import {
  compareProfiles,
  PROFILE_API_VERSION,
  PROFILE_KIND,
  type PullSecretProfile,
  type ReadProfile,
  readProfile,
} from '../../rules/injection/profile.ts';
import { PLAIN_COPIES } from '../../rules/injection/profile-copies.ts';
import { DISTRIBUTE_LABEL, type InjectionPlan, injectionPlan } from '../../rules/injection/profile-plan.ts';
import {
  readSidecarSet,
  SIDECAR_SET_API_VERSIONS,
  type SidecarSet,
  type SidecarSetRevision,
  SOURCE_NAMESPACE_ANNOTATION,
} from '../../rules/injection/sidecar-set.ts';
import { pinVariants } from '../../rules/injection/sidecar-set-injection.ts';
import {
  type LabelRequirement,
  type Labels,
  NAMESPACE_NAME_LABEL,
  selects,
} from '../../rules/kubernetes/label-selector.ts';
import { type KubeObject, LAST_APPLIED } from '../../rules/kubernetes/object.ts';
import { excludedNamespaces, type InjectionOptions, isOutside } from '../options.ts';
import { sourceName } from './names.ts';
import { readRevisions, revisionObjects, revisionsOf } from './revisions.ts';

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
export function profilesIn(world: World): readonly PullSecretProfile[] {
  const objects = world.list({ role: 'hosted', apiVersion: PROFILE_API_VERSION, kind: PROFILE_KIND });
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
export function sidecarSetObjects(world: World): readonly KubeObject[] {
  const found = new Map<string, KubeObject>();
  for (const apiVersion of SIDECAR_SET_API_VERSIONS) {
    for (const object of world.list({ role: 'hosted', apiVersion, kind: 'SidecarSet' }))
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
export function kruiseInjects(world: World): boolean {
  const configuration = world.get({
    role: 'hosted',
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    name: KRUISE_WEBHOOK_CONFIGURATION,
  });
  const webhooks = configuration?.['webhooks'];
  return Array.isArray(webhooks) && webhooks.some((hook: { name?: unknown }) => hook.name === 'mpod.kb.io');
}

/** Everything that injects, with pinned revisions put in. A set whose revision is missing is left out, as upstream refuses it. */
export function planIn(world: World, options: InjectionOptions): InjectionPlan {
  const sets = kruiseInjects(world) ? [] : pinnedSetsIn(world, options);
  return injectionPlan(profilesIn(world), sets, { withoutContainers: options.withoutContainers });
}

/** The SidecarSets of the cluster, whoever injects them, with pinned revisions put in. */
export function pinnedSetsIn(world: World, options: InjectionOptions): readonly SidecarSet[] {
  return sidecarSetObjects(world).flatMap((object) => {
    const { set } = sidecarSetOf(object);
    return pinVariants(set, revisionsOf(world, set, options), options.missingRevision);
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
export function distributionIn(world: World, options: InjectionOptions): Distribution {
  const profiles = profilesIn(world);
  const sets = SIDECAR_SET_API_VERSIONS.map((apiVersion) =>
    world.list({ role: 'hosted', apiVersion, kind: 'SidecarSet' }),
  );
  const pins = sidecarSetObjects(world).some((object) => sidecarSetOf(object).set.pin !== undefined);
  const pinned = pins ? revisionObjects(world, options) : [];
  sets.push(pinned);
  const known = madeFrom.get(profiles);
  if (known !== undefined && known.sets.every((list, at) => sameList(list, sets[at] ?? [])))
    return known.made;
  const made = settle(makeDistribution(world, profiles, readRevisions(pinned)));
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
  world: World,
  profiles: readonly PullSecretProfile[],
  revisions: readonly SidecarSetRevision[],
): Distribution {
  const sets = sidecarSetObjects(world).flatMap((object) => withPinned(object, revisions) ?? []);
  const distributors = [...profiles, ...sets.sort(compareProfiles)].filter((one) => one.distributes);
  const byName = new Map<string, Distributor[]>();
  for (const one of distributors)
    for (const secret of one.secrets.filter(({ sources }) => sources.length > 0))
      byName.set(secret.name, [...(byName.get(secret.name) ?? []), one]);
  return { distributors, byName };
}

const sourceNames = new WeakMap<Distribution, ReadonlySet<string>>();

/** The Secrets that something is to be brought from, as `<namespace>/<name>`. */
export function sourcesIn(world: World, options: InjectionOptions): ReadonlySet<string> {
  const distribution = distributionIn(world, options);
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
