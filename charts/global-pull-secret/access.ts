/**
 * What the reconciler of this system may do, per cluster and namespace: what it reads (`runtime/global-pull-secret`) and what
 * it writes. Everything that has a name in advance is granted by name, `create` included: see {@link applyByName}.
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
  leaseNames,
  POLICY_NAME,
} from '../../runtime/global-pull-secret/daemon-set.ts';
import type { AgentOptions } from '../../runtime/global-pull-secret/options.ts';
import { type Access, type Delivery, statusRules } from '../shared/system.ts';

const MACHINES = may(READ, 'cluster.x-k8s.io', ['machines']);
/** The labels of a Machine cannot be granted apart from the rest of it. */
const LABEL_MACHINES: PolicyRule = { ...MACHINES, verbs: [...READ, 'patch'] };
const STATUS_NAMES = [NAMES.additional, NAMES.original].map((name) => pullStatusName('Secret', name));
const POLICIES = [POLICY_NAME, `${POLICY_NAME}-deny`, AGENT_POLICY_NAME];

/** In the cluster whose nodes get the credentials. `platformNamespace` is where the platform's pull secret is, if it is here. */
export function hostedAccess(input: {
  readonly delivery: Delivery;
  readonly agent: AgentOptions;
  readonly platformNamespace?: string;
}): readonly Access[] {
  const objects = input.delivery === 'reconciler' ? ownedAccess(input.agent) : OBSERVED;
  const [applied, status] = statusRules(STATUS_NAMES);
  // A stand-alone cluster plays the management part too: many serve Machines, and what is served is watched.
  const platform =
    input.platformNamespace === undefined
      ? []
      : [
          controlPlaneSecrets(input.platformNamespace),
          { namespace: input.platformNamespace, rules: [MACHINES] },
        ];
  return [
    {
      rules: [
        // The labels of a node cannot be granted apart from the rest of it.
        may([...READ, 'patch'], '', ['nodes']),
        named('', 'namespaces', [NAMES.namespace, NAMES.configNamespace]),
        // Which registry the release payload comes from.
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
        // Those of the nodes are found by label, which RBAC cannot express.
        may(READ, 'pullwright.dev', ['pullstatuses']),
        status,
        named('coordination.k8s.io', 'leases', [NAMES.turns]),
      ],
    },
    ...platform,
    ...objects,
  ];
}

/** In the management cluster: for one hosted cluster, or for all of them without namespaces (discovery). */
export function managementAccess(
  hostedClusterNamespace?: string,
  controlPlaneNamespace?: string,
): readonly Access[] {
  return [
    controlPlaneSecrets(controlPlaneNamespace),
    {
      namespace: controlPlaneNamespace,
      rules: [LABEL_MACHINES],
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
      namespace: hostedClusterNamespace,
      // What is wrong with the platform's pull secret is said on the HostedCluster.
      rules: [may(READ, 'hypershift.openshift.io', ['nodepools', 'hostedclusters']), EVENTS],
    },
  ];
}

/** A stand-alone cluster is looked at by the same reads, also for what only hosted ones have. */
function controlPlaneSecrets(namespace: string | undefined): Access {
  return { namespace, rules: [secretsByName([NAMES.platform], READ)] };
}

function named(apiGroup: string, resource: string, resourceNames: readonly string[]): PolicyRule {
  return may(READ, apiGroup, [resource], resourceNames);
}

/** What the agent consists of: group, resource, namespaces. */
const RBAC_GROUP = 'rbac.authorization.k8s.io';
const ADMISSION_GROUP = 'admissionregistration.k8s.io';
const IN_CONFIG: readonly (readonly [string, string])[] = [
  [RBAC_GROUP, 'roles'],
  [RBAC_GROUP, 'rolebindings'],
];
const IN_SYSTEM: readonly (readonly [string, string])[] = [
  ...IN_CONFIG,
  ['apps', 'daemonsets'],
  ['', 'serviceaccounts'],
];
/** Only used for reports; always readable, so that they are deleted with the option. */
const CLUSTER_RBAC = ['clusterroles', 'clusterrolebindings'];
const POLICY_KINDS = ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'];

type RuleOf = (apiGroup: string, resource: string, names: readonly string[]) => PolicyRule;

function agentAccess(rule: RuleOf): readonly Access[] {
  const rules = (kinds: typeof IN_CONFIG): PolicyRule[] =>
    kinds.map(([group, resource]) => rule(group, resource, [NAMES.syncer]));
  return [
    { namespace: NAMES.namespace, rules: rules(IN_SYSTEM) },
    { namespace: NAMES.configNamespace, rules: rules(IN_CONFIG) },
    { rules: CLUSTER_RBAC.map((resource) => rule(RBAC_GROUP, resource, [NAMES.syncer])) },
    { rules: POLICY_KINDS.map((resource) => named(ADMISSION_GROUP, resource, POLICIES)) },
    { rules: [named('apiextensions.k8s.io', 'customresourcedefinitions', [PULL_STATUS_CRD_NAME])] },
  ];
}

/** `delivery: gitops`: the objects are looked at, so that a missing one can be reported. */
const OBSERVED: readonly Access[] = agentAccess(named);

/**
 * `delivery: reconciler`: it applies them but for policies and kinds, which come with this account, from git or an administrator. An account can only grant what it has itself, so that it also holds every rule of
 * the agent's Roles and of its ClusterRole.
 */
function ownedAccess(agent: AgentOptions): readonly Access[] {
  const names = leaseNames(agent);
  const granted = agentRbac(agent)
    .filter((object) => object.kind === 'Role' || object.kind === 'ClusterRole')
    .map(({ metadata: { namespace }, rules }) => ({ namespace, rules: rules as readonly PolicyRule[] }));
  const leases =
    names.length === 0
      ? []
      : [{ namespace: NAMES.namespace, rules: [applyByName('coordination.k8s.io', 'leases', names)] }];
  return [...agentAccess(applyByName), ...granted, ...leases, { rules: [], bounds: agentGuard(agent) }];
}
