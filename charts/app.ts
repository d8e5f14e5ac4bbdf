/**
 * Renders a validated fleet into a tree of files. Each cluster has its own App: toJson() walks the whole App, so one App for a
 * thousand clusters would take quadratic time.
 */
import { App, Chart } from 'cdk8s';
import type { Construct } from 'constructs';
import type { KubeObject } from '../runtime/core/kubernetes/object.ts';
import { OWN_NAMESPACE, withImagePullSecrets } from '../runtime/core/kubernetes/objects.ts';
import { pullStatusCrd } from '../runtime/core/kubernetes/pull-status-kind.ts';
import { distinctBy } from '../runtime/core/record.ts';
import { type Fleet, type FleetCluster, readFleet } from './fleet.ts';
import { gitopsObjects, type RenderedCluster, withSyncWaves } from './gitops/fleet.ts';
import { type ManifestTree, renderTree } from './output.ts';
import { dashboardObjects } from './shared/dashboards.ts';
import { ObjectGroup } from './shared/group.ts';
import { RUNBOOKS, runbookFile, withRunbooks } from './shared/monitoring.ts';
import {
  hostedAccountObjects,
  type ReconcilerSettings,
  reconcilerMonitoring,
  reconcilerObjects,
} from './shared/reconciler.ts';
import {
  type ChartSystem,
  type Delivery,
  hostedName,
  type ReconcilerPart,
  type SystemPart,
} from './shared/system.ts';
import type { SystemInputs } from './systems.ts';

/** Renders the tree of a fleet, with paths relative to the output folder. */
export function renderFleet(fleet: Fleet): {
  readonly tree: ManifestTree;
  readonly clusters: readonly RenderedCluster[];
} {
  const clusters = fleet.clusters.map((cluster) => renderCluster(fleet, cluster));
  const trees = clusters
    // With `delivery: reconciler`, a hosted cluster has no objects in git and no folder.
    .filter(({ objects }) => objects.length > 0)
    .map(({ objects, path, kept }) => renderTree(objects, { folder: path, kept }));
  const gitops = fleet.gitops === undefined ? [] : gitopsObjects(fleet.gitops, clusters, fleet);
  const all = [...trees, renderTree(gitops, { folder: '_gitops', flat: true })];
  return { tree: new Map(all.flatMap((tree) => [...tree])), clusters };
}

/** Renders the objects of one cluster. */
export function renderCluster(fleet: Fleet, cluster: FleetCluster): RenderedCluster {
  const chart = clusterChart(fleet, cluster);
  // Two systems may render the same object, such as a shared namespace.
  const objects = distinctBy(chart.toJson() as readonly KubeObject[], JSON.stringify);
  return {
    name: cluster.context.name,
    path: cluster.path,
    objects: withSyncWaves(objects, fleet.gitops),
    kept: cluster.sections.flatMap(({ system, config }) => system.files?.(config, cluster.context) ?? []),
  };
}

/**
 * Returns the Chart of one cluster in its own App, with a group per system: `Chart.node.findChild('global-pull-secret')`.
 *
 * @example
 * ```ts
 * import { clusterChart } from './app.ts';
 * import { readFleet } from './fleet.ts';
 * import assert from 'node:assert/strict';
 *
 * const fleet = readFleet({ image: 'registry.example.com/pullwright:0.1.0', clusters: [{ name: 'a', systems: { 'global-pull-secret': {} } }] });
 * const [cluster] = fleet.clusters;
 * assert.ok(cluster !== undefined && clusterChart(fleet, cluster).toJson().length > 10);
 * ```
 */
export function clusterChart(fleet: Fleet, cluster: FleetCluster): Chart {
  const chart = new Chart(new App(), cluster.context.name, { disableResourceNameHashes: true });
  for (const [name, objects] of [...systemGroups(fleet, cluster), ...commonGroups(fleet, cluster)])
    new ObjectGroup(
      chart,
      name,
      objects.map((object) => withImagePullSecrets(object, cluster.context.imagePullSecrets)),
    );
  cluster.input.extend?.(chart, cluster.context);
  return chart;
}

/** Objects by the system that renders them. */
type Group = readonly [name: string, objects: readonly KubeObject[]];

/** Objects of each system, rendered independently. */
function systemGroups({ runbooks = RUNBOOKS }: Fleet, { context, sections }: FleetCluster): readonly Group[] {
  return sections.map(({ system, config }) => {
    const { name } = system;
    const objects = system.objects(config, context);
    return [name, objects.map((object) => withRunbooks(object, runbooks, () => runbookFile(name)))];
  });
}

/** Objects shared by all systems: `reconciler`, `monitoring` and `crds`. */
function commonGroups(fleet: Fleet, cluster: FleetCluster): readonly Group[] {
  const { context } = cluster;
  const parts = reconcilerParts(fleet, cluster);
  const reconciler = [
    ...reconcilerObjects(context, parts, cluster.input.reconciler ?? {}),
    ...hostedAccountObjects(context, hostedParts(cluster)),
  ];
  const monitoring =
    cluster.input.monitoring === true && parts.length > 0 ? [alertsOf(fleet, cluster, parts)] : [];
  const isRendered =
    context.kind !== 'hosted' || context.delivery === 'gitops' || context.account !== undefined;
  const hasCrds = cluster.sections.length + parts.length > 0 && isRendered;
  const crds: readonly Group[] = hasCrds ? [['crds', [pullStatusCrd()]]] : [];
  const boards = cluster.input.dashboards === true ? [dashboardsOf(cluster, parts)] : [];
  return [['reconciler', reconciler], ...monitoring, ...boards, ...crds];
}

