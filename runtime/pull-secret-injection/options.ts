/** What the operator of a cluster decides about injection and distribution. */
import { DEFAULT_TRUSTED_KEYS } from '../rules/injection/profile-grant.ts';
import { type Exemption, exemption, type PlannedPod } from '../rules/injection/profile-plan.ts';
import { DEFAULT_REMOVALS, type RemovalLimits } from '../rules/injection/removal-breaker.ts';

export interface InjectionOptions {
  /** Namespace of our own pods: never injected into. */
  readonly ownNamespace: string;
  /** Further namespaces whose pods are left alone. */
  readonly excludedNamespaces: readonly string[];
  /** The only namespaces that this system works in: Secrets, pods and ServiceAccounts of others are not read. Empty: in all. */
  readonly namespaces: readonly string[];
  /** With `namespaces`: the only names of Secrets that are read there, beside `sources`. Empty: whatever the name. */
  readonly secretNames: readonly string[];
  /** With `secretNames`: Secrets that are read besides, `namespace/name`. */
  readonly sources: readonly string[];
  /** Who changes pods: the API server by our policy, our webhook, or nobody. Never two of them. */
  readonly admission: 'policy' | 'webhook' | 'none';
  /** Namespace label keys that grants may select by. */
  readonly trustedLabelKeys: readonly string[];
  /** Look at pods, and report those that lack names. */
  readonly audit: boolean;
  /** SidecarSets inject even where no matching set brings a container. */
  readonly withoutContainers: boolean;
  /** A SidecarSet that pins a revision which does not exist: it injects nothing, or its current names. */
  readonly missingRevision: 'skip' | 'current';
  /** Where Kruise keeps the revisions of SidecarSets; those of other namespaces are none. */
  readonly kruiseNamespace: string;
  /** How many copies of a profile one change may take away without a confirmation. */
  readonly removals: RemovalLimits;
  /** With more namespaces, counts in a profile's status follow by the second instead of by the change. */
  readonly promptNamespaces: number;
}

export const DEFAULT_OPTIONS: InjectionOptions = {
  ownNamespace: 'pullwright-system',
  excludedNamespaces: [],
  namespaces: [],
  secretNames: [],
  sources: [],
  admission: 'policy',
  trustedLabelKeys: DEFAULT_TRUSTED_KEYS,
  audit: true,
  withoutContainers: false,
  missingRevision: 'skip',
  kruiseNamespace: 'kruise-system',
  removals: DEFAULT_REMOVALS,
  promptNamespaces: 200,
};

/** Every namespace whose pods are left alone. */
export function excludedNamespaces(options: InjectionOptions): readonly string[] {
  return [...new Set([options.ownNamespace, ...options.excludedNamespaces])].sort();
}

/** Whether this system leaves the namespace alone because others are named. */
export function isOutside(name: string, { namespaces }: Pick<InjectionOptions, 'namespaces'>): boolean {
  return namespaces.length > 0 && !namespaces.includes(name);
}

/** Why a pod is left alone, whatever the profiles say. */
export function exemptionOf(pod: PlannedPod, options: InjectionOptions): Exemption | undefined {
  return isOutside(pod.namespace, options)
    ? 'excluded-namespace'
    : exemption(pod, excludedNamespaces(options));
}
