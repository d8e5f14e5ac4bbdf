/**
 * What one of the five systems gives to the charts: the schema of its section in the fleet file, and a pure function from
 * that section to objects.
 */
import type { z } from 'zod';
import type { AccountBound } from '../../runtime/core/kubernetes/account-bounds.ts';
import type { SectionProblem } from '../../runtime/core/kubernetes/kind.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import {
  applyByName,
  may,
  type NetworkSettings,
  type PolicyRule,
} from '../../runtime/core/kubernetes/objects.ts';
import type { Alert } from './monitoring.ts';

/** `standalone`: one cluster that plays both parts. `management` runs control planes; `hosted` has its control plane elsewhere. */
export type ClusterKind = 'standalone' | 'management' | 'hosted';

/**
 * Who keeps the objects of a hosted cluster true. `gitops`: they are rendered, and the reconciler writes only what it
 * computes. `reconciler`: nothing is rendered for them, the reconciler applies them.
 */
export type Delivery = 'gitops' | 'reconciler';

/** A hosted cluster, as its management cluster sees it. */
export interface HostedCluster
  extends Pick<ClusterContext, 'name' | 'delivery' | 'image' | 'imagePullSecrets' | 'namespace'> {
  /** Namespace and name of the HostedCluster object. */
  readonly hostedCluster: { readonly namespace: string; readonly name: string };
  /** Namespace of its control plane in the management cluster: `<namespace>-<name>` unless said otherwise. */
  readonly controlPlaneNamespace: string;
}

/** The cluster that objects are rendered for. */
export interface ClusterContext {
  /** In the fleet. */
  readonly name: string;
  readonly kind: ClusterKind;
  /** For `management`: that of hosted clusters found by discovery. */
  readonly delivery: Delivery;
  /** Namespace of our own pods. */
  readonly namespace: string;
  /** The multi-call image. */
  readonly image: string;
  /** Secrets that our pods pull it with, in the namespace of each. */
  readonly imagePullSecrets?: readonly string[];
  /** For `management`: the hosted clusters of the fleet that live in it. Else empty. */
  readonly hosted: readonly HostedCluster[];
  /** Whether the reconciler finds hosted clusters by itself, beyond those that the fleet names. */
  readonly discovery: boolean;
  /** For `management`: shards that have a reconciler each, beside the one without a shard. @default none */
  readonly shards?: readonly string[];
  /** From where our pods may be reached, and what they may reach. */
  readonly network?: NetworkSettings;
  /** For `hosted`: the ServiceAccount there as which the reconciler works, where it is not an administrator. */
  readonly account?: { readonly namespace: string; readonly name: string };
}

/** API access that a system's reconciler needs in this cluster. Rendered as Role or ClusterRole `pullwright-<system>`. */
export interface Access {
  /** Absent: cluster-wide. */
  readonly namespace?: string | undefined;
  readonly rules: readonly PolicyRule[];
  /** What RBAC cannot say about these rules. */
  readonly bounds?: readonly AccountBound[];
}

/** Applying the PullStatuses of these names, and their status. */
export function statusRules(names: readonly string[]): readonly [PolicyRule, PolicyRule] {
  return [
    applyByName('pullwright.dev', 'pullstatuses', names),
    may(['get', 'patch'], 'pullwright.dev', ['pullstatuses/status'], names),
  ];
}

/** What the reconciler of a cluster needs for a system. */
export interface SystemPart {
  /** Under `systems:` of the configuration that `reconcile --config` reads, as the system's `parseOptions` takes them. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly access: readonly Access[];
}

/** What a system adds to the one reconciler Deployment of a cluster. */
export interface ReconcilerPart extends SystemPart, Pick<ChartSystem, 'name' | 'alerts'> {}

export interface ChartSystem<Config = unknown, Input = unknown> {
  /** Folder name and key under `systems:`. */
  readonly name: string;
  /** One sentence for the documentation of the fleet file. */
  readonly summary: string;
  /** Schema of the section. Strict: an unknown key is a mistake. Every field has `.describe()`. */
  readonly config: z.ZodType<Config, Input>;
  /** Kinds of cluster in which the section makes sense. In `management` it applies to hosted clusters found by discovery. */
  readonly kinds: readonly ClusterKind[];
  /** Of its part in the reconciler, rendered beside the reconciler's own where `monitoring` is on. @default none */
  readonly alerts?: readonly Alert[] | undefined;
  /** Mistakes that show only together with the cluster. */
  check?(config: Config, cluster: ClusterContext): readonly SectionProblem[];
  /** What is rendered all the same, or is not rendered, and will surprise. */
  warnings?(config: Config, cluster: ClusterContext): readonly SectionProblem[];
  /** Options of which one reconciler takes one set for all its hosted clusters: two that differ are a mistake. */
  shared?(config: Config): Readonly<Record<string, unknown>>;
  /**
   * Objects for this cluster, in any order, without the reconciler's own Deployment and RBAC. Pure. Objects of API groups
   * that are not built in land in `overlays/<group>` by themselves.
   */
  objects(config: Config, cluster: ClusterContext): readonly KubeObject[];
  /** Files that people keep themselves in the rendered tree (SOPS): listed in a kustomization, never written. */
  files?(config: Config, cluster: ClusterContext): readonly string[];
  /** What the management cluster's reconciler may do in this hosted cluster, for an account of its own there. @default nothing */
  hostedAccess?(config: Config, cluster: ClusterContext): readonly Access[];
  /** For a stand-alone cluster. */
  reconciler?(config: Config, cluster: ClusterContext): SystemPart;
  /**
   * For a management cluster: for the hosted clusters of the fleet, each with its section, and with `management.discovery` for all others,
   * which the management cluster's own section covers. There is one of either.
   */
  managementReconciler?(
    management: ClusterContext,
    hosted: readonly HostedSection<Config>[],
    own: Config | undefined,
  ): SystemPart;
}

/** A hosted cluster with its section of a system. */
export interface HostedSection<Config> {
  readonly cluster: HostedCluster;
  readonly config: Config;
}

/** `<namespace>/<name>` of the HostedCluster, by which the reconciler knows it. */
export function hostedName({ hostedCluster: { namespace, name } }: HostedCluster): string {
  return `${namespace}/${name}`;
}

/** The options of each hosted cluster as the reconciler's `clusters`; nothing without one. */
export function clusterOptions<Config>(
  hosted: readonly HostedSection<Config>[],
  optionsOf: (config: Config, cluster: HostedCluster) => Readonly<Record<string, unknown>>,
): { readonly clusters?: Readonly<Record<string, unknown>> } {
  if (hosted.length === 0) return {};
  const entries = hosted.map(({ cluster, config }) => [hostedName(cluster), optionsOf(config, cluster)]);
  return { clusters: Object.fromEntries(entries) };
}
