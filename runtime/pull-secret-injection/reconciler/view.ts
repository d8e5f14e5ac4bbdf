/** The reconciler's view of the profiles and SidecarSets in a cluster. Each object is parsed once. */

import { type ConditionInput, readiness } from '../../core/kubernetes/conditions.ts';
import { type Labels, NAMESPACE_NAME_LABEL, selects } from '../../core/kubernetes/label-selector.ts';
import { type KubeObject, LAST_APPLIED, listedPullSecrets } from '../../core/kubernetes/object.ts';
import { oncePer, recordsIn, remember } from '../../core/record.ts';
import { counted, someOf } from '../../core/text.ts';
import type { Reader, Ref, Result } from '../../engine/contract.ts';
import { reportPullStatus } from '../../engine/pull-status.ts';
import {
  compareProfiles,
  copiesOf,
  PROFILE,
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
import {
  excludedNamespaces,
  type InjectionOptions,
  isOutside,
  isSkipped,
  RECONCILER_NAME,
} from '../options.ts';
import {
  DISTRIBUTE_LABEL,
  ENFORCE_MOUNTABLE_SECRETS,
  type EnforcingAccount,
  type InjectionPlan,
  injectionPlan,
} from '../plan/plan.ts';

/** A cluster, and the options of the reconciler. */
export interface Context {
  readonly reader: Reader;
  readonly options: InjectionOptions;
}

/** Namespace of Kruise's SidecarSet revisions. Others are ignored: a tenant could label its own ControllerRevision. */
export const KRUISE_NAMESPACE = 'kruise-system';

function revisionObjects(reader: Reader): readonly KubeObject[] {
  const kind = { role: 'hosted', apiVersion: 'apps/v1', kind: 'ControllerRevision' } as const;
  return reader.list({ ...kind, namespace: KRUISE_NAMESPACE });
}

/** Candidate revisions of a pinned set; empty if the set has no pin. */
export function revisionsOf(reader: Reader, { pin }: SidecarSet): readonly SidecarSetRevision[] {
  return pin === undefined ? [] : revisionObjects(reader).flatMap((object) => readRevision(object) ?? []);
}

export const KRUISE_WEBHOOK = {
  role: 'hosted',
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'MutatingWebhookConfiguration',
  name: 'kruise-mutating-webhook-configuration',
} as const;

/** A profile, or a SidecarSet with a source namespace. */
export type Distributor = PullSecretProfile;

/** Distinguishes SidecarSets from profiles, whose names contain no slash. */
export const SET_PREFIX = 'sidecarset/';

/** The name of a profile or SidecarSet in the annotation of its copies. */
export function bringerName({ kind, metadata }: Pick<KubeObject, 'kind' | 'metadata'>): string {
  return kind === PROFILE.kind ? metadata.name : `${SET_PREFIX}${metadata.name}`;
}

/** Reports whether the distributor is a SidecarSet. */
export function isSidecarSet({ name }: Pick<Distributor, 'name'>): boolean {
  return name.startsWith(SET_PREFIX);
}

const readByName = new Map<string, { readonly text: string; readonly read: ReadProfile }>();
/** Above the number of profiles that one policy supports. */
const REMEMBERED_PROFILES = 2000;

/** Parses a profile once per object. A status update returns the same value, so it invalidates no other cache. */
export const profileOf: (object: KubeObject) => ReadProfile = oncePer((object) => {
  const { name, annotations, creationTimestamp } = object.metadata;
  const text = JSON.stringify([object.spec ?? null, creationTimestamp, annotations?.[LAST_APPLIED]]);
  const before = readByName.get(name);
  const read = before?.text === text ? before.read : readProfile(object);
  remember(readByName, name, { text, read }, REMEMBERED_PROFILES);
  return read;
});

function profileObjects(reader: Reader): readonly KubeObject[] {
  return reader.list({ role: 'hosted', ...PROFILE });
}

const sortedProfiles = oncePer((objects: readonly KubeObject[]): readonly PullSecretProfile[] =>
  objects
    .map(profileOf)
    .flatMap((read) => (read.ok ? [read.profile] : []))
    .sort(compareProfiles),
);

/** The valid profiles, sorted by order and name. */
export function profilesIn(reader: Reader): readonly PullSecretProfile[] {
  return sortedProfiles(profileObjects(reader));
}

function setLists(reader: Reader): readonly (readonly KubeObject[])[] {
  return SIDECAR_SET_API_VERSIONS.map((apiVersion) =>
    reader.list({ role: 'hosted', apiVersion, kind: 'SidecarSet' }),
  );
}

/** The SidecarSet objects, each once, in the newest version that the cluster serves. */
export function sidecarSetObjects(reader: Reader): readonly KubeObject[] {
  const oldestFirst = setLists(reader).toReversed().flat();
  return [...new Map(oldestFirst.map((object) => [object.metadata.name, object])).values()];
}

/** Parses a SidecarSet once per object. */
export const sidecarSetOf: (object: KubeObject) => SidecarSet = oncePer(readSidecarSet);

const unpinnedDistributor = oncePer((object: KubeObject) => distributorWith(object, []));

function distributorOf(reader: Reader, object: KubeObject): readonly Distributor[] {
  const set = sidecarSetOf(object);
  return set.pin === undefined
    ? unpinnedDistributor(object)
    : distributorWith(object, revisionsOf(reader, set));
}

/** The distributor of a SidecarSet with a source namespace; empty for others. */
function distributorWith(
  object: KubeObject,
  revisions: readonly SidecarSetRevision[],
): readonly Distributor[] {
  const set = sidecarSetOf(object);
  const namespace = object.metadata.annotations?.[SOURCE_NAMESPACE_ANNOTATION];
  const selector = set.namespaceSelector ?? { ok: true as const, requirements: [] };
  if (typeof namespace !== 'string' || !selector.ok) return [];
  // A pinned set delivers the names that pods get now, and those that they get once the pin is removed.
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
      copies: copiesOf(),
      successor: undefined,
      createdAt: undefined,
    },
  ];
}

