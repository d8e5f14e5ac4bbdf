/** Whether HyperShift's own operator manages these objects, so that we watch and write nothing. */
import type { KubeObject } from '../rules/kube-object.ts';
import type { GlobalPullSecretOptions } from './options.ts';

/** Field managers under which HyperShift's operators write. */
const OPERATORS: ReadonlySet<string> = new Set([
  'control-plane-operator',
  'hosted-cluster-config-operator',
  'hypershift-operator',
  'hypershift',
]);

/**
 * Gives the operator's name, or undefined when the objects are ours to write.
 *
 * @param mode `auto` looks at managedFields and owner references; the others are explicit
 */
export function managedElsewhere(
  mode: GlobalPullSecretOptions['mode'],
  objects: readonly (KubeObject | undefined)[],
): string | undefined {
  if (mode === 'own') return undefined;
  const found = objects.flatMap((object) => operatorsOf(object)).at(0);
  return mode === 'observe' ? (found ?? 'another operator') : found;
}

function operatorsOf(object: KubeObject | undefined): readonly string[] {
  const managers = (object?.metadata.managedFields ?? []).flatMap((entry) =>
    entry.manager !== undefined && OPERATORS.has(entry.manager) ? [entry.manager] : [],
  );
  const owners = (object?.metadata.ownerReferences ?? []).flatMap((owner) =>
    owner.kind === 'HostedControlPlane' || owner.kind === 'HostedCluster' ? [owner.kind] : [],
  );
  return [...managers, ...owners];
}
