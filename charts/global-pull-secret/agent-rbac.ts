/**
 * ServiceAccount, Roles and RoleBindings of the node agent in both namespaces.
 *
 * Source of the rule: requirement 1, "RBAC resources (ServiceAccount, Role, RoleBinding) are created for the DaemonSet in
 * both kube-system and openshift-config". The agent reads mounted files and needs none of it; the Roles hold `get` on the
 * named Secrets and nothing else, and without `restartSlots` the pod has no token to use them with.
 */
import { GLOBAL_PULL_SECRET as NAMES } from '../../runtime/rules/global-pull-secret.ts';
import type { KubeObject } from '../../runtime/rules/kube-object.ts';
import {
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

/** ServiceAccount, two Roles, two RoleBindings; with restart slots also their Leases. */
export function agentRbac(options: Pick<AgentOptions, 'restartSlots' | 'shape'>): readonly KubeObject[] {
  const slots = slotNames(options.restartSlots ?? 0);
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
    ...grant(NAMES.namespace, [secretsByName([NAMES.original, NAMES.global], ['get']), ...leases]),
    ...grant(NAMES.configNamespace, [secretsByName([NAMES.platform], ['get'])]),
    ...slots.map(lease),
  ];
}

/** The ServiceAccount as HyperShift's operator makes it: nothing but its name. */
export function upstreamServiceAccount(): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: NAMES.syncer, namespace: NAMES.namespace },
  };
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
