/** Resolves the Machine and NodePool of each node, and turns the decisions into patches, verdicts and counts. */

import { type PullSecret, readersDigest } from '../../core/docker-config/pull-secret.ts';
import { type ConditionInput, conditionIn } from '../../core/kubernetes/conditions.ts';
import {
  GLOBAL_PULL_SECRET as NAMES,
  NODE_POOL,
  NODE_REPORT,
  NODE_REPORT_LABEL,
} from '../../core/kubernetes/hypershift.ts';
import { type LabelRequirement, selects } from '../../core/kubernetes/label-selector.ts';
import { type KubeObject, startsReporting } from '../../core/kubernetes/object.ts';
import {
  type EntryStatus,
  nodeSubject,
  PULL_STATUS,
  pullStatusName,
} from '../../core/kubernetes/pull-status.ts';
import { recordOf, textOf, valueAt } from '../../core/record.ts';
import { counted, someOf } from '../../core/text.ts';
import {
  CONTROL_PLANE_NAMESPACE,
  type FieldPatch,
  NODE_POOL_READ,
  type Reader,
  type ReconcileError,
  type Watch,
} from '../../engine/contract.ts';
import { managersOf } from '../../kube/drift.ts';
import {
  ELIGIBLE_LABELS,
  type NodeDecision,
  type NodeFacts,
  nodeDecision,
  type PoolTraits,
  poolEligibility,
} from '../eligibility.ts';
import { type GlobalPullSecretOptions, reports } from '../options.ts';

// Machines of one hosted cluster: the node of each, and the label that HyperShift copies to a node on registration.
// Source of the rule: HyperShift's NodePool controller labels the Machines of Replace pools on AWS and Azure, and owns those
// labels. On platforms that an administrator adds, no other controller sets them.

const MACHINE = { role: 'management', apiVersion: 'cluster.x-k8s.io/v1beta1', kind: 'Machine' } as const;

/** Indexes the Machines of the scope. */
function machinesOf(reader: Reader) {
  const all =
    reader.scope.hostedCluster === undefined
      ? []
      : reader.list({ ...MACHINE, namespace: reader.scope.controlPlaneNamespace });
  const nodeOf = ({ status }: KubeObject): string => textOf(valueAt(status, 'nodeRef.name'));
  /** Nodes claimed by more than one Machine: their pool is ambiguous. */
  const twice = [...Map.groupBy(all, nodeOf)].filter(([node, claims]) => node !== '' && claims.length > 1);
  const ambiguous = new Set(twice.flatMap(([, claims]) => claims));
  const clear = all.filter((machine) => !ambiguous.has(machine));
  return {
    all,
    byNode: new Map(clear.map((machine) => [nodeOf(machine), machine])),
    byName: new Map(clear.map((machine) => [machine.metadata.name, machine])),
    twice: twice.map(([node, claims]) => claimedTwice(node, claims)),
  };
}

function claimedTwice(node: string, machines: readonly KubeObject[]): EntryStatus {
  const names = machines.map(({ metadata }) => metadata.name).sort();
  const message = `Machines ${names.join(' and ')} both name it, so its NodePool is unknown and its label stays unchanged: delete the stale Machine`;
  return { subject: nodeSubject(node), verdict: 'Warning', reason: 'MachineAmbiguous', message };
}

/** Returns the pool of a Machine; undefined when the annotation is missing or the NodePool is not found. */
function poolOf(reader: Reader, machine: KubeObject): PoolTraits | undefined {
  const annotation = machine.metadata.annotations?.[NAMES.nodePoolAnnotation];
  if (typeof annotation !== 'string') return undefined;
  const [namespace = '', name = ''] = annotation.split('/');
  const spec = reader.get({ role: 'management', ...NODE_POOL, namespace, name })?.spec;
  if (spec === undefined) return undefined;
  return {
    platform: textOf(valueAt(spec, 'platform.type')),
    upgradeType: textOf(valueAt(spec, 'management.upgradeType')),
  };
}

/** Labels of Machines: set when the pool is eligible and the label is unset, removed when ours. */
function machineParts(reader: Reader, all: readonly KubeObject[], platforms: readonly string[]) {
  return all.flatMap((machine): readonly FieldPatch[] => {
    const { uid, name, namespace, labels, deletionTimestamp } = machine.metadata;
    const pool = poolOf(reader, machine);
    if (uid === undefined || namespace === undefined || deletionTimestamp !== undefined) return [];
    const owners = managersOf(machine, ['metadata', 'labels', NAMES.machineLabel]);
    const ours = owners.some(({ manager }) => manager === MANAGER);
    if (!ours && labels?.[NAMES.machineLabel] !== undefined) return [];
    const eligible = pool === undefined ? ours : poolEligibility(pool, platforms).eligible;
    if (!eligible && !ours) return [];
    const metadata = eligible ? { labels: ELIGIBLE_LABELS.machine } : {};
    return [{ part: { ...MACHINE, namespace, name, uid }, fields: { metadata } }];
  });
}

