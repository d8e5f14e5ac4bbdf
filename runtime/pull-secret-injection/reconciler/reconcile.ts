/**
 * Pull secret injection and distribution as one reconciler with eight sorts of keys: a namespace (its copies), the pods and the
 * ServiceAccounts of a namespace, the admission policy, the status of a profile, that of a grant, that of a claim, the report on a SidecarSet.
 *
 * A namespace is a key of its own, so that a change of the source is seen by each copy that is still to be written, and
 * never waits behind the copies of the last one.
 */

import { UsageError } from '../../core/errors.ts';
import {
  PULL_STATUS_API_VERSION,
  PULL_STATUS_KIND,
  pullStatusName,
} from '../../core/kubernetes/pull-status.ts';
import { readValue } from '../../core/kubernetes/read-spec.ts';
import { oncePer } from '../../core/record.ts';
import {
  OWNER_LABEL,
  type Reader,
  type Reconciler,
  type Ref,
  type Request,
  type Watch,
} from '../../engine/contract.ts';
import { GRANT_API_VERSION, GRANT_KIND, type PullSecretGrant, readPullSecretGrant } from '../kinds/grant.ts';
import { PROFILE_API_VERSION, PROFILE_KIND, type ProfileSource } from '../kinds/profile.ts';
import { SIDECAR_SET_API_VERSIONS } from '../kinds/sidecar-set.ts';
import { DEFAULT_OPTIONS, type InjectionOptions, optionsSchema, RECONCILER_NAME } from '../options.ts';
import { WEBHOOK_NAME } from '../plan/plan.ts';
import { accountSays, accountsMatter, reconcileAccounts } from './accounts.ts';
import { reconcilePolicy } from './admission.ts';
import { reconcileNamespace } from './namespace.ts';
import { reconcileGrant, reconcileSidecarSet } from './other-status.ts';
import { ENDPOINT_SLICES, isPlanned, reconcilePods, SERVICE_NAME_LABEL } from './pods.ts';
import { reconcileProfile } from './profile-status.ts';
import { SECRET_TYPE } from './sources.ts';
import {
  type Distributor,
  distributionIn,
  isSidecarSet,
  KRUISE_WEBHOOK_CONFIGURATION,
  namespaceLabels,
  profilesIn,
  serves,
  sidecarSetObjects,
} from './view.ts';

/** Copies wait for the API server, each in a key of its own. */
const WORKERS = 32;
/** A profile counts results of its namespaces once they are done, and now and then before: each count reads all of them. */
const COUNT_DEBOUNCE_MS = 500;
/** With more namespaces, a change of one causes no count: the profile counts again within ten seconds. */
const PROMPT_NAMESPACES = 200;
const ADMISSION = 'admissionregistration.k8s.io';

/** Everything that is read; namespaced objects only in the named namespaces, if any are named. */
function readsOf(options: InjectionOptions): readonly Watch[] {
  const hosted = (apiVersion: string, kind: string, rest: Partial<Watch> = {}): Watch => ({
    role: 'hosted',
    apiVersion,
    kind,
    ...rest,
  });
  return [
    hosted('v1', 'Namespace'),
    ...inNamespaces(options),
    hosted(PROFILE_API_VERSION, PROFILE_KIND, { optional: true }),
    hosted(GRANT_API_VERSION, GRANT_KIND, { optional: true }),
    hosted(PULL_STATUS_API_VERSION, PULL_STATUS_KIND, { optional: true }),
    ...SIDECAR_SET_API_VERSIONS.map((apiVersion) => hosted(apiVersion, 'SidecarSet', { optional: true })),
    hosted('apps/v1', 'ControllerRevision', { labelSelector: 'kruise.io/sidecarset-name' }),
    hosted(`${ADMISSION}/v1`, 'MutatingWebhookConfiguration', { name: KRUISE_WEBHOOK_CONFIGURATION }),
    ...(options.admission === 'webhook' ? webhookReads(options) : []),
    ...['v1', 'v1beta1'].flatMap((version) =>
      ['MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding'].map((kind) =>
        hosted(`${ADMISSION}/${version}`, kind, {
          labelSelector: `pullwright.dev/owner=${RECONCILER_NAME}`,
          optional: true,
        }),
      ),
    ),
  ];
}

