/** Finds for each node its Machine and NodePool, and turns the decision into parts, verdicts and counts. */
import {
  type ApplyPart,
  CONTROL_PLANE_NAMESPACE,
  HOSTED_CLUSTER_NAMESPACE,
  type Read,
  type World,
} from '../../controller/contract.ts';
import { managersOf } from '../../kube/managed-fields.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import { type LabelRequirement, selects } from '../../rules/kubernetes/label-selector.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { Verdict } from '../../rules/kubernetes/pull-status.ts';
import { eligibilityLabels, type NodeDecision, type NodeFacts, nodeDecision } from './eligibility.ts';
import { MACHINE, machineParts, machinesOf, NODE_POOL, poolOf } from './machines.ts';
import type { NodeTruth } from './node-truth.ts';

const NODE = { role: 'hosted', apiVersion: 'v1', kind: 'Node' } as const;

/** Set on Nodes by Cluster API: the name of the Machine. */
const MACHINE_ANNOTATION = 'cluster.x-k8s.io/machine';

export const NODE_READS: readonly Read[] = [
  NODE,
  { ...MACHINE, namespace: CONTROL_PLANE_NAMESPACE, optional: true },
  { ...NODE_POOL, namespace: HOSTED_CLUSTER_NAMESPACE, optional: true },
];

/** What becomes of the nodes. */
export interface NodesPlan {
  readonly apply: readonly ApplyPart[];
  readonly decisions: readonly NodeDecision[];
  readonly verdicts: readonly Verdict[];
  /** What agents report; absent where they do not. */
  readonly truth?: NodeTruth;
}

/** Which nodes to take, beside what their pools say. */
export interface NodeChoice {
  readonly platforms: readonly string[];
  /** @default {in a stand-alone cluster all Linux nodes, in a hosted one none} */
  readonly nodes?: readonly LabelRequirement[];
}

const LINUX: readonly LabelRequirement[] = [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }];

/** Set on Nodes by the Machine Config Operator. */
const MACHINE_CONFIG = 'machineconfiguration.openshift.io/currentConfig';

/** Judges every node of the scope. */
export function planNodes(world: World, manager: string, choice: NodeChoice): NodesPlan {
  const machines = machinesOf(world);
  const standalone = world.scope.hostedCluster === undefined;
  const requirements = choice.nodes ?? (standalone ? LINUX : undefined);
  const nodes = world.list(NODE).map((node) => {
    const labels = textsOf(node.metadata.labels);
    const facts: NodeFacts = {
      ...factsOf(world, node, machines.byNode, manager),
      selected: requirements !== undefined && selects(requirements, labels),
      poolless: standalone,
      machineConfig: node.metadata.annotations?.[MACHINE_CONFIG] !== undefined,
    };
    return { node, decision: nodeDecision(facts, choice.platforms) };
  });
  const decisions = nodes.map(({ decision }) => decision);
  return {
    apply: [
      ...nodes.flatMap(({ node, decision }) => partOf(node, decision)),
      ...machineParts(world, machines, manager, choice.platforms),
    ],
    decisions,
    verdicts: [...decisions.flatMap(overridden), ...machineConfigVerdict(decisions), ...machines.twice],
  };
}

function textsOf(labels: KubeObject['metadata']['labels']): Readonly<Record<string, string>> {
  return labels ?? {};
}

function overridden(decision: NodeDecision): readonly Verdict[] {
  if (decision.act !== 'report') return [];
  const { node, reason, message } = decision;
  return [{ subject: `node ${node}`, verdict: 'Warning', reason, message }];
}

/** The way of the Machine Config Operator, for the nodes whose files are its own. */
export const MACHINE_CONFIG_WAY: string = `the Machine Config Operator writes ${NAMES.kubeletFile} there, and a file that it finds changed degrades the node: put the credentials into Secret ${NAMES.configNamespace}/${NAMES.platform}, which it brings to its nodes`;

function machineConfigVerdict(decisions: readonly NodeDecision[]): readonly Verdict[] {
  const nodes = decisions.filter(({ reason }) => reason === 'MachineConfigOperator');
  const [first] = nodes;
  if (first === undefined) return [];
  const subject = nodes.length === 1 ? `node ${first.node}` : `${nodes.length} nodes`;
  return [{ subject, verdict: 'Warning', reason: first.reason, message: MACHINE_CONFIG_WAY }];
}

function factsOf(
  world: World,
  node: KubeObject,
  machines: ReadonlyMap<string, KubeObject>,
  manager: string,
): Omit<NodeFacts, 'selected' | 'poolless' | 'machineConfig'> {
  const annotation = node.metadata.annotations?.[MACHINE_ANNOTATION];
  const machine =
    machines.get(node.metadata.name) ??
    (typeof annotation === 'string' ? machines.get(`machine/${annotation}`) : undefined);
  const owners = managersOf(node, ['metadata', 'labels', NAMES.nodeLabel]);
  return {
    name: node.metadata.name,
    label: node.metadata.labels?.[NAMES.nodeLabel],
    ours: owners.some((entry) => entry.manager === manager),
    shared: owners.some((entry) => entry.manager !== manager),
    pool: machine === undefined ? undefined : poolOf(world, machine),
    machineLabel: machine?.metadata.labels?.[NAMES.machineLabel],
  };
}

/** A label to release is a part without it: what was ours and is no longer named comes off. */
function partOf(node: KubeObject, decision: NodeDecision): readonly ApplyPart[] {
  const { uid, name } = node.metadata;
  if (uid === undefined || (decision.act !== 'own' && decision.act !== 'release')) return [];
  const labels = eligibilityLabels(decision.act === 'own').node;
  const metadata = decision.act === 'own' ? { labels } : {};
  return [{ part: { ...NODE, name, uid }, fields: { metadata } }];
}
