/**
 * Pull secret injection and distribution as one reconciler with seven kinds of keys: the copies, pods and ServiceAccounts of a
 * namespace, the admission policy, and the status of a profile, a grant and a SidecarSet.
 */

import { UsageError } from '../../core/errors.ts';
import { PULL_STATUS, pullStatusName } from '../../core/kubernetes/pull-status.ts';
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
import { GRANT, type PullSecretGrant, readPullSecretGrant } from '../kinds/grant.ts';
import { PROFILE, type ProfileSource } from '../kinds/profile.ts';
import { SIDECAR_SET_API_VERSIONS } from '../kinds/sidecar-set.ts';
import { DEFAULT_OPTIONS, type InjectionOptions, optionsSchema, RECONCILER_NAME } from '../options.ts';
import { WEBHOOK_NAME } from '../plan/plan.ts';
import { reconcilePolicy, WEBHOOK } from './admission.ts';
import { reconcileNamespace } from './namespace.ts';
import { reconcileGrant, reconcileSidecarSet } from './other-status.ts';
import { ENDPOINT_SLICES, isPlanned, reconcilePods, SERVICE_NAME_LABEL } from './pods.ts';
import { reconcileProfile } from './profile-status.ts';
import { SECRET_TYPE } from './sources.ts';
import {
  accountSays,
  accountsMatter,
  type Distributor,
  distributionIn,
  isSidecarSet,
  KRUISE_WEBHOOK,
  namespaceLabels,
  profilesIn,
  reconcileAccounts,
  serves,
  sidecarSetObjects,
} from './view.ts';

/** Many, because each namespace is a separate key, and writes of copies mostly wait for the API server. */
const WORKERS = 32;
/** A count reads all namespaces of a profile, so it is debounced during a distribution. */
const COUNT_DEBOUNCE_MS = 500;
/** With more namespaces, a change of one causes no count: the profile's requeue counts within ten seconds. */
const PROMPT_NAMESPACES = 200;

/** All watches; namespaced objects only in the configured namespaces, if any. */
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
    hosted(PROFILE.apiVersion, PROFILE.kind, { optional: true }),
    hosted(GRANT.apiVersion, GRANT.kind, { optional: true }),
    { role: 'hosted', ...PULL_STATUS, optional: true },
    ...SIDECAR_SET_API_VERSIONS.map((apiVersion) => hosted(apiVersion, 'SidecarSet', { optional: true })),
    hosted('apps/v1', 'ControllerRevision', { labelSelector: 'kruise.io/sidecarset-name' }),
    KRUISE_WEBHOOK,
    // Whether the webhook is registered, and whether a pod serves it.
    ...(options.admission === 'webhook'
      ? [
          WEBHOOK,
          hosted(ENDPOINT_SLICES.apiVersion, ENDPOINT_SLICES.kind, {
            namespace: options.ownNamespace,
            labelSelector: `${SERVICE_NAME_LABEL}=${WEBHOOK_NAME}`,
            optional: true,
          }),
        ]
      : []),
    ...['v1', 'v1beta1'].flatMap((version) =>
      ['MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding'].map((kind) =>
        hosted(`admissionregistration.k8s.io/${version}`, kind, {
          labelSelector: `pullwright.dev/owner=${RECONCILER_NAME}`,
          optional: true,
        }),
      ),
    ),
  ];
}

/**
 * Watches of namespaced objects. Secrets of the distributed type only: our copies in full, other Secrets with values on demand.
 * Each configured namespace has its own Role, so a missing Role or namespace does not block others.
 */
