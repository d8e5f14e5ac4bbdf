/**
 * Which nodes run the sync DaemonSet: those of NodePools that are replaced on upgrade, on platforms where nothing else writes
 * the kubelet's `config.json`. Level-based: the label also comes off.
 *
 * Source: requirement 1, "Platform and NodePool eligibility" (AWS and Azure, Replace only; InPlace never, because the Machine
 * Config Daemon works on the same file).
 */

import { GLOBAL_PULL_SECRET } from '../core/kubernetes/hypershift.ts';
import { type Redacted, reveal } from '../core/redacted.ts';

/** Platforms on which nodes are eligible unless told otherwise. */
export const ELIGIBLE_PLATFORMS: readonly string[] = ['AWS', 'Azure'];

/** A NodePool, as far as it matters here. */
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
 * Judges a pool.
 *
 * @param platforms platforms to accept; {@link ELIGIBLE_PLATFORMS} is upstream's list, others are an opt-in
 */
export function poolEligibility(
  pool: PoolTraits,
  platforms: readonly string[] = ELIGIBLE_PLATFORMS,
): Eligibility {
  if (pool.upgradeType !== 'Replace') return { eligible: false, reason: 'InPlace' };
  if (!platforms.includes(pool.platform)) return { eligible: false, reason: 'PlatformNotEligible' };
  return { eligible: true, reason: 'ReplaceOnEligiblePlatform' };
}

/** The labels that an eligible pool's Machines and Nodes carry; none for another. */
export function eligibilityLabels(eligible: boolean): {
  readonly machine: Readonly<Record<string, string>>;
  readonly node: Readonly<Record<string, string>>;
} {
  if (!eligible) return { machine: {}, node: {} };
  return {
    machine: { [GLOBAL_PULL_SECRET.machineLabel]: 'true' },
    node: { [GLOBAL_PULL_SECRET.nodeLabel]: 'true' },
  };
}

/** What is known of one node. */
export interface NodeFacts {
  readonly name: string;
  /** Value of the eligibility label on the Node, if it is there. */
  readonly label: string | undefined;
  /** Whether the label is owned by us, by managedFields. */
  readonly ours: boolean;
  /** Whether another field manager owns it too, so that it would stay. */
  readonly shared: boolean;
  /** The pool of the node's Machine; undefined when Machine or NodePool cannot be found. */
  readonly pool: PoolTraits | undefined;
  /** Value of the managed label on the Machine, which HyperShift's operator sets. */
  readonly machineLabel: string | undefined;
  /** Whether the selector of the fleet selects the node. */
  readonly selected: boolean;
  /** Whether nothing but that selector could: there are no pools. */
  readonly poolless: boolean;
  /** Whether the Machine Config Operator writes the node's files: one that it finds changed degrades the node. */
  readonly machineConfig: boolean;
}

/** What to do with one node's label. */
export interface NodeDecision {
  readonly node: string;
  readonly act: 'own' | 'release' | 'leave' | 'report';
  readonly eligible: boolean;
  readonly reason: string;
  /** What is reported. */
  readonly message?: string;
}

/**
 * Decides for one node. A foreign label stays as it is: it was set on purpose, and is reported when it contradicts.
 */
export function nodeDecision(
  node: NodeFacts,
  platforms: readonly string[] = ELIGIBLE_PLATFORMS,
): NodeDecision {
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
    message: `label "${GLOBAL_PULL_SECRET.nodeLabel}" is "${label}" and was set by another field manager, where the NodePool calls for ${eligible ? '"true"' : 'no label'} (${reason}); remove the label to give the decision back`,
  };
}

/** By the pool where it is known, by the fleet's selector, else by what HyperShift's operator put on the Machine. */
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

// The value of the label `hypershift.openshift.io/globalps-config-hash` of existing clusters.
// Source of the rule: HyperShift's `globalps` controller: FNV-1a, 32 bits, over the text that Go's `%v` makes of the bytes
// (`[123 34 97]`), as eight hexadecimal digits.

/**
 * Hashes the content of a pull secret.
 */
export function configHash(content: Redacted<string>): string {
  const text = `[${Buffer.from(reveal(content), 'utf8').join(' ')}]`;
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0).toString(16).padStart(8, '0');
}
