/**
 * RBAC of this system's reconciler (`runtime/global-pull-secret`) per cluster and namespace. Objects with fixed names are
 * granted by name, including `create`: see {@link applyByName}.
 */

import { onlyLabel } from '../../runtime/core/kubernetes/account-bounds.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../runtime/core/kubernetes/hypershift.ts';
import {
  applyByName,
  EVENTS,
  may,
  type PolicyRule,
  READ,
  secretsByName,
} from '../../runtime/core/kubernetes/objects.ts';
import { PULL_STATUS_CRD_NAME, pullStatusName } from '../../runtime/core/kubernetes/pull-status.ts';
import {
  AGENT_POLICY_NAME,
  agentGuard,
  agentRbac,
  POLICY_NAME,
} from '../../runtime/global-pull-secret/daemon-set.ts';
import { type AgentOptions, booksTurns } from '../../runtime/global-pull-secret/options.ts';
import { type Access, type Delivery, type HostedPlace, statusRules } from '../shared/system.ts';

const MACHINES = may(READ, 'cluster.x-k8s.io', ['machines']);
/** RBAC cannot grant the labels of a Machine separately. */
const LABEL_MACHINES: PolicyRule = { ...MACHINES, verbs: [...READ, 'patch'] };
const PLATFORM_SECRET = secretsByName([NAMES.platform], READ);
const STATUS_NAMES = [NAMES.additional, NAMES.original].map((name) => pullStatusName('Secret', name));
const POLICIES = [POLICY_NAME, `${POLICY_NAME}-deny`, AGENT_POLICY_NAME];

/** Access in the cluster with the nodes. @param platform to the platform's pull secret, if in this cluster */
export function hostedAccess(
  delivery: Delivery,
  agent: AgentOptions,
  platform: readonly Access[] = [],
): readonly Access[] {
  const [applied, status] = statusRules(STATUS_NAMES);
  return [
    {
      rules: [
        // RBAC cannot grant the labels of a Node separately.
        may([...READ, 'patch'], '', ['nodes']),
        named('', 'namespaces', [NAMES.namespace, NAMES.configNamespace]),
        // For the registry of the release payload.
        named('config.openshift.io', 'clusterversions', ['version']),
        EVENTS,
      ],
      bounds: [onlyLabel({ name: 'nodes', apiGroup: '', resource: 'nodes', label: NAMES.nodeLabel })],
    },
    {
      namespace: NAMES.namespace,
      rules: [
        applyByName('', 'secrets', [NAMES.original, NAMES.global]),
        secretsByName([NAMES.additional], READ),
        applied,
        // Node reports are selected by label, which RBAC cannot express.
        may(READ, 'pullwright.dev', ['pullstatuses']),
        status,
        named('coordination.k8s.io', 'leases', [NAMES.turns]),
      ],
    },
    ...platform,
    ...(delivery === 'reconciler' ? ownedAccess(agent) : agentAccess(named)),
  ];
}

/** A stand-alone cluster has the management role too: many serve Machines, and the reconciler watches every served kind. */
export const PLATFORM_ACCESS: readonly Access[] = [
  { namespace: NAMES.configNamespace, rules: [PLATFORM_SECRET, MACHINES] },
];

/** Access in the management cluster: for one hosted cluster, or without namespaces for all of them (discovery). */
export function managementAccess({ hostedCluster, controlPlaneNamespace }: HostedPlace): readonly Access[] {
  return [
    {
      namespace: controlPlaneNamespace,
      rules: [PLATFORM_SECRET, LABEL_MACHINES],
      bounds: [
        onlyLabel({
          name: 'machines',
          apiGroup: 'cluster.x-k8s.io',
          resource: 'machines',
          label: NAMES.machineLabel,
        }),
      ],
    },
    {
      namespace: hostedCluster?.namespace,
      // Problems of the platform's pull secret are reported as Events on the HostedCluster.
      rules: [may(READ, 'hypershift.openshift.io', ['nodepools', 'hostedclusters']), EVENTS],
    },
  ];
}

function named(apiGroup: string, resource: string, resourceNames: readonly string[]): PolicyRule {
  return may(READ, apiGroup, [resource], resourceNames);
}

const POLICY_KINDS = ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'];

/** Access to the objects around the agent; with `delivery: gitops` read-only, to report missing ones. */
function agentAccess(rule: typeof named): readonly Access[] {
  const own = (group: string, ...resources: readonly string[]): readonly PolicyRule[] =>
    resources.map((resource) => rule(group, resource, [NAMES.syncer]));
  const rbac = 'rbac.authorization.k8s.io';
  const roles = own(rbac, 'roles', 'rolebindings');
  return [
    {
      namespace: NAMES.namespace,
      rules: [...roles, ...own('apps', 'daemonsets'), ...own('', 'serviceaccounts')],
    },
    { namespace: NAMES.configNamespace, rules: roles },
    // Used for reports only. Always readable, so that disabling reports deletes the objects.
    { rules: own(rbac, 'clusterroles', 'clusterrolebindings') },
    { rules: POLICY_KINDS.map((resource) => named('admissionregistration.k8s.io', resource, POLICIES)) },
    { rules: [named('apiextensions.k8s.io', 'customresourcedefinitions', [PULL_STATUS_CRD_NAME])] },
  ];
}

/**
 * `delivery: reconciler`: write access to the agent's objects, except policies and CRDs, which git or an administrator
 * delivers. RBAC lets an account grant only rights it has, so it also gets those of the agent's Roles and ClusterRole.
 */
function ownedAccess(agent: AgentOptions): readonly Access[] {
  const granted = agentRbac(agent)
    .filter((object) => object.kind === 'Role' || object.kind === 'ClusterRole')
    .map(({ metadata: { namespace }, rules }) => ({ namespace, rules: rules as readonly PolicyRule[] }));
  const leases = booksTurns(agent)
    ? [{ namespace: NAMES.namespace, rules: [applyByName('coordination.k8s.io', 'leases', [NAMES.turns])] }]
    : [];
  return [...agentAccess(applyByName), ...granted, ...leases, { rules: [], bounds: agentGuard(agent) }];
}
