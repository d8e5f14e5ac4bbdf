/** State of a pod's node: whether an agent runs there, and whether it has delivered the current pull secret. */
import { pullSecretOf, readersDigest } from '../../core/docker-config/pull-secret.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../core/kubernetes/hypershift.ts';
import { describeObject, type KubeObject, startsReporting } from '../../core/kubernetes/object.ts';
import { nodeSubject, PULL_STATUS, pullStatusName, verdictsOf } from '../../core/kubernetes/pull-status.ts';
import { recordOf, recordsIn } from '../../core/record.ts';
import { installerStatusName } from '../../credential-provider/platform.ts';
import type { ObjectStore } from '../../engine/store.ts';
import { lackOf } from '../../global-pull-secret/reconciler/nodes.ts';
import type { ObjectRef } from '../../kube/resources.ts';
import { conditionOf, nodeInfoOf, readinessOf, type SourceKind } from './objects.ts';
import { GLOBAL_SECRET, NODE, ownNode } from './pull.ts';
import type { Explanation } from './types.ts';

/** The DaemonSet of the agents. */
export const DAEMON_SET = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  namespace: NAMES.namespace,
  name: NAMES.syncer,
} as const;
export const AGENT_PODS = {
  apiVersion: 'v1',
  kind: 'Pod',
  namespace: NAMES.namespace,
  labelSelector: `name=${NAMES.syncer}`,
} as const;

/** Kinds to read about the agent of a node; none if the node gets no global pull secret. */
export function agentKinds(store: ObjectStore, node: string): readonly SourceKind[] {
  if (store.get(GLOBAL_SECRET) === undefined || !takesPart(store, node)) return [];
  return [DAEMON_SET, { ...AGENT_PODS, fieldSelector: `spec.nodeName=${node}` }];
}

function takesPart(store: ObjectStore, node: string): boolean {
  const found = store.get({ ...NODE, name: node });
  return found?.metadata.labels?.[NAMES.nodeLabel] === 'true';
}

/**
 * Collects facts about the agent; undefined if no image is pulled with a credential that the agent delivers.
 *
 * @param complete true if the whole cluster was read, so that an object that is not found does not exist
 */
export function nodeFacts(
  store: ObjectStore,
  node: string | undefined,
  explanations: readonly Explanation[],
  complete: boolean,
) {
  if (node === undefined || !takesPart(store, node) || !explanations.some(usesGlobal)) return undefined;
  const daemonSet = store.get(DAEMON_SET);
  const reports = daemonSet !== undefined && startsReporting(daemonSet);
  const secret = store.get(GLOBAL_SECRET);
  const source = secret && pullSecretOf(secret);
  return {
    name: node,
    ...agentOn(store, node, daemonSet, complete),
    /** How the agent's report differs from the current Secret; `none` if in sync, undefined if agents do not report. */
    behind:
      reports && source?.value !== undefined
        ? (lackOf(store.get(nodeReport(node)), readersDigest(source)) ?? ('none' as const))
        : undefined,
  };
}

/** State of a node that is eligible for the global pull secret. */
export type NodeEvidence = NonNullable<ReturnType<typeof nodeFacts>>;

/** Reports whether the kubelet or CRI-O uses an entry of the file that the agent writes. */
function usesGlobal({ kubelet, places }: Explanation): boolean {
  const name = describeObject(GLOBAL_SECRET);
  return (
    kubelet.tried.some(({ source }) => source === name) ||
    places.some(({ crio }) => crio.what === 'entry' && crio.entry.source === name)
  );
}

/**
 * State of the node's agent; `unknown` if the objects contain neither a pod nor a status of the DaemonSet. `agentSays`: for
 * `not-ready`, the pod of the agent, and what it waits for.
 */
function agentOn(store: ObjectStore, node: string, daemonSet: KubeObject | undefined, complete: boolean) {
  const agents = agentsIn(store).filter((pod) => ownNode(pod) === node);
  const waits = agents.filter((pod) => !isReady(pod));
  if (agents.length > waits.length) return { agent: 'ready' as const };
  const [first] = waits;
  if (first !== undefined) return { agent: 'not-ready' as const, agentSays: whyNotReady(first) };
  if (daemonSet === undefined) return { agent: complete ? ('no-daemon-set' as const) : ('unknown' as const) };
  // A DaemonSet without a status is a manifest: missing pods prove nothing.
  const agent = complete || daemonSet.status !== undefined ? 'absent' : 'unknown';
  return { agent } as const;
}

function agentsIn(store: ObjectStore): readonly KubeObject[] {
  return store
    .list(AGENT_PODS, NAMES.namespace)
    .filter(({ metadata }) => metadata.labels?.['name'] === NAMES.syncer);
}

function isReady(object: KubeObject): boolean {
  return conditionOf(object, 'Ready')?.status === 'True';
}

