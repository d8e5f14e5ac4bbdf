/**
 * What the reconciler of this system may do, per cluster and namespace: what it reads (`runtime/global-pull-secret`) and what
 * it writes. Secrets by name only; `create` cannot be narrowed by name, so that it stands alone.
 */
import { GLOBAL_PULL_SECRET as NAMES } from '../../runtime/rules/global-pull-secret.ts';
import { applyByName, type PolicyRule, secretsByName } from '../shared/objects.ts';
import type { Access, Delivery } from '../shared/system.ts';
import { POLICY_NAME } from './admission.ts';
import { agentRbac } from './agent-rbac.ts';
import type { AgentOptions } from './options.ts';

const READ = ['get', 'list', 'watch'] as const;

/** In the cluster whose nodes get the credentials. `platformNamespace` is where the platform's pull secret is, if it is here. */
export function hostedAccess(input: {
  readonly delivery: Delivery;
  readonly agent: Pick<AgentOptions, 'restartSlots'>;
  readonly platformNamespace?: string;
}): readonly Access[] {
  const owned = input.delivery === 'reconciler' ? ownedAccess(input.agent) : [];
  return [
    {
      rules: [
        // Labels of nodes cannot be granted apart from the rest of their metadata.
        { apiGroups: [''], resources: ['nodes'], verbs: [...READ, 'patch'] },
        {
          apiGroups: [''],
          resources: ['namespaces'],
          resourceNames: [NAMES.namespace, NAMES.configNamespace],
          verbs: READ,
        },
        { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
      ],
    },
    {
      namespace: NAMES.namespace,
      rules: [
        { apiGroups: [''], resources: ['secrets'], verbs: ['create'] },
        secretsByName([NAMES.original, NAMES.global], [...READ, 'patch', 'delete']),
        secretsByName([NAMES.additional], READ),
        {
          apiGroups: ['pullwright.dev'],
          resources: ['pullstatuses'],
          verbs: [...READ, 'create', 'patch', 'delete'],
        },
        { apiGroups: ['pullwright.dev'], resources: ['pullstatuses/status'], verbs: ['get', 'patch'] },
        ...(input.delivery === 'reconciler' ? [] : observedRules()),
      ],
    },
    ...(input.delivery === 'reconciler' ? [] : [{ namespace: NAMES.configNamespace, rules: observedRbac() }]),
    ...(input.platformNamespace === undefined ? [] : [platformSecret(input.platformNamespace)]),
    ...owned,
  ];
}

/** In the management cluster, for one hosted cluster. */
export function managementAccess(input: {
  readonly hostedClusterNamespace: string;
  readonly controlPlaneNamespace: string;
}): readonly Access[] {
  return [
    platformSecret(input.controlPlaneNamespace),
    {
      namespace: input.controlPlaneNamespace,
      rules: [{ apiGroups: ['cluster.x-k8s.io'], resources: ['machines'], verbs: READ }],
    },
    {
      namespace: input.hostedClusterNamespace,
      rules: [
        { apiGroups: ['hypershift.openshift.io'], resources: ['nodepools', 'hostedclusters'], verbs: READ },
      ],
    },
  ];
}

function platformSecret(namespace: string): Access {
  return { namespace, rules: [secretsByName([NAMES.platform], READ)] };
}

/** `delivery: gitops`: the objects are looked at, so that a missing one can be reported. */
function observedRules(): readonly PolicyRule[] {
  return [
    { apiGroups: ['apps'], resources: ['daemonsets'], resourceNames: [NAMES.syncer], verbs: READ },
    { apiGroups: [''], resources: ['serviceaccounts'], resourceNames: [NAMES.syncer], verbs: READ },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['list', 'watch'] },
    ...observedRbac(),
  ];
}

function observedRbac(): readonly PolicyRule[] {
  return [
    {
      apiGroups: ['rbac.authorization.k8s.io'],
      resources: ['roles', 'rolebindings'],
      resourceNames: [NAMES.syncer],
      verbs: READ,
    },
  ];
}

/**
 * `delivery: reconciler`: it applies DaemonSet and RBAC. An account can only grant what it has itself, so that it also holds
 * every rule of the agent's Roles.
 */
function ownedAccess(agent: Pick<AgentOptions, 'restartSlots'>): readonly Access[] {
  const granted = (namespace: string): readonly PolicyRule[] =>
    agentRbac(agent)
      .filter((object) => object.kind === 'Role' && object.metadata.namespace === namespace)
      .flatMap((object) => object['rules'] as readonly PolicyRule[]);
  const rbac = (namespace: string): readonly PolicyRule[] => [
    ...applyByName('rbac.authorization.k8s.io', 'roles', [NAMES.syncer]),
    ...applyByName('rbac.authorization.k8s.io', 'rolebindings', [NAMES.syncer]),
    ...granted(namespace),
  ];
  return [
    {
      namespace: NAMES.namespace,
      rules: [
        ...applyByName('apps', 'daemonsets', [NAMES.syncer]),
        ...applyByName('', 'serviceaccounts', [NAMES.syncer]),
        {
          apiGroups: ['coordination.k8s.io'],
          resources: ['leases'],
          verbs: [...READ, 'create', 'patch', 'delete'],
        },
        ...rbac(NAMES.namespace),
      ],
    },
    { namespace: NAMES.configNamespace, rules: rbac(NAMES.configNamespace) },
    {
      rules: ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'].flatMap((resource) =>
        applyByName('admissionregistration.k8s.io', resource, [POLICY_NAME, `${POLICY_NAME}-deny`]),
      ),
    },
  ];
}
