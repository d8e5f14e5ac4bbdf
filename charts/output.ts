/**
 * The synthesized tree: which file an object goes to.
 *
 * ```
 * kustomization.yaml            base: crds, _cluster and the namespaces
 * crds/                         CustomResourceDefinitions, never pruned
 * _cluster/<kind>-<name>.yaml   what has no namespace
 * <namespace>/<kind>-<name>.yaml
 * overlays/<API group>/         the same layout, for objects whose kind the API server does not bring itself
 * ```
 */
import type { KubeObject } from '../runtime/rules/kube-object.ts';

/** An object and the file it is written to. */
export interface RenderedObject {
  /** Relative to the cluster's folder, with `/`: `kube-system/role-global-pull-secret-syncer.yaml`. */
  readonly path: string;
  readonly object: KubeObject;
}

/**
 * The file of an object. Objects of API groups that a kube-apiserver does not bring itself stand in an overlay of their own:
 * the base applies in one pass to any cluster, and an overlay to any cluster that serves its group.
 *
 * @example
 * ```ts
 * import { pathOf } from './output.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(
 *   pathOf({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'a', namespace: 'kube-system' } }),
 *   'kube-system/role-a.yaml',
 * );
 * assert.equal(
 *   pathOf({ apiVersion: 'external-secrets.io/v1', kind: 'ExternalSecret', metadata: { name: 'a', namespace: 'b' } }),
 *   'overlays/external-secrets.io/b/externalsecret-a.yaml',
 * );
 * ```
 */
export function pathOf(object: KubeObject): string {
  const { name, namespace } = object.metadata;
  if (object.kind === 'CustomResourceDefinition') return `crds/${fileName(name)}.yaml`;
  const folder = namespace === undefined || namespace === '' ? '_cluster' : namespace;
  return `${overlayOf(object)}${folder}/${object.kind.toLowerCase()}-${fileName(name)}.yaml`;
}

/** API groups that every kube-apiserver of the last years serves by itself. */
const BUILT_IN: ReadonlySet<string> = new Set([
  '',
  'apps',
  'autoscaling',
  'batch',
  'policy',
  'admissionregistration.k8s.io',
  'apiextensions.k8s.io',
  'apiregistration.k8s.io',
  'certificates.k8s.io',
  'coordination.k8s.io',
  'discovery.k8s.io',
  'events.k8s.io',
  'flowcontrol.apiserver.k8s.io',
  'networking.k8s.io',
  'node.k8s.io',
  'rbac.authorization.k8s.io',
  'scheduling.k8s.io',
  'storage.k8s.io',
]);

/** `overlays/<group>/`, or nothing for the base. */
function overlayOf(object: KubeObject): string {
  const group = object.apiVersion.includes('/') ? (object.apiVersion.split('/')[0] ?? '') : '';
  return BUILT_IN.has(group) ? '' : `overlays/${group}/`;
}

/** RBAC names may hold `:`, which file systems and shells dislike; `%3A` cannot collide with another name. */
function fileName(name: string): string {
  return name.replace(/[^A-Za-z0-9._-]/g, (character) => encodeURIComponent(character));
}