/** Reports whether Kruise's own pod webhook is registered: Kruise then handles SidecarSets. */
export function kruiseInjects(reader: Reader): boolean {
  return recordsIn(reader.get(KRUISE_WEBHOOK)?.['webhooks']).some(({ name }) => name === 'mpod.kb.io');
}

/** The injection plan of the cluster. A pinned set without its revision is ignored: upstream rejects its pods. */
export function planIn({ reader, options }: Context): InjectionPlan {
  const sets = kruiseInjects(reader) ? [] : pinnedSetsIn(reader);
  return injectionPlan(profilesIn(reader), sets, { withoutContainers: options.withoutContainers });
}

/** The SidecarSets with pinned revisions, whether or not Kruise is installed. */
export function pinnedSetsIn(reader: Reader): readonly SidecarSet[] {
  return sidecarSetObjects(reader)
    .map(sidecarSetOf)
    .flatMap((set) => pinVariants(set, revisionsOf(reader, set)));
}

/** All distributors, indexed. */
export type Distribution = Readonly<ReturnType<typeof makeDistribution>>;

type Lists = readonly (readonly unknown[])[];

function sameLists(a: Lists, b: Lists): boolean {
  return a.every((list, at) => {
    const other = b[at] ?? [];
    return (
      list === other || (list.length === other.length && list.every((one, index) => one === other[index]))
    );
  });
}

/** The last distribution of a cluster, and the lists of objects that it was made from. */
const lastOf = oncePer((_scope: Reader['scope']): { lists: Lists; made?: Distribution } => ({ lists: [] }));

/** All distributors of the cluster. Returns the same object while the content is equal, even after a status update. */
export function distributionIn(reader: Reader): Distribution {
  const objects = profileObjects(reader);
  const isPinned = sidecarSetObjects(reader).some((object) => sidecarSetOf(object).pin !== undefined);
  const lists = [objects, ...setLists(reader), isPinned ? revisionObjects(reader) : []];
  const last = lastOf(reader.scope);
  if (last.made !== undefined && sameLists(last.lists, lists)) return last.made;
  const next = makeDistribution(reader, objects);
  last.lists = lists;
  if (last.made === undefined || !sameLists(contentOf(last.made), contentOf(next))) last.made = next;
  return last.made;
}

function contentOf({ distributors, unreadable }: Distribution): Lists {
  return [distributors, [...unreadable]];
}

function makeDistribution(reader: Reader, objects: readonly KubeObject[]) {
  const sets = sidecarSetObjects(reader);
  const bringing = sets.flatMap((object) => distributorOf(reader, object)).sort(compareProfiles);
  /** In order of precedence. */
  const distributors = [...profilesIn(reader), ...bringing].filter((one) => one.distributes);
  /** Distributors by Secret name, in order of precedence. */
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
    /** The source Secrets, as `<namespace>/<name>`. */
    sources: new Set(secrets.flatMap(({ sources }) => sources.map(sourceName))),
    /** Currently invalid profiles and SidecarSets, as named in {@link PROFILE_ANNOTATION}: their copies are kept. */
    unreadable: new Set(unreadable.map(bringerName)),
  };
}