/** `global-pull-secret-syncer-x7k2p waits: CrashLoopBackOff` */
function whyNotReady(pod: KubeObject): string {
  const { containerStatuses, phase } = recordOf(pod.status);
  const reason = recordsIn(containerStatuses)
    .map(({ state }) => recordOf(recordOf(state)['waiting'])['reason'])
    .find((one) => typeof one === 'string');
  const condition = conditionOf(pod, 'Ready')?.message;
  const said = [reason, condition, phase].find((one): one is string => typeof one === 'string' && one !== '');
  return `${pod.metadata.name} waits: ${said ?? 'it has no status yet'}`;
}

// Reports about the pod's node, for `doctor`: those of its agent, its installer and the reconciler.

/** The reconciler's report, with the nodes that are out of sync. */
export const SYNC_REPORT: ObjectRef = {
  ...PULL_STATUS,
  namespace: NAMES.namespace,
  name: pullStatusName('Secret', NAMES.original),
};

/** The report of a node's agent. */
function nodeReport(node: string): ObjectRef {
  return { ...SYNC_REPORT, name: pullStatusName('Node', node) };
}

/** Reports about a node: of the reconciler, of the node's agent and of its installer. */
export function reportsAbout(node: string): readonly ObjectRef[] {
  return [SYNC_REPORT, nodeReport(node), { ...SYNC_REPORT, name: installerStatusName(node) }];
}

/**
 * Unhealthy reports in the namespace (about synced Secrets and this ServiceAccount), and about the node.
 *
 * @param account name of the pod's ServiceAccount
 */
export function troublesIn(store: ObjectStore, namespace: string, account: string, node: string | undefined) {
  const here = store.list(PULL_STATUS, namespace).filter(({ status }) => {
    const { reporter, about } = recordOf(status);
    const { kind, name } = recordOf(about);
    return reporter === 'pull-secret-injection' && (kind !== 'ServiceAccount' || name === account);
  });
  const [sync, ...own] = node === undefined ? [] : reportsAbout(node).map((report) => store.get(report));
  return [
    ...here.flatMap((object) => troubleOf(object, false)),
    ...behindIn(sync, node ?? ''),
    ...own.flatMap((object) => (object === undefined ? [] : troubleOf(object, true))),
  ];
}

/** Reports a node that lacks the current version of the cluster's pull secret. */
function behindIn(report: KubeObject | undefined, node: string) {
  return verdictsOf(report)
    .filter(({ subject, verdict }) => subject === nodeSubject(node) && verdict === 'Pending')
    .map(({ reason, message }) => ({
      object: `Node/${node}`,
      message: `lacks the cluster's pull secret as it is now (${reason}): ${message}`,
      onNode: true,
    }));
}

function troubleOf(report: KubeObject, onNode: boolean) {
  const ready = conditionOf(report, 'Ready');
  if (ready?.status !== 'False') return [];
  return [{ object: describeObject(report), message: ready.message, onNode }];
}

// Nodes of a cluster that have the global pull secret, as far as evidence shows.

/**
 * Counts nodes by state. A node is in sync if its report is Ready, its agent's pod is ready (that is, the file is written), or
 * all pods of the DaemonSet are ready. Otherwise its state is unknown.
 */
export function nodeCoverage(store: ObjectStore) {
  const daemonSet = store.get(DAEMON_SET);
  const isWhole = daemonSet !== undefined && rolledOut(daemonSet) === 'ready';
  const ready = new Set(agentsIn(store).filter(isReady).map(ownNode));
  const list = store.list(NODE).map(({ metadata: { name } }) => {
    if (!takesPart(store, name)) return { name, state: 'ineligible' as const };
    const report = store.get(nodeReport(name));
    const said = report && conditionOf(report, 'Ready');
    if (said?.status === 'False') return { name, state: 'out-of-sync' as const, why: said.message };
    const isThere = said?.status === 'True' || isWhole || ready.has(name);
    return { name, state: isThere ? ('in-sync' as const) : ('unknown' as const) };
  });
  const count = (state: (typeof list)[number]['state']): number =>
    list.filter((node) => node.state === state).length;
  return {
    total: list.length,
    /** Nodes with the label, regardless of their reports. */
    eligible: list.length - count('ineligible'),
    inSync: count('in-sync'),
    outOfSync: count('out-of-sync'),
    ineligible: count('ineligible'),
    unknown: count('unknown'),
    list,
  };
}

export type ReportNodes = ReturnType<typeof nodeCoverage>;

/** Rollout state: `uncounted` if the controller has not observed the latest generation, `none` if no pod is desired. */
export function rolledOut(workload: KubeObject): 'uncounted' | 'none' | 'progressing' | 'ready' {
  const { ready, desired, observed } = readinessOf(workload);
  if (observed < (workload.metadata.generation ?? 0)) return 'uncounted';
  if (desired === 0) return 'none';
  return ready >= desired ? 'ready' : 'progressing';
}

/** Container runtimes in the status of Nodes, sorted. */
export function runtimesOf(store: ObjectStore): readonly string[] {
  const named = store.list(NODE).map((node) => nodeInfoOf(node).runtime.split('://')[0] ?? '');
  return [...new Set(named.filter((name) => name === 'containerd' || name === 'cri-o'))].toSorted();
}
