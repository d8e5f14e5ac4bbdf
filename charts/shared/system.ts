/**
 * Contract of a system in the charts: the schema of its section in the fleet file, and a pure function from that section to
 * objects.
 */
import type { z } from 'zod';
import type { AccountBound } from '../../runtime/core/kubernetes/account-bounds.ts';
import { GLOBAL_PULL_SECRET } from '../../runtime/core/kubernetes/hypershift.ts';
import type { SectionProblem } from '../../runtime/core/kubernetes/kind.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import {
  applyByName,
  labels,
  may,
  type NetworkSettings,
  namespaceReference,
  type PolicyRule,
} from '../../runtime/core/kubernetes/objects.ts';
import type { Alert } from './monitoring.ts';

/** `standalone`: one cluster with both roles. `management` runs control planes; `hosted` has its control plane elsewhere. */
export type ClusterKind = 'standalone' | 'management' | 'hosted';

/**
 * Delivery of objects to a hosted cluster. `gitops`: they are rendered, and the reconciler writes only computed objects.
 * `reconciler`: nothing is rendered, and the reconciler applies them.
 */
export type Delivery = 'gitops' | 'reconciler';

/** A hosted cluster from the view of its management cluster. */
export interface HostedCluster
  extends Pick<ClusterContext, 'name' | 'delivery' | 'image' | 'imagePullSecrets' | 'namespace'> {
  /** Namespace and name of the HostedCluster object. */
  readonly hostedCluster: { readonly namespace: string; readonly name: string };
  /** Control plane namespace in the management cluster; default `<namespace>-<name>`. */
  readonly controlPlaneNamespace: string;
}

/** Scope of one hosted cluster in its management cluster; without namespaces: all of them. */
export type HostedPlace = Partial<Pick<HostedCluster, 'hostedCluster' | 'controlPlaneNamespace'>>;

/** The cluster that objects are rendered for. */
export interface ClusterContext {
  /** Name in the fleet. */
  readonly name: string;
  readonly kind: ClusterKind;
  /** For `management`: delivery for hosted clusters found by discovery. */
  readonly delivery: Delivery;
  /** Namespace of our own pods. */
  readonly namespace: string;
  /** The multi-call image. */
  readonly image: string;
  /** imagePullSecrets of our pods, in each of their namespaces. */
  readonly imagePullSecrets?: readonly string[];
  /** For `management`: its hosted clusters in the fleet. Otherwise empty. */
  readonly hosted: readonly HostedCluster[];
  /** Whether the reconciler discovers hosted clusters in addition to those of the fleet. */
  readonly discovery: boolean;
  /** For `management`: shards with a separate reconciler, in addition to the one without a shard. @default none */
  readonly shards?: readonly string[];
  /** Allowed ingress and egress of our pods. */
  readonly network?: NetworkSettings;
  /** For `hosted`: the reconciler's ServiceAccount there, unless it uses an administrator's kubeconfig. */
  readonly account?: { readonly namespace: string; readonly name: string };
}

/** API access that a system's reconciler needs in this cluster. Rendered as Role or ClusterRole `pullwright-<system>`. */
export interface Access {
  /** Absent: cluster-wide. */
  readonly namespace?: string | undefined;
  readonly rules: readonly PolicyRule[];
  /** Admission bounds of these rules, beyond RBAC. */
  readonly bounds?: readonly AccountBound[];
}

/** OpenShift's namespace of the platform's pull secret, for clusters without it. */
export function configNamespace(section: {
  readonly createConfigNamespace?: boolean;
}): readonly KubeObject[] {
  const name = GLOBAL_PULL_SECRET.configNamespace;
  const marks = labels({ name, component: 'namespace' });
  return section.createConfigNamespace === true ? [namespaceReference(name, marks)] : [];
}

/** Rules to apply the PullStatuses of these names, and their status. */
export function statusRules(names: readonly string[]): readonly [PolicyRule, PolicyRule] {
  return [
    applyByName('pullwright.dev', 'pullstatuses', names),
    may(['get', 'patch'], 'pullwright.dev', ['pullstatuses/status'], names),
  ];
}

/** A system's contribution to the reconciler of a cluster. */
export interface SystemPart {
  /** Value under `systems:` in the configuration of `reconcile --config`, in the format of the system's `parseOptions`. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly access: readonly Access[];
}

/** A named contribution to the reconciler Deployment of a cluster. */
export interface ReconcilerPart extends SystemPart, Pick<ChartSystem, 'name' | 'alerts'> {}

export interface ChartSystem<Config = unknown, Input = unknown> {
  /** Folder name and key under `systems:`. */
  readonly name: string;
  /** One sentence for the documentation of the fleet file. */
  readonly summary: string;
  /** Schema of the section. Strict: unknown keys are errors. Every field has `.describe()`. */
  readonly config: z.ZodType<Config, Input>;
  /** Supported cluster kinds. In `management`, the section applies to hosted clusters found by discovery. */
  readonly kinds: readonly ClusterKind[];
  /** Alerts of its part in the reconciler, rendered with `monitoring`. @default none */
  readonly alerts?: readonly Alert[] | undefined;
  /** Problems of the section in combination with the cluster. */
  check?(config: Config, cluster: ClusterContext): readonly SectionProblem[];
  /** Warnings about surprising results. */
  warnings?(config: Config, cluster: ClusterContext): readonly SectionProblem[];
  /** Options that one reconciler shares between all its hosted clusters; different values are an error. */
  shared?(config: Config): Readonly<Record<string, unknown>>;
  /**
   * Objects for this cluster, in any order, without the reconciler's Deployment and RBAC. Pure. API groups that are not built
   * in are placed in `overlays/<group>`.
   */
  objects(config: Config, cluster: ClusterContext): readonly KubeObject[];
  /** Files that the user maintains in the rendered tree (SOPS): listed in a kustomization, never written. */
  files?(config: Config, cluster: ClusterContext): readonly string[];
  /** RBAC of the management cluster's reconciler in this hosted cluster, for its own account there. @default nothing */
  hostedAccess?(config: Config, cluster: ClusterContext): readonly Access[];
  /** Part for a stand-alone cluster. */
  reconciler?(config: Config, cluster: ClusterContext): SystemPart;
  /**
   * Part for a management cluster: covers the hosted clusters of the fleet, each with its section. With `management.discovery`,
   * the management cluster's own section covers all others.
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

/** `<namespace>/<name>` of the HostedCluster, the reconciler's name for it. */
export function hostedName({ hostedCluster: { namespace, name } }: HostedCluster): string {
  return `${namespace}/${name}`;
}

/** Options per hosted cluster under `clusters`; empty without hosted clusters. */
export function clusterOptions<Config>(
  hosted: readonly HostedSection<Config>[],
  optionsOf: (config: Config, cluster: HostedCluster) => Readonly<Record<string, unknown>>,
): { readonly clusters?: Readonly<Record<string, unknown>> } {
  if (hosted.length === 0) return {};
  const entries = hosted.map(({ cluster, config }) => [hostedName(cluster), optionsOf(config, cluster)]);
  return { clusters: Object.fromEntries(entries) };
}