const SYSTEM_NAMESPACES: readonly string[] = ['kube-system', 'kube-public', 'kube-node-lease'];

/**
 * Reports whether the profile serves the namespace. Namespaces that opted out or are outside `namespaces` are never served.
 * System, own and excluded namespaces are served only if the selector lists their name.
 */
export function serves(one: Distributor, labels: Labels, options: InjectionOptions): boolean {
  if (labels[DISTRIBUTE_LABEL] === 'false' || !selects(one.namespaceSelector, labels)) return false;
  const name = labels[NAMESPACE_NAME_LABEL] ?? '';
  if (isOutside(name, options)) return false;
  if (!SYSTEM_NAMESPACES.includes(name) && !excludedNamespaces(options).includes(name)) return true;
  return one.namespaceSelector.some(
    ({ key, operator, values = [] }) =>
      key === NAMESPACE_NAME_LABEL && operator === 'In' && values.includes(name),
  );
}

/** Reports whether a namespace is being deleted. */
export function isTerminating(namespace: KubeObject): boolean {
  const phase = (namespace.status as { phase?: string } | undefined)?.phase;
  return namespace.metadata.deletionTimestamp !== undefined || phase === 'Terminating';
}

/** Labels of a namespace. The name label is set as the API server does, also for manifests in a folder. */
export function namespaceLabels(namespace: KubeObject): Labels {
  return { ...namespace.metadata.labels, 'kubernetes.io/metadata.name': namespace.metadata.name };
}

// Secrets outside the reconciler's rights: they may exist although the cache does not hold them.

/** Returns why the Secret is not read, and the remedy; undefined if it is read. */
export function unreadText({ reader, options }: Context, { namespace, name }: ProfileSource) {
  const id = sourceName({ namespace, name });
  const { namespaces, secretNames, sources } = options;
  if (isOutside(namespace, options))
    return `Secret "${id}" is not read: the fleet limits pull-secret-injection to ${namesText(namespaces)}; add "${namespace}" to its namespaces`;
  if (namespaces.length === 0) return undefined;
  if (secretNames.length > 0 && !secretNames.includes(name) && !sources.includes(id))
    return `Secret "${id}" is not read: the fleet limits the Secrets that pull-secret-injection may read; add "${name}" to its secretNames, or the profile to its profiles`;
  if (reader.isUnreadable(secretRef(namespace, name)))
    return `Secret "${id}" cannot be read: the Role of pull-secret-injection in namespace "${namespace}" is missing; apply the rendered manifests of the namespace`;
  return undefined;
}

/** Lists quoted names, e.g. `"a", "b"`. */
export function namesText(names: readonly string[]): string {
  return someOf(
    names.map((name) => `"${name}"`),
    5,
  );
}

// ServiceAccounts that enforce mountable secrets: their pods are skipped. A PullStatus and a profile condition report them.

export const SERVICE_ACCOUNT = { role: 'hosted', apiVersion: 'v1', kind: 'ServiceAccount' } as const;

