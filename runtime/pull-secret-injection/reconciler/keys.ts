/**
 * Which keys a change concerns.
 *
 * A namespace is a key, and a profile is not: one broken namespace holds up no other, and a source that changes during a
 * distribution overtakes what is still to be written.
 */

import {
  PULL_STATUS_API_VERSION,
  PULL_STATUS_KIND,
  pullStatusName,
} from '../../core/kubernetes/pull-status.ts';
import type { Reader, Ref, Request } from '../../engine/contract.ts';
import { GRANT_API_VERSION, GRANT_KIND, type PullSecretGrant, readPullSecretGrant } from '../kinds/grant.ts';
import { PROFILE_KIND } from '../kinds/profile.ts';
import type { InjectionOptions } from '../options.ts';
import { accountSays, accountsMatter } from './accounts.ts';
import { isPlanned } from './pods.ts';
import {
  type Distributor,
  distributionIn,
  isSidecarSet,
  namespaceLabels,
  profilesIn,
  serves,
  sidecarSetObjects,
} from './view.ts';

/** Keys to look at again after `changed` changed, appeared or went away. */
export function keysFor(changed: Ref, reader: Reader, options: InjectionOptions): readonly Request[] {
  const keys = new Keys(reader, options);
  switch (changed.kind) {
    case 'Namespace':
      return [...keys.namespace(changed.name), ...keys.counts()];
    case 'Pod':
      return [keys.key('pods', changed.namespace)];
    case 'ServiceAccount':
      return keys.account(changed);
    case 'Secret':
      return [...keys.secret(changed), ...keys.grantsOf(changed)];
    case PROFILE_KIND:
    case 'SidecarSet':
      return keys.declaration(changed);
    case GRANT_KIND:
      return keys.grant(changed);
    case PULL_STATUS_KIND:
      return keys.namespace(changed.namespace ?? '');
    default:
      return keysOfAdmission(changed.kind, keys);
  }
}

function keysOfAdmission(kind: string, keys: Keys): readonly Request[] {
  switch (kind) {
    case 'ControllerRevision':
      return [...keys.policy(), ...keys.everyNamespace()];
    case 'MutatingWebhookConfiguration':
    case 'MutatingAdmissionPolicy':
    case 'MutatingAdmissionPolicyBinding':
      return [...keys.policy(), ...keys.profiles(), ...keys.reportedPods()];
    case 'EndpointSlice':
      return [...keys.sets(), ...keys.profiles(), ...keys.reportedPods()];
    default:
      return [];
  }
}

const saidBefore = new WeakMap<InjectionOptions, Map<string, string>>();

/**
 * Whether the object says something else than when it was last looked at, its status aside: that is written by ourselves while
 * copies are on their way, and must not send every namespace through the queue again.
 */