/**
 * Secrets only of the one type that is distributed. Values of foreign Secrets are not requested; our copies are read whole.
 * The rights in a namespace are a Role there: one that is missing, or whose namespace is, stops no other.
 */
function inNamespaces(options: InjectionOptions): readonly Watch[] {
  const { namespaces, secretNames, sources, audit } = options;
  const secret = { apiVersion: 'v1', kind: 'Secret', fieldSelector: `type=${SECRET_TYPE}` } as const;
  const wide = [
    { ...secret, labelSelector: `${OWNER_LABEL}!=${RECONCILER_NAME}`, values: 'on-demand' },
    { ...secret, labelSelector: `${OWNER_LABEL}=${RECONCILER_NAME}` },
  ] as const;
  // Which accounts enforce mountable secrets, and which list names of ours.
  const others = [...(audit ? ['Pod'] : []), 'ServiceAccount'].map((kind) => ({ apiVersion: 'v1', kind }));
  if (namespaces.length === 0) return [...wide, ...others].map((read) => ({ role: 'hosted', ...read }));
  return namespaces.flatMap((namespace): readonly Watch[] => {
    const named = sources
      .filter((one) => one.startsWith(`${namespace}/`))
      .map((one) => one.slice(namespace.length + 1));
    const names = secretNames.length === 0 ? [] : [...new Set([...secretNames, ...named])];
    const secrets = names.length === 0 ? wide : names.map((name) => ({ ...secret, name }));
    return [...secrets, ...others].map((read) => ({ role: 'hosted', namespace, dispensable: true, ...read }));
  });
}

/** Whether the webhook is called, and whether one answers. */
function webhookReads({ ownNamespace }: InjectionOptions): readonly Watch[] {
  return [
    {
      role: 'hosted',
      apiVersion: `${ADMISSION}/v1`,
      kind: 'MutatingWebhookConfiguration',
      name: WEBHOOK_NAME,
    },
    {
      role: 'hosted',
      ...ENDPOINT_SLICES,
      namespace: ownNamespace,
      labelSelector: `${SERVICE_NAME_LABEL}=${WEBHOOK_NAME}`,
      optional: true,
    },
  ];
}

