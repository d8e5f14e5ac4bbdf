/** Which nodes of a cluster have the pull secret that is meant for them, as far as anything has shown it. */
import type { Condition } from '../kubernetes/conditions.ts';
import { GLOBAL_PULL_SECRET } from '../kubernetes/global-pull-secret.ts';
import type { KubeObject } from '../kubernetes/object.ts';
import { PULL_STATUS_KIND, pullStatusName } from '../kubernetes/pull-status.ts';
import { recordOf } from '../record.ts';
import type { ReportNodeState, ReportNodes } from './types.ts';

/**
 * Counts. A node is in sync when its own report says so, when the agent's pod on it is ready (it is ready when the file is in
 * place), or when the DaemonSet counts every node that it wants as ready; else it is not known.
 *
 * @param objects of the cluster; others than Nodes, PullStatuses, Pods and the DaemonSet are skipped
 * @example
 * ```ts
 * import { nodeCoverage } from './nodes.ts';
 * import assert from 'node:assert/strict';
 *
 * const node = (name: string, label: string) => ({
 *   apiVersion: 'v1', kind: 'Node',
 *   metadata: { name, labels: { 'hypershift.openshift.io/nodepool-globalps-enabled': label } },
 * });
 * const { eligible, inSync, ineligible, unknown } = nodeCoverage([node('a', 'true'), node('b', '')]);
 * assert.deepEqual({ eligible, inSync, ineligible, unknown }, { eligible: 1, inSync: 0, ineligible: 1, unknown: 1 });
 * ```
 */
export function nodeCoverage(objects: readonly KubeObject[]): ReportNodes {
  const evidence = evidenceIn(objects);
  const list = objects
    .filter(({ kind, apiVersion }) => kind === 'Node' && apiVersion === 'v1')
    .map((node) => ({ name: node.metadata.name, ...stateOf(node, evidence) }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const count = (state: ReportNodeState): number => list.filter((node) => node.state === state).length;
  const ineligible = count('ineligible');
  return {
    total: list.length,
    eligible: list.length - ineligible,
    inSync: count('in-sync'),
    outOfSync: count('out-of-sync'),
    ineligible,
    unknown: count('unknown'),
    list,
  };
}

/**
 * The container runtimes that Nodes name.
 *
 * @param objects of the cluster; others than Nodes are skipped
 * @example
 * ```ts
 * import { runtimesOf } from './nodes.ts';
 * import assert from 'node:assert/strict';
 *
 * const node = (name: string, containerRuntimeVersion: string) =>
 *   ({ apiVersion: 'v1', kind: 'Node', metadata: { name }, status: { nodeInfo: { containerRuntimeVersion } } });
 * assert.deepEqual(runtimesOf([node('a', 'cri-o://1.36.0'), node('b', 'containerd://2.1.4')]), ['containerd', 'cri-o']);
 * assert.deepEqual(runtimesOf([node('a', '')]), []);
 * ```
 */
export function runtimesOf(objects: readonly KubeObject[]): readonly string[] {
  const named = objects
    .filter(({ kind, apiVersion }) => kind === 'Node' && apiVersion === 'v1')
    .map(({ status }) => recordOf(recordOf(status)['nodeInfo'])['containerRuntimeVersion'])
    .map((version) => (typeof version === 'string' ? (version.split('://')[0] ?? '') : ''));
  return [...new Set(named.filter((name) => name === 'containerd' || name === 'cri-o'))].toSorted();
}

interface Evidence {
  /** By name of the report. */
  readonly reports: ReadonlyMap<string, KubeObject>;
  /** Nodes on which the agent's pod is ready. */
  readonly ready: ReadonlySet<unknown>;
  readonly all: boolean;
}

function evidenceIn(objects: readonly KubeObject[]): Evidence {
  const { namespace, syncer } = GLOBAL_PULL_SECRET;
  const own = objects.filter((object) => object.metadata.namespace === namespace);
  const daemonSet = own.find(({ kind, metadata }) => kind === 'DaemonSet' && metadata.name === syncer);
  return {
    reports: new Map(
      own.filter(({ kind }) => kind === PULL_STATUS_KIND).map((object) => [object.metadata.name, object]),
    ),
    ready: new Set(own.filter((object) => isReadyAgent(object, syncer)).map(nodeNameOf)),
    all: daemonSet !== undefined && isWhole(daemonSet),
  };
}

function nodeNameOf({ spec }: KubeObject): unknown {
  return recordOf(spec)['nodeName'];
}

function isReadyAgent({ kind, metadata, status }: KubeObject, syncer: string): boolean {
  if (kind !== 'Pod' || metadata.ownerReferences?.some(({ name }) => name === syncer) !== true) return false;
  const conditions = recordOf(status)['conditions'];
  const list: readonly unknown[] = Array.isArray(conditions) ? conditions : [];
  return list.map(recordOf).some((one) => one['type'] === 'Ready' && one['status'] === 'True');
}

function isWhole({ status, metadata }: KubeObject): boolean {
  const { numberReady, desiredNumberScheduled, observedGeneration } = recordOf(status);
  const wanted = Number(desiredNumberScheduled ?? 0);
  return (
    wanted > 0 &&
    Number(numberReady ?? 0) >= wanted &&
    Number(observedGeneration ?? 0) >= (metadata.generation ?? 0)
  );
}

function stateOf(
  { metadata }: KubeObject,
  { reports, ready, all }: Evidence,
): { readonly state: ReportNodeState; readonly why?: string } {
  if (metadata.labels?.[GLOBAL_PULL_SECRET.nodeLabel] !== 'true') return { state: 'ineligible' };
  const said = readyOf(reports.get(pullStatusName('Node', metadata.name)));
  if (said?.status === 'False') return { state: 'out-of-sync', why: said.message };
  if (said?.status === 'True' || all || ready.has(metadata.name)) return { state: 'in-sync' };
  return { state: 'unknown' };
}

function readyOf(report: KubeObject | undefined): Condition | undefined {
  const { conditions } = recordOf(report?.status);
  const list: readonly unknown[] = Array.isArray(conditions) ? conditions : [];
  return list.map(recordOf).find((one) => one['type'] === 'Ready') as Condition | undefined;
}