const NODE = { role: 'hosted', apiVersion: 'v1', kind: 'Node' } as const;

/** The field manager of our labels. */
const MANAGER = 'pullwright-global-pull-secret';

/** Set on Nodes by Cluster API: the Machine name. */
const MACHINE_ANNOTATION = 'cluster.x-k8s.io/machine';

export const NODE_READS: readonly Watch[] = [
  NODE,
  { ...MACHINE, namespace: CONTROL_PLANE_NAMESPACE, optional: true },
  NODE_POOL_READ,
];

/** The plan for the nodes. `truth`: their states from agent reports; undefined when agents do not report. */
export type NodesPlan = Readonly<ReturnType<typeof planNodes>> & {
  readonly truth: NodeSyncStatus | undefined;
};

const LINUX: readonly LabelRequirement[] = [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }];

/** Set on Nodes by the Machine Config Operator. */
const MACHINE_CONFIG = 'machineconfiguration.openshift.io/currentConfig';

/** Decides the label of every node of the scope. */
export function planNodes(reader: Reader, options: GlobalPullSecretOptions) {
  const machines = machinesOf(reader);
  const standalone = reader.scope.hostedCluster === undefined;
  const requirements = options.nodes ?? (standalone ? LINUX : undefined);
  const nodes = reader.list(NODE).map((node) => {
    const { name, labels = {}, annotations = {} } = node.metadata;
    const machine = machines.byNode.get(name) ?? machines.byName.get(textOf(annotations[MACHINE_ANNOTATION]));
    const owners = managersOf(node, ['metadata', 'labels', NAMES.nodeLabel]);
    const facts: NodeFacts = {
      name,
      label: labels[NAMES.nodeLabel],
      ours: owners.some(({ manager }) => manager === MANAGER),
      shared: owners.some(({ manager }) => manager !== MANAGER),
      pool: machine && poolOf(reader, machine),
      machineLabel: machine?.metadata.labels?.[NAMES.machineLabel],
      selected: requirements !== undefined && selects(requirements, labels),
      poolless: standalone,
      machineConfig: annotations[MACHINE_CONFIG] !== undefined,
    };
    return { node, decision: nodeDecision(facts, options.platforms) };
  });
  const decisions = nodes.map(({ decision }) => decision);
  return {
    apply: [
      ...nodes.flatMap(({ node, decision }) => partOf(node, decision)),
      ...machineParts(reader, machines.all, options.platforms),
    ],
    decisions,
    verdicts: [...decisions.flatMap(overridden), ...machineConfigVerdict(decisions), ...machines.twice],
  };
}

function overridden({ node, reason, message }: NodeDecision): readonly EntryStatus[] {
  return message === undefined ? [] : [{ subject: nodeSubject(node), verdict: 'Warning', reason, message }];
}

/** Hint for nodes whose files the Machine Config Operator manages. */
export const MACHINE_CONFIG_WAY: string = `the Machine Config Operator manages ${NAMES.kubeletFile} there, and a change by others degrades the node: put the credentials into Secret ${NAMES.configNamespace}/${NAMES.platform}, which it syncs to its nodes`;

function machineConfigVerdict(decisions: readonly NodeDecision[]): readonly EntryStatus[] {
  const nodes = decisions.filter(({ reason }) => reason === 'MachineConfigOperator');
  const [first] = nodes;
  if (first === undefined) return [];
  const subject = nodes.length === 1 ? `node ${first.node}` : `${nodes.length} nodes`;
  return [{ subject, verdict: 'Warning', reason: first.reason, message: MACHINE_CONFIG_WAY }];
}

/** Releases a label by an apply without it: server-side apply removes fields that we owned. */
function partOf(node: KubeObject, decision: NodeDecision): readonly FieldPatch[] {
  const { uid, name } = node.metadata;
  if (uid === undefined || (decision.act !== 'own' && decision.act !== 'release')) return [];
  const metadata = decision.act === 'own' ? { labels: ELIGIBLE_LABELS.node } : {};
  return [{ part: { ...NODE, name, uid }, fields: { metadata } }];
}

// Finds the nodes that are in sync, from agent reports about the file that the kubelet and CRI-O read. Pure.

const REPORTS = {
  role: 'hosted',
  ...PULL_STATUS,
  namespace: NAMES.namespace,
} as const;

export const REPORT_READS: readonly Watch[] = [
  { ...REPORTS, labelSelector: `${NODE_REPORT_LABEL}=${NODE_REPORT}`, optional: true },
];

/** A node without the desired pull secret. */
export interface NodeBehind {
  readonly node: string;
  /** CamelCase, stable. */
  readonly reason: string;
  /** A clause without a period. */
  readonly why: string;
}

