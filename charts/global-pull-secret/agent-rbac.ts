/**
 * ServiceAccount, Roles and RoleBindings of the node agent in both namespaces.
 *
 * Source of the rule: requirement 1, "RBAC resources (ServiceAccount, Role, RoleBinding) are created for the DaemonSet in
 * both kube-system and openshift-config". The agent reads mounted files and needs none of it; what it watches and books is
 * granted by name, and without `watch`, `report` and turns the pod has no token to use it with.
 */
import { GLOBAL_PULL_SECRET as NAMES } from '../../runtime/rules/kubernetes/global-pull-secret.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import {
  clusterRole,
  clusterRoleBinding,
  kubernetesObject,
  labels,
  type PolicyRule,
  role,
  roleBinding,
  secretsByName,
  serviceAccount,
} from '../shared/objects.ts';
import { type AgentOptions, booksTurns, reports } from './options.ts';

/** What the rights depend on. */
export type AgentRights = Pick<AgentOptions, 'report' | 'restart' | 'restartWindow' | 'shape' | 'watch'>;

/** Names of the Leases that nodes share: the one with the turns. */
export function leaseNames(options: AgentRights): readonly string[] {
  return options.shape !== 'upstream' && booksTurns(options) ? [NAMES.turns] : [];
}

/** ServiceAccount, two Roles, two RoleBindings; the Leases that nodes share, and with reports what they take. */
export function agentRbac(options: AgentRights): readonly KubeObject[] {
  const names = leaseNames(options);
  const ours = options.shape !== 'upstream';
  const report = reports(options);
  const leases: readonly PolicyRule[] =
    names.length === 0
      ? []
      : [
          {
            apiGroups: ['coordination.k8s.io'],
            resources: ['leases'],
            resourceNames: names,
            verbs: ['get', 'update'],
          },
        ];
  return [
    options.shape === 'upstream' ? upstreamServiceAccount() : serviceAccount(metadata(NAMES.namespace)),
    ...grant(NAMES.namespace, [
      secretsByName(
        [NAMES.original, NAMES.global],
        options.watch === false || !ours ? ['get'] : ['get', 'list', 'watch'],
      ),
      ...leases,
      ...(ours && booksTurns(options) ? [FLEET_SIZE] : []),
      ...(report ? STATUS_RULES : []),
    ]),
    ...grant(NAMES.configNamespace, [secretsByName([NAMES.platform], ['get'])]),
    ...names.map(lease),
    ...(report ? reportRbac() : []),
  ];
}

/** How many nodes there are, which says how many may restart at once. */
const FLEET_SIZE: PolicyRule = {
  apiGroups: ['apps'],
  resources: ['daemonsets'],
  resourceNames: [NAMES.syncer],
  verbs: ['get'],
};

/** One PullStatus per node: which nodes there will be is not known in advance, so these are granted without names. */
const STATUS_RULES: readonly PolicyRule[] = [
  { apiGroups: ['pullwright.dev'], resources: ['pullstatuses'], verbs: ['get', 'create', 'patch'] },
  { apiGroups: ['pullwright.dev'], resources: ['pullstatuses/status'], verbs: ['get', 'patch'] },
];

/** Nodes belong to no namespace, and Events about them to another than the agent's. */
function reportRbac(): readonly KubeObject[] {
  const { name, labels: marks } = metadata(NAMES.namespace);
  return [
    clusterRole({ name, labels: marks }, [
      { apiGroups: [''], resources: ['nodes'], verbs: ['get'] },
      { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
    ]),
    clusterRoleBinding({ name, labels: marks }, [{ name, namespace: NAMES.namespace }]),
  ];
}

/** The ServiceAccount as HyperShift's operator makes it: nothing but its name. */
export function upstreamServiceAccount(): KubeObject {
  return kubernetesObject('ServiceAccount', { name: NAMES.syncer, namespace: NAMES.namespace }, {});
}

function grant(namespace: string, rules: readonly PolicyRule[]): readonly KubeObject[] {
  return [
    role(metadata(namespace), rules),
    roleBinding(metadata(namespace), [{ name: NAMES.syncer, namespace: NAMES.namespace }]),
  ];
}

/** Empty, so that the agents' own writes to `spec` are never ours to revert. */
function lease(name: string): KubeObject {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { ...metadata(NAMES.namespace), name },
  };
}

function metadata(namespace: string): {
  name: string;
  namespace: string;
  labels: Readonly<Record<string, string>>;
} {
  return {
    name: NAMES.syncer,
    namespace,
    labels: labels({ name: NAMES.syncer, component: 'global-pull-secret' }),
  };
}