/** Dashboards of the systems in this cluster, and of the reconciler if it runs here. */
function dashboardsOf({ context, sections }: FleetCluster, parts: readonly ReconcilerPart[]): Group {
  const names = [
    ...(parts.length > 0 ? ['reconciler'] : []),
    ...sections.map(({ system }) => system.name),
    ...parts.map(({ name }) => name),
  ];
  return ['dashboards', dashboardObjects(context.namespace, [...new Set(names)])];
}

function alertsOf(
  { runbooks = RUNBOOKS }: Fleet,
  { context }: FleetCluster,
  parts: readonly ReconcilerPart[],
): Group {
  const alerts = parts.flatMap((part) => part.alerts ?? []);
  const fileOf = (alert: string): string =>
    runbookFile(parts.find((part) => part.alerts?.some(({ name }) => name === alert))?.name ?? 'reconciler');
  const objects = reconcilerMonitoring(context, alerts);
  return ['monitoring', objects.map((object) => withRunbooks(object, runbooks, fileOf))];
}

function hostedParts({ context, sections }: FleetCluster) {
  return sections.flatMap(({ system, config }) => {
    const access = system.hostedAccess?.(config, context) ?? [];
    return access.length === 0 ? [] : [{ name: system.name, access }];
  });
}

/** Reconciler parts from the systems of this cluster and of the hosted clusters that it manages. */
function reconcilerParts(fleet: Fleet, cluster: FleetCluster): readonly ReconcilerPart[] {
  if (cluster.context.kind === 'management') return managementParts(fleet, cluster);
  if (cluster.context.kind === 'hosted') return [];
  return cluster.sections.flatMap(({ system, config }) =>
    partOf(system, system.reconciler?.(config, cluster.context)),
  );
}

function partOf({ name, alerts }: ChartSystem, part: SystemPart | undefined): readonly ReconcilerPart[] {
  return part === undefined ? [] : [{ name, alerts, ...part }];
}

function managementParts(fleet: Fleet, management: FleetCluster): readonly ReconcilerPart[] {
  const byName = new Map(fleet.clusters.map((one) => [one.context.name, one]));
  const hosted = management.context.hosted.flatMap((cluster) =>
    (byName.get(cluster.name)?.sections ?? []).map((section) => ({ ...section, cluster })),
  );
  const systems = new Set([...management.sections, ...hosted].map((section) => section.system));
  return [...systems].flatMap((system) => {
    const own = management.sections.find((section) => section.system === system);
    const served = hosted.filter((section) => section.system === system);
    // Management-only rendering uses the cluster's own section.
    if (served.length === 0 && !management.context.discovery && system.kinds.includes('hosted')) return [];
    const parts = partOf(system, system.managementReconciler?.(management.context, served, own?.config));
    // Without discovery, the account has no rights in clusters without the section, so their readiness would never succeed.
    const only = management.context.discovery
      ? {}
      : { only: served.map(({ cluster }) => hostedName(cluster)) };
    return parts.map((part) => ({ ...part, options: { ...only, ...part.options } }));
  });
}

// The reconciler of a stand-alone cluster as a construct.

/** Without `shards`: a single cluster is not sharded. */
export interface ReconcilerProps extends Omit<ReconcilerSettings, 'shards'> {
  /** Image of the pods, with tag or digest. */
  readonly image: string;
  /** Sections of the systems to reconcile. */
  readonly systems: SystemInputs;
  /** @default {'pullwright-system'} */
  readonly namespace?: string;
  /** `reconciler`: the reconciler also applies the objects that are not rendered. @default {'gitops'} */
  readonly delivery?: Delivery;
}

/**
 * Namespace, Deployment, configuration, PodDisruptionBudget, NetworkPolicy and RBAC for the systems.
 *
 * @throws FleetError when a section is invalid
 *
 * @example
 * ```ts
 * import { Reconciler } from './app.ts';
 * import { Testing } from 'cdk8s';
 * import assert from 'node:assert/strict';
 *
 * const chart = Testing.chart();
 * new Reconciler(chart, 'reconciler', {
 *   image: 'registry.example.com/pullwright:0.1.0',
 *   systems: { 'global-pull-secret': {} },
 *   replicas: 3,
 * });
 * const deployment = Testing.synth(chart).find((object) => object.kind === 'Deployment');
 * assert.equal(deployment.spec.replicas, 3);
 * ```
 */
export class Reconciler extends ObjectGroup {
  constructor(scope: Construct, id: string, props: ReconcilerProps) {
    const { image, systems, namespace = OWN_NAMESPACE, delivery = 'gitops', ...settings } = props;
    const fleet = readFleet({ image, namespace, clusters: [{ name: 'standalone', delivery, systems }] }, id);
    const objects = fleet.clusters.map((cluster) =>
      reconcilerObjects(cluster.context, reconcilerParts(fleet, cluster), settings),
    );
    super(scope, id, objects.flat());
  }
}
