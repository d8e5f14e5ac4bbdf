/** What `check` reads of a cluster: the objects of the plan by name, and what decides whether they work. */
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { SourceKind } from '../object-source.ts';
import { STATUS_KINDS } from '../status.ts';

const RBAC = 'rbac.authorization.k8s.io/v1';
const ADMISSION = 'admissionregistration.k8s.io/v1';

/** Kinds of which all are read; of Secrets none. */
const WHOLE: readonly SourceKind[] = [
  { apiVersion: 'v1', kind: 'Node' },
  { apiVersion: 'v1', kind: 'Namespace' },
  { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
  { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass' },
  { apiVersion: 'security.openshift.io/v1', kind: 'SecurityContextConstraints' },
  { apiVersion: 'apps/v1', kind: 'Deployment' },
  { apiVersion: RBAC, kind: 'ClusterRoleBinding' },
  { apiVersion: ADMISSION, kind: 'MutatingWebhookConfiguration' },
  { apiVersion: ADMISSION, kind: 'ValidatingWebhookConfiguration' },
];

/** Kinds of a folder that are looked at. A dump has Secrets too, whose annotations say which tool keeps them. */
export function folderKinds(plan: readonly KubeObject[]): ReadonlySet<string> {
  return new Set([
    ...[...WHOLE, ...STATUS_KINDS].map(({ kind }) => kind),
    ...plan.map(({ kind }) => kind),
    'Secret',
    'RoleBinding',
    'EndpointSlice',
    'SidecarSet',
    'ExternalSecret',
    'ImagePullSecret',
    'ClusterPullSecret',
  ]);
}

/** Requests to a cluster. */
export function clusterRequests(plan: readonly KubeObject[]): readonly SourceKind[] {
  const namespaces = [...new Set(plan.flatMap(({ metadata }) => metadata.namespace ?? []))];
  const whole = new Set(WHOLE.map(({ kind }) => kind));
  return [
    ...WHOLE,
    ...namespaces.flatMap((namespace) => [
      { apiVersion: RBAC, kind: 'RoleBinding', namespace },
      { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', namespace },
    ]),
    ...STATUS_KINDS.filter(({ kind }) => !whole.has(kind)),
    ...plan
      .filter(({ kind }) => !whole.has(kind) && kind !== 'RoleBinding')
      .map(({ apiVersion, kind, metadata: { name, namespace } }) => ({
        apiVersion,
        kind,
        name,
        ...(namespace === undefined ? {} : { namespace }),
      })),
  ];
}