/** Sync state of the participating nodes: their number, and those behind, sorted by name. */
export type NodeSyncStatus = NonNullable<ReturnType<typeof syncStatusOf>>;

/**
 * Evaluates the agent reports. Returns undefined without a source, without participating nodes, or when agents do not report.
 *
 * @param source the desired content of nodes
 */
export function syncStatusOf(
  reader: Reader,
  options: Pick<GlobalPullSecretOptions, 'delivery' | 'agent'>,
  daemonSet: KubeObject | undefined,
  decisions: readonly NodeDecision[],
  source: PullSecret | undefined,
) {
  const names = decisions
    .filter(({ eligible }) => eligible)
    .map(({ node }) => node)
    .sort();
  // By our options, or by the arguments of the DaemonSet that a GitOps tool applied.
  const areReporting =
    options.delivery === 'reconciler'
      ? reports(options.agent)
      : daemonSet !== undefined && startsReporting(daemonSet);
  if (source?.value === undefined || names.length === 0 || !areReporting) return undefined;
  const found = reader.list({ ...REPORTS, labels: { [NODE_REPORT_LABEL]: NODE_REPORT } });
  const byName = new Map(found.map((report) => [report.metadata.name, report]));
  const behind = names.flatMap((node): readonly NodeBehind[] => {
    const lack = lackOf(byName.get(pullStatusName('Node', node)), readersDigest(source));
    return lack === undefined ? [] : [{ node, ...lack }];
  });
  return { nodes: names.length, behind };
}

/** Compares an agent's report with the desired digest. Returns undefined when the node is in sync. */
export function lackOf(
  report: KubeObject | undefined,
  digest: string | undefined,
): Omit<NodeBehind, 'node'> | undefined {
  const ready = conditionIn(report, 'Ready');
  const summary = recordOf(valueAt(report?.status, 'summary'));
  if (ready === undefined)
    return {
      reason: 'NotReported',
      why: 'no agent has reported: its pod is not running, or cannot reach the API server',
    };
  const { status, reason, message } = ready;
  if (status !== 'True') return { reason: reason || 'NotReady', why: message || 'its agent is not ready' };
  if (summary['sourceDigest'] === digest && digest !== undefined) return undefined;
  const version = summary['resourceVersion'];
  const which = typeof version === 'string' ? ` (resourceVersion ${version})` : '';
  const why = `its agent has synced another version of the pull secret${which}`;
  return { reason: 'OlderContent', why };
}

/** Maximum number of nodes in a message. */
const NAMED = 3;
/** Maximum number of verdicts for single nodes. */
const MAX_NODE_VERDICTS = 20;

/** `297 of 300 nodes; a (Spread), b (Spread) and 1 more lack it`. */
function countText({ nodes, behind }: NodeSyncStatus, nameOf: (node: NodeBehind) => string): string {
  const count = `${nodes - behind.length} of ${counted(nodes, 'node')}`;
  if (behind.length === 0) return count;
  return `${count}; ${someOf(behind.map(nameOf), NAMED)} ${behind.length === 1 ? 'lacks' : 'lack'} it`;
}

/** Adds the node counts to the accepted verdicts. */
export function onNodes(verdicts: readonly EntryStatus[], truth: NodeSyncStatus): readonly EntryStatus[] {
  const text = countText(truth, ({ node, reason }) => `${node} (${reason})`);
  return verdicts.map((verdict) =>
    verdict.verdict === 'Accepted' ? { ...verdict, message: `${verdict.message}; used on ${text}` } : verdict,
  );
}

/** One verdict per node behind, up to the limit, and one with the count of the rest. */
export function behindVerdicts({ behind }: NodeSyncStatus): readonly EntryStatus[] {
  const verdict = 'Pending';
  const shown = behind
    .slice(0, MAX_NODE_VERDICTS)
    .map(
      ({ node, reason, why: message }) => ({ subject: nodeSubject(node), verdict, reason, message }) as const,
    );
  const more = behind.length - shown.length;
  if (more === 0) return shown;
  return [
    ...shown,
    { subject: `${more} more nodes`, verdict, reason: 'NodesBehind', message: 'lack it too' },
  ];
}

/** Builds the condition `NodesInSync`. */
export function inSyncCondition(truth: NodeSyncStatus): ConditionInput {
  const isBehind = truth.behind.length > 0;
  return {
    type: 'NodesInSync',
    status: isBehind ? 'False' : 'True',
    reason: isBehind ? 'NodesBehind' : 'InSync',
    message: usedText(truth),
  };
}

/** Returns a waiting error while a node is behind. */
export function nodesBehind(truth: NodeSyncStatus): readonly ReconcileError[] {
  if (truth.behind.length === 0) return [];
  return [{ retryPolicy: 'waiting', code: 'NodesBehind', message: usedText(truth) }];
}

function usedText(truth: NodeSyncStatus): string {
  return `used on ${countText(truth, ({ node, why }) => `${node} (${why})`)}`;
}
