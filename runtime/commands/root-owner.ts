/** Which workload a pod belongs to, by its owners. */
import type { ObjectStore } from '../controller/store.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { WORKLOADS } from './pod-spec.ts';

type WorkloadKind = (typeof WORKLOADS)[string];

/** Pods, and the kinds that have a template of such. */
export const WORKLOAD_KINDS: readonly WorkloadKind[] = [
  ...new Map(Object.values(WORKLOADS).map((kind) => [kind.kind, kind])).values(),
];

/** An owner that owns itself ends the search. */
const DEEPEST = 4;

/** The last owner that is named; of a ReplicaSet that is not there, the Deployment that its name says. */
export function rootOf(
  store: ObjectStore,
  object: KubeObject,
): { readonly kind: string; readonly name: string } {
  let at: KubeObject | undefined = object;
  let root = { kind: object.kind, name: object.metadata.name };
  for (let depth = 0; depth < DEEPEST && at !== undefined; depth += 1) {
    const owner: { readonly kind: string; readonly name: string } | undefined =
      at.metadata.ownerReferences?.find(({ controller }) => controller === true);
    if (owner === undefined) break;
    root = { kind: owner.kind, name: owner.name };
    const kind: WorkloadKind | undefined = WORKLOAD_KINDS.find((one) => one.kind === owner.kind);
    at =
      kind === undefined
        ? undefined
        : store.get({ ...kind, namespace: object.metadata.namespace ?? '', name: owner.name });
    if (at === undefined && owner.kind === 'ReplicaSet') {
      const name = owner.name.replace(/-[^-]+$/, '');
      root = { kind: 'Deployment', name };
    }
  }
  return root;
}
