/**
 * Which objects HyperShift's operators write. Where they do, the default is to watch and to write nothing.
 *
 * Source of the rule: the field managers of HyperShift's operators, and the owners they set in a control plane namespace.
 */
import type { KubeObject } from './object.ts';

const MANAGERS: ReadonlySet<string> = new Set([
  'control-plane-operator',
  'hosted-cluster-config-operator',
  'hypershift-operator',
  'hypershift-operator-manager',
  'hypershift',
]);
const OWNERS: ReadonlySet<string> = new Set(['HostedControlPlane', 'HostedCluster']);

/** `auto`: observe what an operator of HyperShift is seen to write, own the rest. */
export type OwnershipMode = 'auto' | 'own' | 'observe';

/**
 * Who writes `object`: a field manager, or the kind of its owner; undefined when no operator is seen.
 *
 * @example
 * ```ts
 * import { operatorOf } from './hypershift-operators.ts';
 * import assert from 'node:assert/strict';
 *
 * const metadata = { name: 'ignition-server', managedFields: [{ manager: 'control-plane-operator', operation: 'Update' }] };
 * assert.equal(operatorOf({ apiVersion: 'apps/v1', kind: 'Deployment', metadata }), 'control-plane-operator');
 * ```
 */
export function operatorOf(object: KubeObject | undefined): string | undefined {
  const manager = object?.metadata.managedFields?.find((entry) => MANAGERS.has(entry.manager ?? ''));
  const owner = object?.metadata.ownerReferences?.find((reference) => OWNERS.has(reference.kind));
  return manager?.manager ?? owner?.kind;
}

/** Whether to watch only: the one who writes instead, or undefined when `object` is ours to write. */
export function observedIn(mode: OwnershipMode, object: KubeObject | undefined): string | undefined {
  if (mode === 'own') return undefined;
  const operator = operatorOf(object);
  return mode === 'observe' ? (operator ?? 'another operator') : operator;
}
