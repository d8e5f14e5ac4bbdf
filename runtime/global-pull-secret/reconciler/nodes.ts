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
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { Verdict } from '../../rules/kubernetes/pull-status.ts';
import {
  eligibilityLabels,
  type NodeDecision,
  type NodeFacts,
  nodeDecision,
  type PoolTraits,
} from './eligibility.ts';

const NODE = { role: 'hosted', apiVersion: 'v1', kind: 'Node' } as const;
const MACHINE = { role: 'management', apiVersion: 'cluster.x-k8s.io/v1beta1', kind: 'Machine' } as const;
const NODE_POOL = {
  role: 'management',
  apiVersion: 'hypershift.openshift.io/v1beta1',
  kind: 'NodePool',
} as const;

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
}

/** Judges every node of the scope. A stand-alone cluster has no NodePools: its nodes are labelled by whoever owns them. */
export function planNodes(world: World, manager: string, platforms: readonly string[]): NodesPlan {
  if (world.scope.hostedCluster === undefined) return { apply: [], decisions: [], verdicts: [] };
  const machines = machinesByNode(world);
  const nodes = world
    .list(NODE)
    .map((node) => ({ node, decision: nodeDecision(factsOf(world, node, machines, manager), platforms) }));
  return {
    apply: nodes.flatMap(({ node, decision }) => partOf(node, decision)),
    decisions: nodes.map(({ decision }) => decision),
    verdicts: nodes.flatMap(({ decision }) =>
      decision.act === 'report'
        ? [
            {
              subject: `node ${decision.node}`,
              verdict: 'Warning' as const,
              reason: decision.reason,
              message: decision.message,
            },
          ]
        : [],
    ),
  };
}

function machinesByNode(world: World): ReadonlyMap<string, KubeObject> {
  const machines = world.list({ ...MACHINE, namespace: world.scope.controlPlaneNamespace });
  const byNode = machines.flatMap((machine) => {
    const node = (machine.status as { nodeRef?: { name?: string } } | undefined)?.nodeRef?.name;
    return node === undefined ? [] : [[node, machine] as const];
  });
  return new Map([
    ...machines.map((machine) => [`machine/${machine.metadata.name}`, machine] as const),
    ...byNode,
  ]);
}

function factsOf(
  world: World,
  node: KubeObject,
  machines: ReadonlyMap<string, KubeObject>,
  manager: string,
): NodeFacts {
  const annotation = node.metadata.annotations?.[MACHINE_ANNOTATION];
  const machine =
    machines.get(node.metadata.name) ??
    (typeof annotation === 'string' ? machines.get(`machine/${annotation}`) : undefined);
  const owners = managersOf(node, ['metadata', 'labels', NAMES.nodeLabel]);
  return {
    name: node.metadata.name,
    label: node.metadata.labels?.[NAMES.nodeLabel],
    ours: owners.some((entry) => entry.manager === manager),
    pool: machine === undefined ? undefined : poolOf(world, machine),
    machineLabel: machine?.metadata.labels?.[NAMES.machineLabel],
  };
}

function poolOf(world: World, machine: KubeObject): PoolTraits | undefined {
  const annotation = machine.metadata.annotations?.[NAMES.nodePoolAnnotation];
  if (typeof annotation !== 'string') return undefined;
  const [namespace = '', name = ''] = annotation.split('/');
  const pool = world.get({ ...NODE_POOL, namespace, name });
  const spec = pool?.spec as
    | { platform?: { type?: string }; management?: { upgradeType?: string } }
    | undefined;
  if (spec === undefined) return undefined;
  return { platform: spec.platform?.type ?? '', upgradeType: spec.management?.upgradeType ?? '' };
}

/** A label to release is a part without it: what was ours and is no longer named comes off. */
function partOf(node: KubeObject, decision: NodeDecision): readonly ApplyPart[] {
  const { uid, name } = node.metadata;
  if (uid === undefined || (decision.act !== 'own' && decision.act !== 'release')) return [];
  const labels = eligibilityLabels(decision.act === 'own').node;
  const metadata = decision.act === 'own' ? { labels } : {};
  return [{ part: { ...NODE, name, uid }, fields: { metadata } }];
}
