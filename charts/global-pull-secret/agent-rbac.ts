/**
 * ServiceAccount, Roles and RoleBindings of the node agent in both namespaces.
 *
 * Source of the rule: requirement 1, "RBAC resources (ServiceAccount, Role, RoleBinding) are created for the DaemonSet in
 * both kube-system and openshift-config". The agent reads mounted files and needs none of it; the Roles hold `get` on the
 * named Secrets and nothing else, and without `restartSlots` or `report` the pod has no token to use them with.
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
import type { AgentOptions } from './options.ts';

/** Names of the Leases that hold the restart slots. */
export function slotNames(slots: number): readonly string[] {
  return Array.from({ length: slots }, (_, index) => `${NAMES.syncer}-slot-${index}`);
}

/** ServiceAccount, two Roles, two RoleBindings; with restart slots also their Leases, with reports what they take. */
export function agentRbac(
  options: Pick<AgentOptions, 'report' | 'restartSlots' | 'shape'>,
): readonly KubeObject[] {
  const slots = slotNames(options.restartSlots ?? 0);
  const report = options.report === true && options.shape !== 'upstream';
  const leases: readonly PolicyRule[] =
    slots.length === 0
      ? []
      : [
          {
            apiGroups: ['coordination.k8s.io'],
            resources: ['leases'],
            resourceNames: slots,
            verbs: ['get', 'update'],
          },
        ];
  return [
    options.shape === 'upstream' ? upstreamServiceAccount() : serviceAccount(metadata(NAMES.namespace)),
    ...grant(NAMES.namespace, [
      secretsByName([NAMES.original, NAMES.global], ['get']),
      ...leases,
      ...(report ? STATUS_RULES : []),
    ]),
    ...grant(NAMES.configNamespace, [secretsByName([NAMES.platform], ['get'])]),
    ...slots.map(lease),
    ...(report ? reportRbac() : []),
  ];
}

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
