/**
 * Roles and bindings, as narrow as can be said: Secrets only by name, wildcards not at all.
 */
import type { KubeObject, ObjectMeta } from '../../runtime/rules/kubernetes/object.ts';
import { kubernetesObject } from './kubernetes.ts';

/** One rule of a Role or ClusterRole. */
export interface PolicyRule {
  /** `''` is the core group. */
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly Verb[];
  readonly resourceNames?: readonly string[];
}

export type Verb =
  | 'get'
  | 'list'
  | 'watch'
  | 'create'
  | 'update'
  | 'patch'
  | 'delete'
  | 'use'
  | 'impersonate'
  | 'bind';

/** A ServiceAccount that a binding speaks of. */
export interface Subject {
  readonly name: string;
  readonly namespace: string;
}

/** A Role in `metadata.namespace`. */
export function role(
  metadata: ObjectMeta & { readonly namespace: string },
  rules: readonly PolicyRule[],
): KubeObject {
  return kubernetesObject('Role', metadata, { rules });
}

/** A ClusterRole. Prefer a {@link role} per namespace wherever the namespaces are known. */
export function clusterRole(metadata: ObjectMeta, rules: readonly PolicyRule[]): KubeObject {
  return kubernetesObject('ClusterRole', metadata, { rules });
}

/** Binds the Role of the same name in `metadata.namespace` to service accounts. */
export function roleBinding(
  metadata: ObjectMeta & { readonly namespace: string },
  subjects: readonly Subject[],
  /** @default the Role named like the binding */
  roleRef: { readonly kind: 'Role' | 'ClusterRole'; readonly name: string } = {
    kind: 'Role',
    name: metadata.name,
  },
): KubeObject {
  return kubernetesObject('RoleBinding', metadata, {
    roleRef: { apiGroup: RBAC_GROUP, ...roleRef },
    subjects: subjects.map(subjectRef),
  });
}

/** Binds the ClusterRole of the same name to service accounts. */
export function clusterRoleBinding(metadata: ObjectMeta, subjects: readonly Subject[]): KubeObject {
  return kubernetesObject('ClusterRoleBinding', metadata, {
    roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: metadata.name },
    subjects: subjects.map(subjectRef),
  });
}

/** Access to Secrets in the namespace of the Role that can be named in advance. */
export function secretsByName(names: readonly string[], verbs: readonly Verb[]): PolicyRule {
  return { apiGroups: [''], resources: ['secrets'], resourceNames: names, verbs };
}

/**
 * What server-side apply of named objects takes. Unlike a POST, an apply that creates names the object to the authorizer, so
 * that `create` is narrowed by name as well.
 *
 * @example
 * ```ts
 * import { applyByName } from './rbac.ts';
 * import assert from 'node:assert/strict';
 *
 * const rule = applyByName('apps', 'daemonsets', ['global-pull-secret-syncer']);
 * assert.deepEqual(rule.resourceNames, ['global-pull-secret-syncer']);
 * ```
 */
export function applyByName(apiGroup: string, resource: string, names: readonly string[]): PolicyRule {
  return {
    apiGroups: [apiGroup],
    resources: [resource],
    resourceNames: names,
    verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
  };
}

function subjectRef(subject: Subject): { kind: string; name: string; namespace: string } {
  return { kind: 'ServiceAccount', name: subject.name, namespace: subject.namespace };
}

const RBAC_GROUP = 'rbac.authorization.k8s.io';

/** What says from where the nodes of OpenShift pull, beside the mirror sets of today. */
export const NODE_MIRROR_READS: readonly PolicyRule[] = [
  { apiGroups: ['operator.openshift.io'], resources: ['imagecontentsourcepolicies'], verbs: ['list'] },
  {
    apiGroups: ['config.openshift.io'],
    resources: ['images'],
    resourceNames: ['cluster'],
    verbs: ['get'],
  },
  {
    apiGroups: ['config.openshift.io'],
    resources: ['clusterversions'],
    resourceNames: ['version'],
    verbs: ['get'],
  },
  {
    apiGroups: ['machineconfiguration.openshift.io'],
    resources: ['machineconfigs'],
    resourceNames: ['99-worker-generated-registries'],
    verbs: ['get'],
  },
];
