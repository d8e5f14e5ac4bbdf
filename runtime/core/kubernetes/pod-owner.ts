/** How to replace a pod, whose list of Secrets is immutable. */
import type { KubeObject } from './object.ts';

const REPLACES: Readonly<Record<string, readonly string[]>> = {
  '': ['ReplicationController'],
  apps: ['ReplicaSet', 'StatefulSet', 'DaemonSet'],
  batch: ['Job'],
  'apps.kruise.io': ['CloneSet', 'StatefulSet', 'DaemonSet'],
};

/** Whether a controller of this kind replaces a deleted pod. Others do not: a pipeline step ends with its pod. */
function replacesPods({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): boolean {
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  return Object.hasOwn(REPLACES, group) && (REPLACES[group] ?? []).includes(kind);
}

/** Advice on how to replace a pod; follows the pod as a clause of a sentence. */
export function recreation({ metadata: { ownerReferences = [] } }: KubeObject): string {
  const owner = ownerReferences.find(({ controller }) => controller === true);
  if (owner === undefined || !replacesPods(owner)) return 'recreate it';
  if (owner.kind === 'Job') return 'recreate its Job: a deleted pod counts against its back-off limit';
  return `delete it, and its ${owner.kind} creates another`;
}
