/**
 * Machines of one hosted cluster: whose node each is, and the label from which HyperShift labels a node as soon as it is there.
 *
 * Source of the rule: HyperShift's NodePool controller labels the Machines of Replace pools on AWS and Azure. Where it did, its
 * label stays its own; on the platforms that an administrator adds, nobody else does.
 */
import type { ApplyPart, World } from '../../controller/contract.ts';
import { managersOf } from '../../kube/managed-fields.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { Verdict } from '../../rules/kubernetes/pull-status.ts';
import { eligibilityLabels, type PoolTraits, poolEligibility } from './eligibility.ts';

export const MACHINE = {
  role: 'management',
  apiVersion: 'cluster.x-k8s.io/v1beta1',
  kind: 'Machine',
} as const;
export const NODE_POOL = {
  role: 'management',
  apiVersion: 'hypershift.openshift.io/v1beta1',
  kind: 'NodePool',
} as const;

/** Machines of the scope, by what names them. */
export interface Machines {
  readonly all: readonly KubeObject[];
  /** By the name of the node, and by `machine/<name>`. */
  readonly byNode: ReadonlyMap<string, KubeObject>;
  /** Nodes that more than one Machine claims: no pool of them can be told. */
  readonly twice: readonly Verdict[];
}

export function machinesOf(world: World): Machines {
  const all =
    world.scope.hostedCluster === undefined
      ? []
      : world.list({ ...MACHINE, namespace: world.scope.controlPlaneNamespace });
  const byNode = new Map<string, KubeObject>();
  const claims = new Map<string, readonly string[]>();
  for (const machine of all) {
    byNode.set(`machine/${machine.metadata.name}`, machine);
    const node = (machine.status as { nodeRef?: { name?: string } } | undefined)?.nodeRef?.name;
    if (node === undefined) continue;
    byNode.set(node, machine);
    claims.set(node, [...(claims.get(node) ?? []), machine.metadata.name]);
  }
  const twice = [...claims].filter(([, names]) => names.length > 1);
  for (const [node, names] of twice) {
    byNode.delete(node);
    for (const name of names) byNode.delete(`machine/${name}`);
  }
  return { all, byNode, twice: twice.map(([node, names]) => claimedTwice(node, names)) };
}

function claimedTwice(node: string, names: readonly string[]): Verdict {
  const message = `Machines ${[...names].sort().join(' and ')} both name it, so that its NodePool is not known and its label stays as it is: delete the one that is left over`;
  return { subject: `node ${node}`, verdict: 'Warning', reason: 'MachineAmbiguous', message };
}

/** The pool of a Machine; undefined when it names none, or none that is there. */
export function poolOf(world: World, machine: KubeObject): PoolTraits | undefined {
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

/** Labels of Machines: added where the pool is eligible and nobody has said anything, taken off where it was ours. */
export function machineParts(
  world: World,
  { all }: Machines,
  manager: string,
  platforms: readonly string[],
): readonly ApplyPart[] {
  return all.flatMap((machine): readonly ApplyPart[] => {
    const { uid, name, namespace, labels, deletionTimestamp } = machine.metadata;
    const pool = poolOf(world, machine);
    if (uid === undefined || namespace === undefined || deletionTimestamp !== undefined) return [];
    const owners = managersOf(machine, ['metadata', 'labels', NAMES.machineLabel]);
    const ours = owners.some((entry) => entry.manager === manager);
    if (!ours && labels?.[NAMES.machineLabel] !== undefined) return [];
    const eligible = pool === undefined ? ours : poolEligibility(pool, platforms).eligible;
    if (!eligible && !ours) return [];
    const metadata = eligible ? { labels: eligibilityLabels(true).machine } : {};
    return [{ part: { ...MACHINE, namespace, name, uid }, fields: { metadata } }];
  });
}
