/** What the operator of a cluster decides about injection and distribution. */
import { DEFAULT_TRUSTED_KEYS } from '../rules/injection/profile-grant.ts';
import { DEFAULT_REMOVALS, type RemovalLimits } from '../rules/injection/removal-breaker.ts';

export interface InjectionOptions {
  /** Namespace of our own pods: never injected into. */
  readonly ownNamespace: string;
  /** Further namespaces whose pods are left alone. */
  readonly excludedNamespaces: readonly string[];
  /** Who changes pods: the API server by our policy, our webhook, or nobody. Never two of them. */
  readonly admission: 'policy' | 'webhook' | 'none';
  /** Namespace label keys that grants may select by. */
  readonly trustedLabelKeys: readonly string[];
  /** Look at pods, and report those that lack names. */
  readonly audit: boolean;
  /** Evict pods that cannot pull, for profiles that say `repair: Evict`. */
  readonly evict: boolean;
  /** Add the names of profiles that ask for it to ServiceAccounts. */
  readonly serviceAccounts: boolean;
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
  admission: 'policy',
  trustedLabelKeys: DEFAULT_TRUSTED_KEYS,
  audit: true,
  evict: false,
  serviceAccounts: false,
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