function inNamespaces(options: InjectionOptions): readonly Watch[] {
  const { namespaces, secretNames, sources, audit } = options;
  const secret = { apiVersion: 'v1', kind: 'Secret', fieldSelector: `type=${SECRET_TYPE}` } as const;
  const wide = [
    { ...secret, labelSelector: `${OWNER_LABEL}!=${RECONCILER_NAME}`, values: 'on-demand' },
    { ...secret, labelSelector: `${OWNER_LABEL}=${RECONCILER_NAME}` },
  ] as const;
  // ServiceAccounts, to find those that enforce mountable secrets, and the names that they list.
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

/** Creates the reconciler. @param input options that differ from {@link DEFAULT_OPTIONS} */
export function pullSecretInjection(input: Partial<InjectionOptions> = {}): Reconciler {
  const options: InjectionOptions = { ...DEFAULT_OPTIONS, ...input };
  return {
    name: RECONCILER_NAME,
    watches: readsOf(options),
    workers: WORKERS,
    debounceMs: ({ name }) => (/^(profile|sidecarset)\//.test(name) ? COUNT_DEBOUNCE_MS : 0),
    secretsToRead: (reader) => distributionIn(reader).sources,
    requestsFor: (changed, reader) => requestsFor(changed, reader, options),
    reconcile: (reader, key) => {
      const [sort, ...rest] = key.name.split('/');
      const name = rest.join('/');
      const { namespace = '' } = key;
      const context = { reader, options };
      if (sort === 'namespace') return reconcileNamespace(context, namespace);
      if (sort === 'accounts') return reconcileAccounts(context, namespace);
      if (sort === 'pods') return reconcilePods(context, namespace);
      if (sort === 'profile') return reconcileProfile(context, name);
      if (sort === 'grant') return reconcileGrant(context, namespace, name);
      if (sort === 'sidecarset') return reconcileSidecarSet(context, name);
      return reconcilePolicy(context);
    },
  };
}

/** Entry point for the table of reconcilers. @param input options from the configuration file; invalid ones throw a UsageError */
export function reconcilers(input: Readonly<Record<string, unknown>>): readonly Reconciler[] {
  const path = `systems.${RECONCILER_NAME}`;
  const { value, problems } = readValue(input, optionsSchema, path);
  if (value === undefined) throw new UsageError(`Cannot read ${problems.join('; ')}`);
  return [pullSecretInjection(value)];
}

// Mapping of changes to keys. Keys are per namespace, not per profile: one broken namespace does not block others, and a source
// that changes during a distribution supersedes pending writes.

/** Keys to reconcile after `changed` was created, updated or deleted. */
function requestsFor(changed: Ref, reader: Reader, options: InjectionOptions): readonly Request[] {
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
    case PROFILE.kind:
    case 'SidecarSet':
      return keys.declaration(changed);
    case GRANT.kind:
      return keys.grant(changed);
    case PULL_STATUS.kind:
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

  /** Reports whether the digest of an object differs from the last one; `now` is empty if the object is deleted. */
  #saysNew({ apiVersion, kind, namespace, name }: Ref, now: string): boolean {
    const said = saidBefore(this.#options);
    const id = [this.#reader.scope.name, apiVersion, kind, namespace, name].join(' ');
    const before = said.get(id) ?? '';
    if (now === '') said.delete(id);
    else said.set(id, now);
    return before !== now;
  }

  /**
   * Reports whether a profile, SidecarSet or grant changed except in its status. The reconciler writes the
   * status during a distribution, which must not requeue every namespace.
   */
  #declaresNew(changed: Ref): boolean {
    const object = this.#reader.get(changed);
    const { uid, labels, annotations } = object?.metadata ?? {};
    const now = object === undefined ? '' : JSON.stringify([uid, labels, annotations, object.spec]);
    return this.#saysNew(changed, now) || now === '';
  }

  /** The namespace's copies and pods, and its accounts if any enforce mountable secrets. */
  namespace(name: string): readonly Request[] {
    return [
      this.key('namespace', name),
      ...(this.#options.audit ? [this.key('pods', name)] : []),
      ...(accountsMatter(this.#reader, name) ? [this.key('accounts', name)] : []),
    ];
  }

  /** Namespaces with reported pods: whether recreating a pod helps depends on the state of admission. */
  reportedPods(): readonly Request[] {
    if (!this.#options.audit) return [];
    return this.#reader
      .list({ role: 'hosted', ...PULL_STATUS })
      .filter(({ metadata }) => metadata.name === pullStatusName('PodList', metadata.namespace ?? ''))
      .map(({ metadata }) => this.key('pods', metadata.namespace));
  }

  /** Ignores most accounts. The list of an enforcing account decides whether the policy adds names to its pods. */
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

  /** A profile or a SidecarSet, and the grants that name it: their status reports whether it exists. */
  declaration(changed: Ref): readonly Request[] {
    const isProfile = changed.kind === PROFILE.kind;
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

  /** The policy, and all SidecarSets: their status reports whether they are injected. */
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

  /**
   * The counts in the profiles. With many namespaces they wait for the profile's requeue, so that not every copy causes a full
   * count.
   */
  counts(concerned?: (profile: Distributor) => boolean): readonly Request[] {
    return this.#namespaces().length <= PROMPT_NAMESPACES ? this.profiles(concerned) : [];
  }

  /**
   * A source maps to every target namespace; a copy, or a foreign Secret with its name, maps to its own namespace. Grants for the
   * Secret report whether it exists.
   */
  secret({ namespace = '', name }: Ref): readonly Request[] {
    const { byName } = distributionIn(this.#reader);
    const uses = usesOf((source) => source.namespace === namespace && source.name === name);
    const brings = ({ secrets }: Distributor): boolean => secrets.some((secret) => secret.name === name);
    const own = byName.has(name) ? [this.key('namespace', namespace), ...this.counts(brings)] : [];
    const grants = this.#grants(({ secrets }) => secrets.includes(name), namespace);
    return [...this.#served(uses), ...own, ...this.profiles(uses), ...grants];
  }

  /** A grant maps to every target namespace of the sources in its namespace, and to the profiles that copy them. */
  grant(changed: Ref): readonly Request[] {
    const own = this.key(`grant/${changed.name}`, changed.namespace);
    if (!this.#declaresNew(changed)) return [own];
    const uses = usesOf((source) => source.namespace === changed.namespace);
    return [own, ...this.#served(uses), ...this.profiles(uses)];
  }

  #grants(concerned: (grant: PullSecretGrant) => boolean, namespace?: string): readonly Request[] {
    const where = namespace === undefined ? {} : { namespace };
    return this.#reader
      .list({ role: 'hosted', ...GRANT, ...where })
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

/** Matches distributors with a source that meets the condition. */
function usesOf(isMeant: (source: ProfileSource) => boolean): (one: Distributor) => boolean {
  return ({ secrets }) => secrets.some(({ sources }) => sources.some(isMeant));
}
