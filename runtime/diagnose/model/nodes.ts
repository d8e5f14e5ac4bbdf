/** State of the node of a pod: whether an agent runs there, and whether it has delivered the current pull secret. */
import { PullSecret } from '../../core/docker-config/pull-secret.ts';
import { GLOBAL_PULL_SECRET, GLOBAL_PULL_SECRET as NAMES } from '../../core/kubernetes/hypershift.ts';
import { describeObject, type KubeObject, startsReporting } from '../../core/kubernetes/object.ts';
import {
  type EntryStatus,
  nodeSubject,
  PULL_STATUS_API_VERSION,
  PULL_STATUS_KIND,
  pullStatusName,
} from '../../core/kubernetes/pull-status.ts';
import { recordOf } from '../../core/record.ts';
import { installerStatusName } from '../../credential-provider/platform.ts';
import type { ObjectStore } from '../../engine/store.ts';
import { lackOf } from '../../global-pull-secret/reconciler/nodes.ts';
import type { ObjectRef } from '../../kube/resources.ts';
import { conditionOf, readinessOf, type SourceKind } from './objects.ts';
import { GLOBAL_SECRET, podSpecIn } from './pull.ts';
import type { DoctorInput, Explanation, NodeEvidence, ReportNodeState, ReportNodes } from './types.ts';

const DAEMON_SET = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  namespace: NAMES.namespace,
  name: NAMES.syncer,
} as const;
const POD = { apiVersion: 'v1', kind: 'Pod' } as const;

/** What to read about the agent of a node, where pull secrets are delivered to nodes. */
export function agentKinds(store: ObjectStore, node: string): readonly SourceKind[] {
  if (store.get(GLOBAL_SECRET) === undefined || !takesPart(store, node)) return [];
  return [
    DAEMON_SET,
    {
      ...POD,
      namespace: NAMES.namespace,
      labelSelector: `name=${NAMES.syncer}`,
      fieldSelector: `spec.nodeName=${node}`,
    },
  ];
}

function takesPart(store: ObjectStore, node: string): boolean {
  const found = store.get({ apiVersion: 'v1', kind: 'Node', name: node });
  return found?.metadata.labels?.[NAMES.nodeLabel] === 'true';
}

/** What is looked at. */
export interface NodeLook {
  readonly node: string | undefined;
  readonly explanations: readonly Explanation[];
  /** The whole cluster could be read: what was not found does not exist. */
  readonly complete: boolean;
}

/** Collects; undefined where no image is pulled with credentials of the node. */
export function nodeFacts(
  store: ObjectStore,
  { node, explanations, complete }: NodeLook,
): NodeEvidence | undefined {
  if (node === undefined || !takesPart(store, node) || !explanations.some(usesGlobal)) return undefined;
  const daemonSet = store.get(DAEMON_SET);
  return {
    name: node,
    ...agentOn(store, node, { daemonSet, complete }),
    ...contentOf(store, node, daemonSet),
  };
}

/** Whether the kubelet or CRI-O takes an entry of the file that the agent writes. */
function usesGlobal({ kubelet, places }: Explanation): boolean {
  const name = describeObject({ kind: 'Secret', namespace: NAMES.namespace, name: NAMES.global });
  return (
    kubelet.tried.some(({ source }) => source === name) ||
    places.some(({ crio }) => crio.what === 'entry' && crio.entry.source === name)
  );
}

function agentOn(
  store: ObjectStore,
  node: string,
  { daemonSet, complete }: { readonly daemonSet: KubeObject | undefined; readonly complete: boolean },
): Pick<NodeEvidence, 'agent' | 'agentSays'> {
  const agents = store
    .list(POD, NAMES.namespace)
    .filter((pod) => pod.metadata.labels?.['name'] === NAMES.syncer && podSpecIn(pod)['nodeName'] === node);
  const waits = agents.filter((pod) => !isReady(pod));
  if (agents.length > waits.length) return { agent: 'ready' };
  const [first] = waits;
  if (first !== undefined) return { agent: 'not-ready', agentSays: whyNotReady(first) };
  if (daemonSet === undefined) return { agent: complete ? 'no-daemon-set' : 'unknown' };
  // A manifest has no status: that none of its pods are in the folder says nothing.
  return { agent: complete || daemonSet.status !== undefined ? 'absent' : 'unknown' };
}

function isReady(object: KubeObject): boolean {
  return conditionOf(object, 'Ready')?.status === 'True';
}

/** `global-pull-secret-syncer-x7k2p waits: CrashLoopBackOff` */
function whyNotReady(pod: KubeObject): string {
  const { containerStatuses, phase } = recordOf(pod.status);
  const containers: readonly unknown[] = Array.isArray(containerStatuses) ? containerStatuses : [];
  const reason = containers
    .map((one) => recordOf(recordOf(recordOf(one)['state'])['waiting'])['reason'])
    .find((one) => typeof one === 'string');
  const condition = conditionOf(pod, 'Ready')?.message;
  const said = [reason, condition, phase].find((one): one is string => typeof one === 'string' && one !== '');
  return `${pod.metadata.name} waits: ${said ?? 'it has no status yet'}`;
}