/** Reports whether pods of the account are rejected for a name that the account does not list. */
function isEnforcing({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[ENFORCE_MOUNTABLE_SECRETS] === 'true';
}

/** Reports whether a pod of the account with these names would be rejected. */
export function accountRefuses(account: KubeObject | undefined, names: readonly string[]): boolean {
  const listed = new Set(listedPullSecrets(account));
  return account !== undefined && isEnforcing(account) && names.some((name) => !listed.has(name));
}

const enforcing = oncePer((objects: readonly KubeObject[]): readonly EnforcingAccount[] =>
  objects.filter(isEnforcing).map((account) => ({
    namespace: account.metadata.namespace ?? '',
    name: account.metadata.name,
    listed: listedPullSecrets(account),
  })),
);

/** The accounts that enforce mountable secrets. Computed once per change of an account. */
export function enforcingIn(reader: Reader): readonly EnforcingAccount[] {
  return enforcing(reader.list(SERVICE_ACCOUNT));
}

/** Reports whether any account of the namespace enforces mountable secrets. */
export function accountsMatter(reader: Reader, namespace: string): boolean {
  return reader.list({ ...SERVICE_ACCOUNT, namespace }).some(isEnforcing);
}

/** The names that an enforcing account lists, as text; empty for all other accounts. */
export function accountSays(object: KubeObject | undefined): string {
  return object === undefined || !isEnforcing(object) ? '' : JSON.stringify(object['imagePullSecrets'] ?? []);
}

/** Reports whether the profile adds names to pods of the namespace, regardless of their labels. */
function reaches(profile: PullSecretProfile, namespace: KubeObject | undefined, options: InjectionOptions) {
  const { injects, suspended, namespaceSelector } = profile;
  if (namespace === undefined || isTerminating(namespace)) return false;
  if (!injects || suspended || options.admission === 'none') return false;
  const { name } = namespace.metadata;
  const labels = namespaceLabels(namespace);
  const pod = { namespace: name, labels: {}, annotations: {}, namespaceLabels: labels };
  return selects(namespaceSelector, labels) && !isSkipped(pod, options);
}

/** Names of the profile that the enforcing account does not list, and for which its pods would be rejected. */
function withheld({ listed }: EnforcingAccount, { secrets }: PullSecretProfile): readonly string[] {
  return secrets.map(({ name }) => name).filter((name) => !listed.includes(name));
}

/** Reconciles the accounts of one namespace: each one whose pods are skipped gets a PullStatus. */
export function reconcileAccounts({ reader, options }: Context, name: string): Result {
  const namespace = reader.get(namespaceRef(name));
  if (namespace === undefined || isTerminating(namespace)) return { retain: 'all' };
  const profiles = profilesIn(reader).filter((profile) => reaches(profile, namespace, options));
  const reports = enforcingIn(reader)
    .filter((account) => account.namespace === name)
    .flatMap((account) => {
      const reason = 'MountableSecretsEnforced';
      const verdicts = profiles.flatMap((profile) =>
        withheld(account, profile).map((subject) => ({
          subject,
          verdict: 'Warning' as const,
          reason,
          message: `is not injected into pods of ServiceAccount "${account.name}", which does not list it (profile "${profile.name}")`,
        })),
      );
      if (verdicts.length === 0) return [];
      const message = `ServiceAccount "${account.name}" enforces mountable secrets: its pods are not injected until it lists the Secrets of profiles; list them in imagePullSecrets, or remove the annotation ${ENFORCE_MOUNTABLE_SECRETS}`;
      const said = reportPullStatus(reader, 'hosted', {
        reporter: RECONCILER_NAME,
        about: { apiVersion: 'v1', kind: 'ServiceAccount', namespace: name, name: account.name },
        conditions: readiness('stalled', { reason, message }),
        verdicts,
      });
      return [said];
    });
  return { apply: reports.map(({ apply }) => apply), status: reports.map(({ status }) => status) };
}

/** Condition of a profile on accounts whose pods are skipped. The platform cannot fix them: their owners get a PullStatus. */
export function accountConditions(context: Context, profile: PullSecretProfile): readonly ConditionInput[] {
  const { reader, options } = context;
  const names = enforcingIn(reader)
    .filter(
      (account) =>
        withheld(account, profile).length > 0 &&
        reaches(profile, reader.get(namespaceRef(account.namespace)), options),
    )
    .map(({ namespace, name }) => `${namespace}/${name}`);
  if (names.length === 0) return [];
  const enforce = names.length === 1 ? 'it enforces' : 'they enforce';
  const message = `Pods of ${counted(names.length, 'ServiceAccount')} are not injected: ${enforce} mountable secrets and ${names.length === 1 ? 'does' : 'do'} not list the Secrets: ${namesText(names)}; their owners must list them, or remove the annotation`;
  return [{ type: 'AccountsServed', status: 'False', reason: 'MountableSecretsEnforced', message }];
}

// Annotations of copies, and references to copies and sources.

export const SOURCES_ANNOTATION = 'pullwright.dev/sources';
export const PROFILE_ANNOTATION = 'pullwright.dev/profile';
/** Set by the owner of a foreign Secret to let the reconciler adopt it. */
export const ADOPT_ANNOTATION = 'pullwright.dev/adopt';

/** A reference to a Secret in the hosted cluster. */
export function secretRef(namespace: string, name: string): Ref {
  return { role: 'hosted', apiVersion: 'v1', kind: 'Secret', namespace, name };
}

/** A reference to the profile object. */
export function profileRef(name: string): Ref {
  return { role: 'hosted', ...PROFILE, name };
}

/** A reference to the Namespace object. */
export function namespaceRef(name: string): Ref {
  return { role: 'hosted', apiVersion: 'v1', kind: 'Namespace', name };
}

/** `platform/quay-robot` */
export function sourceName(source: ProfileSource): string {
  return `${source.namespace}/${source.name}`;
}
