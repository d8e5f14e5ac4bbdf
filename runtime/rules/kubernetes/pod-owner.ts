/** How a pod whose list of Secrets cannot be changed gets a successor. */
import type { KubeObject } from './object.ts';

const REPLACES: Readonly<Record<string, readonly string[]>> = {
  '': ['ReplicationController'],
  apps: ['ReplicaSet', 'StatefulSet', 'DaemonSet'],
  batch: ['Job'],
  'apps.kruise.io': ['CloneSet', 'StatefulSet', 'DaemonSet'],
};

/** Whether a controller of this kind makes another pod in its stead: others end with their pod, as a step of a pipeline does. */
function replacesPods({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): boolean {
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  return Object.hasOwn(REPLACES, group) && (REPLACES[group] ?? []).includes(kind);
}

/**
 * How somebody gets another pod in place of one whose list of Secrets cannot be changed.
 *
 * @example
 * ```ts
 * import { recreation } from './pod-owner.ts';
 * import assert from 'node:assert/strict';
 *
 * const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'a', uid: 'u', controller: true };
 * const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a-1', ownerReferences: [owner] } };
 * assert.equal(recreation(pod), 'delete it, and its DaemonSet makes another');
 * ```
 */
export function recreation({ metadata: { ownerReferences = [] } }: KubeObject): string {
  const owner = ownerReferences.find(({ controller }) => controller === true);
  if (owner === undefined || !replacesPods(owner)) return 'create it again';
  if (owner.kind === 'Job')
    return 'create its Job again: a pod that is deleted is one of the tries that it has';
  return `delete it, and its ${owner.kind} makes another`;
}