/** Where agents report, what that of the node says of the file. */
function contentOf(
  store: ObjectStore,
  node: string,
  daemonSet: KubeObject | undefined,
): Pick<NodeEvidence, 'behind'> {
  if (daemonSet === undefined || !startsReporting(daemonSet)) return {};
  const report = store.get({
    apiVersion: PULL_STATUS_API_VERSION,
    kind: PULL_STATUS_KIND,
    namespace: NAMES.namespace,
    name: pullStatusName('Node', node),
  });
  const secret = store.get(GLOBAL_SECRET);
  const source = secret && PullSecret.of(secret);
  if (source?.value === undefined) return {};
  return { behind: lackOf(report, source.digest) ?? 'none' };
}

// What `doctor` reads of the reports about the pod's node: those of its agent and installer, and what the reconciler makes of them.

export const PULL_STATUS: { readonly apiVersion: string; readonly kind: string } = {
  apiVersion: PULL_STATUS_API_VERSION,
  kind: PULL_STATUS_KIND,
};

/** The reports in which something stands about a node. */
export function reportsAbout(node: string): readonly Required<ObjectRef>[] {
  return [SYNC_REPORT, ...reportsOf(node)].map((report) => ({ ...PULL_STATUS, ...report }));
}

/** Where the reconciler says which nodes lack what it wrote, and why. */
const SYNC_REPORT = {
  namespace: GLOBAL_PULL_SECRET.namespace,
  name: pullStatusName('Secret', GLOBAL_PULL_SECRET.original),
};

/** A node that has not what the cluster's pull secret says by now. */
function behindIn(store: ObjectStore, node: string): DoctorInput['troubles'] {
  const report = store.get({ ...PULL_STATUS, ...SYNC_REPORT });
  const { verdicts = [] } = (report?.status ?? {}) as { readonly verdicts?: readonly EntryStatus[] };
  return verdicts
    .filter(({ subject, verdict }) => subject === nodeSubject(node) && verdict === 'Pending')
    .map(({ reason, message }) => ({
      object: `Node/${node}`,
      message: `lacks the cluster's pull secret as it is now (${reason}): ${message}`,
      onNode: true,
    }));
}

/** Where the agent and the installer of a node report. */
function reportsOf(node: string): readonly { readonly namespace: string; readonly name: string }[] {
  const { namespace } = GLOBAL_PULL_SECRET;
  return [pullStatusName('Node', node), installerStatusName(node)].map((name) => ({ namespace, name }));
}

/** Unhealthy reports: of the namespace about synced Secrets and this account, and of the node. */
export function troublesIn(
  store: ObjectStore,
  { namespace, account, node }: Concerned,
): DoctorInput['troubles'] {
  const here = store.list(PULL_STATUS, namespace).filter(({ status }) => {
    const { reporter, about } = (status ?? {}) as InjectionReport;
    if (about?.kind === 'ServiceAccount' && about.name !== account) return false;
    return reporter === 'pull-secret-injection';
  });
  const ofNode = node === undefined ? [] : reportsOf(node);
  return [
    ...here.flatMap((object) => troubleOf(object, false)),
    ...(node === undefined ? [] : behindIn(store, node)),
    ...ofNode.flatMap((report) => {
      const object = store.get({ ...PULL_STATUS, ...report });
      return object === undefined ? [] : troubleOf(object, true);
    }),
  ];
}

interface Concerned {
  readonly namespace: string;
  /** Name of the pod's ServiceAccount. */
  readonly account: string;
  readonly node: string | undefined;
}

interface InjectionReport {
  readonly reporter?: string;
  readonly about?: { readonly kind?: string; readonly name?: string };
}

function troubleOf(object: KubeObject, onNode: boolean): DoctorInput['troubles'] {
  const ready = conditionOf(object, 'Ready');
  if (ready?.status !== 'False') return [];
  const { namespace, name } = object.metadata;
  return [{ object: describeObject({ kind: object.kind, namespace, name }), message: ready.message, onNode }];
}

// Which nodes of a cluster have the pull secret that is meant for them, as far as anything has shown it.

/**
 * Counts. A node is in sync when its own report says so, when the agent's pod on it is ready (it is ready when the file is in
 * place), or when the DaemonSet counts every desired node as ready; else it is not known.
 *
 * @param objects of the cluster; others than Nodes, PullStatuses, Pods and the DaemonSet are skipped
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

function isReadyAgent(object: KubeObject, syncer: string): boolean {
  const { kind, metadata } = object;
  return (
    kind === 'Pod' &&
    metadata.ownerReferences?.some(({ name }) => name === syncer) === true &&
    isReady(object)
  );
}

function isWhole(daemonSet: KubeObject): boolean {
  const { ready, desired, observed } = readinessOf(daemonSet);
  return desired > 0 && ready >= desired && observed >= (daemonSet.metadata.generation ?? 0);
}

function stateOf(
  { metadata }: KubeObject,
  { reports, ready, all }: Evidence,
): { readonly state: ReportNodeState; readonly why?: string } {
  if (metadata.labels?.[GLOBAL_PULL_SECRET.nodeLabel] !== 'true') return { state: 'ineligible' };
  const report = reports.get(pullStatusName('Node', metadata.name));
  const said = report && conditionOf(report, 'Ready');
  if (said?.status === 'False') return { state: 'out-of-sync', why: said.message };
  if (said?.status === 'True' || all || ready.has(metadata.name)) return { state: 'in-sync' };
  return { state: 'unknown' };
}
