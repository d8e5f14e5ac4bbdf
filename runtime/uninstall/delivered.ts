/** Which GitOps tool delivers an object, by the marks that it leaves. */
import type { KubeObject } from '../rules/kubernetes/object.ts';

/** What syncs an object: an Application of Argo CD, or a Kustomization of Flux. */
export interface Deliverer {
  readonly tool: 'Argo CD Application' | 'Flux Kustomization';
  readonly name: string;
  /** Where it is, if the mark says so. */
  readonly namespace?: string;
}

/**
 * Reads the marks: Argo CD's is a label or an annotation, Flux's are labels.
 *
 * @example
 * ```ts
 * import { delivererOf } from './delivered.ts';
 * import assert from 'node:assert/strict';
 *
 * const annotations = { 'argocd.argoproj.io/tracking-id': 'prod:/Role:x/r' };
 * const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'r', annotations } };
 * assert.deepEqual(delivererOf(role), { tool: 'Argo CD Application', name: 'prod' });
 * ```
 */
export function delivererOf({ metadata }: KubeObject): Deliverer | undefined {
  const { labels = {}, annotations = {} } = metadata;
  const flux = labels['kustomize.toolkit.fluxcd.io/name'];
  if (flux !== undefined) {
    const namespace = labels['kustomize.toolkit.fluxcd.io/namespace'];
    return { tool: 'Flux Kustomization', name: flux, ...(namespace === undefined ? {} : { namespace }) };
  }
  const argo =
    annotations['argocd.argoproj.io/tracking-id'] ??
    labels['argocd.argoproj.io/instance'] ??
    labels['app.kubernetes.io/instance'];
  if (typeof argo !== 'string') return undefined;
  // An Application outside of Argo CD's own namespace is written `<namespace>_<name>`, which no name can hold.
  const [first = '', second] = (argo.split(':')[0] ?? '').split('_');
  return second === undefined
    ? { tool: 'Argo CD Application', name: first }
    : { tool: 'Argo CD Application', name: second, namespace: first };
}

/** `Flux Kustomization "prod"` */
export function delivererText({ tool, name }: Deliverer): string {
  return `${tool} "${name}"`;
}