/** The reconciler, with options that were checked. */
export function pullSecretInjection(input: Partial<InjectionOptions> = {}): Reconciler {
  const options: InjectionOptions = { ...DEFAULT_OPTIONS, ...input };
  return {
    name: RECONCILER_NAME,
    watches: readsOf(options),
    workers: WORKERS,
    debounceMs: ({ name }) => (/^(profile|sidecarset)\//.test(name) ? COUNT_DEBOUNCE_MS : 0),
    secretsToRead: (reader) => distributionIn(reader).sources,
    requestsFor: (changed, reader) => keysFor(changed, reader, options),
    reconcile: (reader, key) => {
      const [sort, ...rest] = key.name.split('/');
      const name = rest.join('/');
      const { namespace = '' } = key;
      if (sort === 'namespace') return reconcileNamespace(reader, namespace, options);
      if (sort === 'accounts') return reconcileAccounts(reader, namespace, options);
      if (sort === 'pods') return reconcilePods(reader, namespace, options);
      if (sort === 'profile') return reconcileProfile(reader, name, options);
      if (sort === 'grant') return reconcileGrant(reader, namespace, name, options);
      if (sort === 'sidecarset') return reconcileSidecarSet(reader, name, options);
      return reconcilePolicy(reader, options);
    },
  };
}

/** For the table of reconcilers: reads options from the configuration file. */
export function reconcilers(input: Readonly<Record<string, unknown>>): readonly Reconciler[] {
  const path = `systems.${RECONCILER_NAME}`;
  const { value, problems } = readValue(input, optionsSchema, path);
  if (value === undefined) throw new UsageError(`Cannot read ${problems.join('; ')}`);
  return [pullSecretInjection(value)];
}

// Which keys a change concerns.
// A namespace is a key, and a profile is not: one broken namespace holds up no other, and a source that changes during a
// distribution overtakes what is still to be written.

/** Keys to look at again after `changed` changed, appeared or went away. */
function keysFor(changed: Ref, reader: Reader, options: InjectionOptions): readonly Request[] {
  const keys = new Keys(reader, options);
  switch (changed.kind) {
    case 'Namespace':
      return [...keys.namespace(changed.name), ...keys.counts()];
    case 'Pod':
      return [keys.key('pods', changed.namespace)];
    case 'ServiceAccount':
      return keys.account(changed);
    case 'Secret':
      return keys.secret(changed);
    case PROFILE_KIND:
    case 'SidecarSet':
      return keys.declaration(changed);
    case GRANT_KIND:
      return keys.grant(changed);
    case PULL_STATUS_KIND:
      return keys.namespace(changed.namespace ?? '');
    case 'ControllerRevision':
      return [...keys.policy(), ...keys.everyNamespace()];
    case 'MutatingWebhookConfiguration':
    case 'MutatingAdmissionPolicy':
    case 'MutatingAdmissionPolicyBinding':
    case 'EndpointSlice':
      return [...keys.policy(), ...keys.profiles(), ...keys.reportedPods()];
    default:
      return [];
  }
}

const saidBefore: (options: InjectionOptions) => Map<string, string> = oncePer(() => new Map());

class Keys {
  readonly #reader: Reader;
  readonly #options: InjectionOptions;

  constructor(reader: Reader, options: InjectionOptions) {
    this.#reader = reader;
    this.#options = options;
  }

  key(name: string, namespace?: string): Request {
    return { scope: this.#reader.scope.name, ...(namespace === undefined ? {} : { namespace }), name };
  }

  /** Whether an object says something else than when it was last looked at; `now` is empty where it is gone. */
  #saysNew({ apiVersion, kind, namespace, name }: Ref, now: string): boolean {
    const said = saidBefore(this.#options);
    const id = [this.#reader.scope.name, apiVersion, kind, namespace, name].join(' ');
    const before = said.get(id) ?? '';
    if (now === '') said.delete(id);
    else said.set(id, now);
    return before !== now;
  }

  /**
   * The same of a profile, SidecarSet or grant, its status aside: that is written by ourselves while copies are on their way, and must not
   * send every namespace through the queue again.
   */
  #declaresNew(changed: Ref): boolean {
    const object = this.#reader.get(changed);
    const { uid, labels, annotations } = object?.metadata ?? {};
    const now = object === undefined ? '' : JSON.stringify([uid, labels, annotations, object.spec]);
    return this.#saysNew(changed, now) || now === '';
  }

  /** Its copies, and its pods; and its accounts, where there is anything to look at. */
  namespace(name: string): readonly Request[] {
    return [
      this.key('namespace', name),
      ...(this.#options.audit ? [this.key('pods', name)] : []),
      ...(accountsMatter(this.#reader, name) ? [this.key('accounts', name)] : []),
    ];
  }

  /** Pods that were found without names: whether new ones would be better off depends on who injects. */
  reportedPods(): readonly Request[] {
    if (!this.#options.audit) return [];
    return this.#reader
      .list({ role: 'hosted', apiVersion: PULL_STATUS_API_VERSION, kind: PULL_STATUS_KIND })
      .filter(({ metadata }) => metadata.name === pullStatusName('PodList', metadata.namespace ?? ''))
      .map(({ metadata }) => this.key('pods', metadata.namespace));
  }

  /** Nearly all accounts are of no concern. What an enforcing one lists decides what the policy gives to its pods. */
  account(changed: Ref): readonly Request[] {
    const { namespace = '' } = changed;
    const object = this.#reader.get(changed);
    const isNew = this.#saysNew(changed, accountSays(object));
    return [
      ...(object !== undefined && isPlanned(object) ? [this.key('pods', namespace)] : []),
      ...(isNew || accountsMatter(this.#reader, namespace) ? [this.key('accounts', namespace)] : []),
      ...(isNew ? [this.key('policy'), ...this.profiles()] : []),
    ];
  }

  /** A profile or a SidecarSet; the grants that name it say whether it is there. */
  declaration(changed: Ref): readonly Request[] {
    const isProfile = changed.kind === PROFILE_KIND;
    const own = this.key(`${isProfile ? 'profile' : 'sidecarset'}/${changed.name}`);
    if (!this.#declaresNew(changed)) return [own];
    const name = isProfile ? changed.name : own.name;
    const grants = this.#grants(({ profiles }) => profiles.includes(name));
    const others = isProfile ? this.profiles() : [];
    return [own, ...this.everyNamespace(), ...this.policy(), ...others, ...grants];
  }

  everyNamespace(): readonly Request[] {
    return this.#namespaces().flatMap(({ metadata }) => this.namespace(metadata.name));
  }

  /** The policy, and the sets, which say whether they are injected. */
  policy(): readonly Request[] {
    const sets = sidecarSetObjects(this.#reader);
    return [this.key('policy'), ...sets.map(({ metadata }) => this.key(`sidecarset/${metadata.name}`))];
  }

  /** Profiles, and SidecarSets that deliver Secrets: each reports on its copies. */
  profiles(concerned: (profile: Distributor) => boolean = () => true): readonly Request[] {
    const bringing = distributionIn(this.#reader).distributors.filter(isSidecarSet);
    return [
      ...profilesIn(this.#reader)
        .filter(concerned)
        .map((profile) => this.key(`profile/${profile.name}`)),
      ...bringing.filter(concerned).map((set) => this.key(set.name)),
    ];
  }

  /** The counts in the profiles. With many namespaces they wait for the requeue of the profile, so that not every copy causes a full count. */
  counts(concerned?: (profile: Distributor) => boolean): readonly Request[] {
    return this.#namespaces().length <= PROMPT_NAMESPACES ? this.profiles(concerned) : [];
  }

  /**
   * A source concerns every namespace that it is copied to; a copy, or a foreign Secret of its name, its own one. The grants beside a Secret
   * say whether it is there.
   */
  secret({ namespace = '', name }: Ref): readonly Request[] {
    const { byName } = distributionIn(this.#reader);
    const uses = usesOf((source) => source.namespace === namespace && source.name === name);
    const brings = ({ secrets }: Distributor): boolean => secrets.some((secret) => secret.name === name);
    const own = byName.has(name) ? [this.key('namespace', namespace), ...this.counts(brings)] : [];
    const grants = this.#grants(({ secrets }) => secrets.includes(name), namespace);
    return [...this.#served(uses), ...own, ...this.profiles(uses), ...grants];
  }

  /** A grant concerns every namespace that a source beside it is copied to, and the profiles that copy one. */
  grant(changed: Ref): readonly Request[] {
    const own = this.key(`grant/${changed.name}`, changed.namespace);
    if (!this.#declaresNew(changed)) return [own];
    const uses = usesOf((source) => source.namespace === changed.namespace);
    return [own, ...this.#served(uses), ...this.profiles(uses)];
  }

  #grants(concerned: (grant: PullSecretGrant) => boolean, namespace?: string): readonly Request[] {
    const where = namespace === undefined ? {} : { namespace };
    return this.#reader
      .list({ role: 'hosted', apiVersion: GRANT_API_VERSION, kind: GRANT_KIND, ...where })
      .filter((object) => concerned(readPullSecretGrant(object)))
      .map(({ metadata }) => this.key(`grant/${metadata.name}`, metadata.namespace));
  }

  #served(uses: (one: Distributor) => boolean): readonly Request[] {
    const users = distributionIn(this.#reader).distributors.filter(uses);
    if (users.length === 0) return [];
    return this.#namespaces()
      .filter((object) => users.some((one) => serves(one, namespaceLabels(object), this.#options)))
      .map(({ metadata }) => this.key('namespace', metadata.name));
  }

  #namespaces(): ReturnType<Reader['list']> {
    return this.#reader.list({ role: 'hosted', apiVersion: 'v1', kind: 'Namespace' });
  }
}

/** Whether one of its sources is meant. */
function usesOf(isMeant: (source: ProfileSource) => boolean): (one: Distributor) => boolean {
  return ({ secrets }) => secrets.some(({ sources }) => sources.some(isMeant));
}
