/** What is read of a cluster to examine many pods: every kind once, of one namespace or of all. */
import { GLOBAL_PULL_SECRET } from '../../rules/kubernetes/global-pull-secret.ts';
import { PULL_STATUS_API_VERSION, PULL_STATUS_KIND } from '../../rules/kubernetes/pull-status.ts';
import { injectionKinds } from '../explain/injected.ts';
import { GLOBAL_SECRET, PLATFORM_SECRET } from '../explain/node-file.ts';
import { CLUSTER_KINDS } from '../explain/node-kinds.ts';
import type { SourceKind } from '../object-source.ts';
import { WORKLOADS } from '../pod-spec.ts';

const RBAC = 'rbac.authorization.k8s.io/v1';
const OWN = 'pullwright.dev/v1alpha1';
const PULL_STATUS = { apiVersion: PULL_STATUS_API_VERSION, kind: PULL_STATUS_KIND } as const;

/** Of the namespace that agents run in, where only one other is looked at. */
const AGENTS: readonly SourceKind[] = [
  GLOBAL_SECRET,
  PLATFORM_SECRET,
  { apiVersion: 'v1', kind: 'Pod', labelSelector: `name=${GLOBAL_PULL_SECRET.syncer}` },
  { apiVersion: 'apps/v1', kind: 'DaemonSet', name: GLOBAL_PULL_SECRET.syncer },
  PULL_STATUS,
].map((kind) => ({ namespace: GLOBAL_PULL_SECRET.namespace, ...kind }));

/**
 * The kinds that pods are examined with, each once.
 *
 * @param namespace the one that is looked at; all where it is undefined
 * @param more kinds beside them
 */
export function clusterKinds(
  namespace: string | undefined,
  more: readonly SourceKind[] = [],
): readonly SourceKind[] {
  const inside = namespace === undefined ? {} : { namespace };
  const kinds: readonly SourceKind[] = [
    ...[
      ...Object.values(WORKLOADS),
      { apiVersion: 'v1', kind: 'Secret' },
      { apiVersion: 'v1', kind: 'ServiceAccount' },
      PULL_STATUS,
      { apiVersion: RBAC, kind: 'Role' },
      { apiVersion: RBAC, kind: 'RoleBinding' },
      { apiVersion: 'v1', kind: 'Event', fieldSelector: 'involvedObject.kind=Pod,type=Warning' },
    ].map((kind) => ({ ...kind, ...inside })),
    { apiVersion: OWN, kind: 'PullSecretGrant' },
    ...['Namespace', 'Node'].map((kind) => ({ apiVersion: 'v1', kind })),
    ...injectionKinds('').filter(({ kind }) => kind !== 'Namespace'),
    ...CLUSTER_KINDS,
    ...(namespace === undefined ? [] : AGENTS),
    ...more,
  ];
  const id = (kind: SourceKind): string =>
    [kind.apiVersion, kind.kind, kind.name, kind.namespace, kind.labelSelector].join(' ');
  return [...new Map(kinds.map((kind) => [id(kind), kind])).values()];
}
