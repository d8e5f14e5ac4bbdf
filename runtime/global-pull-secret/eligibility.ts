/**
 * Selects the nodes that run the sync DaemonSet: nodes of Replace NodePools on platforms where no other component writes the
 * kubelet's `config.json`. Level-based: the label is also removed.
 *
 * Source: requirement 1, "Platform and NodePool eligibility" (AWS and Azure, Replace only; InPlace never, because the Machine
 * Config Daemon writes the same file).
 */

import { GLOBAL_PULL_SECRET } from '../core/kubernetes/hypershift.ts';
import { type Redacted, reveal } from '../core/redacted.ts';

/** Platforms with eligible nodes by default. */
export const ELIGIBLE_PLATFORMS: readonly string[] = ['AWS', 'Azure'];

/** NodePool fields that decide eligibility. */
export interface PoolTraits {
  /** `spec.platform.type`: `AWS`, `Azure`, `KubeVirt`, ... */
  readonly platform: string;
  /** `spec.management.upgradeType`: `Replace` or `InPlace`. */
  readonly upgradeType: string;
}

export interface Eligibility {
  readonly eligible: boolean;
  /** CamelCase: `ReplaceOnEligiblePlatform`, `InPlace`, `PlatformNotEligible`. */
  readonly reason: string;
}

/**
 * Decides whether a pool is eligible.
 *
 * @param platforms accepted platforms; {@link ELIGIBLE_PLATFORMS} is upstream's list, others are an opt-in
 */
export function poolEligibility(
  pool: PoolTraits,
  platforms: readonly string[] = ELIGIBLE_PLATFORMS,
): Eligibility {
  if (pool.upgradeType !== 'Replace') return { eligible: false, reason: 'InPlace' };
  if (!platforms.includes(pool.platform)) return { eligible: false, reason: 'PlatformNotEligible' };
  return { eligible: true, reason: 'ReplaceOnEligiblePlatform' };
}

/** Labels for the Machines and Nodes of an eligible pool. */
export const ELIGIBLE_LABELS = {
  machine: { [GLOBAL_PULL_SECRET.machineLabel]: 'true' },
  node: { [GLOBAL_PULL_SECRET.nodeLabel]: 'true' },
} as const;

/** Facts about one node. */
export interface NodeFacts {
  readonly name: string;
  /** Value of the eligibility label on the Node, if set. */
  readonly label: string | undefined;
  /** Whether our field manager owns the label, by managedFields. */
  readonly ours: boolean;
  /** Whether another field manager owns the label too, so that releasing it does not remove it. */
  readonly shared: boolean;
  /** The pool of the node's Machine; undefined when the Machine or NodePool is not found. */
  readonly pool: PoolTraits | undefined;
  /** Value of the managed label on the Machine, set by HyperShift's operator. */
  readonly machineLabel: string | undefined;
  /** Whether the fleet's node selector matches the node. */
  readonly selected: boolean;
  /** Whether the cluster has no NodePools, so that only the selector can match. */
  readonly poolless: boolean;
  /** Whether the Machine Config Operator manages the node's files. It degrades a node with a changed file. */
  readonly machineConfig: boolean;
}

/** Action for the label of one node. */
export interface NodeDecision {
  readonly node: string;
  readonly act: 'own' | 'release' | 'leave' | 'report';
  readonly eligible: boolean;
  readonly reason: string;
  /** Text of the verdict, for `report`. */
  readonly message?: string;
}

/** Decides the action for one node. Labels of other field managers are kept, and reported when they contradict the pool. */
export function nodeDecision(node: NodeFacts, platforms: readonly string[]): NodeDecision {
  const { name, label, ours, shared } = node;
  const judged = judge(node, platforms);
  if (judged === undefined)
    return { node: name, act: ours ? 'own' : 'leave', eligible: label === 'true', reason: 'PoolUnknown' };
  const { eligible, reason } = judged;
  if (ours && (eligible || !shared))
    return { node: name, act: eligible ? 'own' : 'release', eligible, reason };
  if (label === undefined) return { node: name, act: eligible ? 'own' : 'leave', eligible, reason };
  if ((label === 'true') === eligible) return { node: name, act: 'leave', eligible, reason };
  return {
    node: name,
    act: 'report',
    eligible: label === 'true',
    reason: 'EligibilityOverridden',
    message: `label "${GLOBAL_PULL_SECRET.nodeLabel}" is "${label}" and was set by another field manager, but the NodePool requires ${eligible ? '"true"' : 'no label'} (${reason}); remove the label to restore the automatic value`,
  };
}

/** Precedence: the pool, the fleet's selector, then the label that HyperShift's operator set on the Machine. */
function judge(node: NodeFacts, platforms: readonly string[]): Eligibility | undefined {
  const pool = node.pool === undefined ? undefined : poolEligibility(node.pool, platforms);
  if (pool?.eligible === true || pool?.reason === 'InPlace') return pool;
  if (node.selected)
    return node.machineConfig
      ? { eligible: false, reason: 'MachineConfigOperator' }
      : { eligible: true, reason: 'Selected' };
  if (pool !== undefined) return pool;
  if (node.poolless && node.ours) return { eligible: false, reason: 'NotSelected' };
  if (node.machineLabel === 'true') return { eligible: true, reason: 'MachineLabelled' };
  return undefined;
}

// Value of the label `hypershift.openshift.io/globalps-config-hash` of existing clusters.
// Source of the rule: HyperShift's `globalps` controller: 32-bit FNV-1a over Go's `%v` rendering of the bytes (`[123 34 97]`),
// as eight hexadecimal digits.

/** Returns the hash of a pull secret's content. */
export function configHash(content: Redacted<string>): string {
  const text = `[${Buffer.from(reveal(content), 'utf8').join(' ')}]`;
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0).toString(16).padStart(8, '0');
}