function saysNew(changed: Ref, reader: Reader, options: InjectionOptions): boolean {
  const object = reader.get(changed);
  const said = saidBefore.get(options) ?? new Map<string, string>();
  saidBefore.set(options, said);
  const id = [reader.scope.name, changed.apiVersion, changed.kind, changed.namespace, changed.name].join(' ');
  const before = said.get(id);
  if (object === undefined) said.delete(id);
  else {
    const { uid, labels, annotations } = object.metadata;
    said.set(id, JSON.stringify([uid, labels, annotations, object.spec]));
  }
  return before === undefined || said.get(id) !== before;
}

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

  /** Its copies, and its pods. */
  namespace(name: string): readonly Request[] {
    return [
      this.key('namespace', name),
      ...(this.#options.audit ? [this.key('pods', name)] : []),
      ...this.accounts(name),
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

  /** The accounts of one namespace, where there is anything to look at. */
  accounts(namespace: string): readonly Request[] {
    return accountsMatter(this.#reader, namespace) ? [this.key('accounts', namespace)] : [];
  }

  /** Nearly all accounts concern nobody. What an enforcing one lists decides what the policy gives to its pods. */
  account(changed: Ref): readonly Request[] {
    const { namespace = '' } = changed;
    const object = this.#reader.get(changed);
    const pods = object !== undefined && isPlanned(object) ? [this.key('pods', namespace)] : [];
    const said = saidBefore.get(this.#options) ?? new Map<string, string>();
    saidBefore.set(this.#options, said);
    const id = [this.#reader.scope.name, 'account', namespace, changed.name].join(' ');
    const [before, now] = [said.get(id) ?? '', accountSays(object)];
    if (now === '') said.delete(id);
    else said.set(id, now);
    if (before === now) return [...pods, ...this.accounts(namespace)];
    return [...pods, this.key('accounts', namespace), this.key('policy'), ...this.profiles()];
  }

  /** A profile or a SidecarSet. */
  declaration(changed: Ref): readonly Request[] {
    const isProfile = changed.kind === PROFILE_KIND;
    const own = this.key(`${isProfile ? 'profile' : 'sidecarset'}/${changed.name}`);
    if (!saysNew(changed, this.#reader, this.#options)) return [own];
    const others = isProfile ? this.profiles() : [];
    const grants = this.grantsTo(isProfile ? changed.name : `sidecarset/${changed.name}`);
    return [own, ...this.everyNamespace(), ...this.policy(), ...others, ...grants];
  }

  everyNamespace(): readonly Request[] {
    return this.#namespaces().flatMap(({ metadata }) => this.namespace(metadata.name));
  }

  policy(): readonly Request[] {
    return [this.key('policy'), ...this.sets()];
  }

  sets(): readonly Request[] {
    return sidecarSetObjects(this.#reader).map(({ metadata }) => this.key(`sidecarset/${metadata.name}`));
  }

  /** Profiles, and SidecarSets that bring Secrets: each says what became of its copies. */
  profiles(concerned: (profile: Distributor) => boolean = () => true): readonly Request[] {
    const bringing = distributionIn(this.#reader).distributors.filter(isSidecarSet);
    return [
      ...profilesIn(this.#reader)
        .filter(concerned)
        .map((profile) => this.key(`profile/${profile.name}`)),
      ...bringing.filter(concerned).map((set) => this.key(set.name)),
    ];
  }

  /** The counts in the profiles. With many namespaces they follow by the second, lest each copy cost a count of all. */
  counts(concerned?: (profile: Distributor) => boolean): readonly Request[] {
    return this.#namespaces().length <= this.#options.promptNamespaces ? this.profiles(concerned) : [];
  }

  /** A source concerns every namespace that it is brought to; a copy, or what stands in its place, its own one. */
  secret({ namespace = '', name }: Ref): readonly Request[] {
    const { distributors, byName } = distributionIn(this.#reader);
    const uses = (one: Distributor): boolean =>
      one.secrets.some(({ sources }) =>
        sources.some((source) => source.namespace === namespace && source.name === name),
      );
    const brings = ({ secrets }: Distributor): boolean => secrets.some((secret) => secret.name === name);
    const own = byName.has(name) ? [this.key('namespace', namespace), ...this.counts(brings)] : [];
    return [...this.#served(distributors.filter(uses)), ...own, ...this.profiles(uses)];
  }

  /** Consent concerns every namespace that a source beside it is brought to, and the grants that share its Secrets. */
  grant(changed: Ref): readonly Request[] {
    const own = this.key(`grant/${changed.name}`, changed.namespace);
    if (!saysNew(changed, this.#reader, this.#options)) return [own];
    const uses = (one: Distributor): boolean =>
      one.secrets.some(({ sources }) => sources.some((source) => source.namespace === changed.namespace));
    const { distributors } = distributionIn(this.#reader);
    return [own, ...this.#served(distributors.filter(uses)), ...this.profiles(uses)];
  }

  /** The grants beside a Secret, which say whether it is there. */
  grantsOf({ namespace = '', name }: Ref): readonly Request[] {
    return this.#grants(({ secrets }) => secrets.includes(name), namespace);
  }

  /** The grants that name a profile, which say whether it is there. */
  grantsTo(profile: string): readonly Request[] {
    return this.#grants(({ profiles }) => profiles.includes(profile));
  }

  #grants(concerned: (grant: PullSecretGrant) => boolean, namespace?: string): readonly Request[] {
    const where = namespace === undefined ? {} : { namespace };
    return this.#reader
      .list({ role: 'hosted', apiVersion: GRANT_API_VERSION, kind: GRANT_KIND, ...where })
      .filter((object) => concerned(readPullSecretGrant(object)))
      .map(({ metadata }) => this.key(`grant/${metadata.name}`, metadata.namespace));
  }

  #served(users: readonly Distributor[]): readonly Request[] {
    if (users.length === 0) return [];
    return this.#namespaces()
      .filter((object) => users.some((one) => serves(one, namespaceLabels(object), this.#options)))
      .map(({ metadata }) => this.key('namespace', metadata.name));
  }

  #namespaces(): ReturnType<Reader['list']> {
    return this.#reader.list({ role: 'hosted', apiVersion: 'v1', kind: 'Namespace' });
  }
}
