/**
 * What an account that brings the agent to nodes may write of it, beyond what RBAC can say by names: a DaemonSet of that name with another
 * program, folder or account would be root on every node.
 *
 * The pod is held to what is rendered: one container with our program, from our repository whatever the tag, so that git and reconciler may be
 * updated in either order; its folders, places and variables are those of the options. Roles speak of Secrets by name, and bindings give
 * the agents' role to the agents alone.
 */

import { type AccountBound, IMAGE_IS, imageVariables, userOf } from '../core/kubernetes/account-bounds.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../core/kubernetes/hypershift.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import {
  admissionPolicy,
  clusterRole,
  clusterRoleBinding,
  kubernetesObject,
  labels,
  type PodSpec,
  type PolicyRule,
  role,
  roleBinding,
  secretsByName,
  serviceAccount,
  type Volume,
} from '../core/kubernetes/objects.ts';
import { AGENT_FLAGS, agentPod, EXECUTABLE, upstreamDaemonSet } from './daemon-set.ts';
import { type AgentOptions, booksTurns, reports } from './options.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';
const WRITES = ['CREATE', 'UPDATE', 'DELETE'] as const;
/** Whatever of these names goes is an outage of the agent, and no right of anybody. */
const GOES = "request.operation == 'DELETE' || ";

/** As a list of CEL. */
const listOf = (values: Iterable<unknown>): string => JSON.stringify([...new Set(values)]);

/**
 * The bounds of an account that applies the agent's objects.
 */
export function agentGuard(options: AgentOptions): readonly AccountBound[] {
  return [agentPods(options), ROLES, BINDINGS, DEFINITIONS];
}

function agentPods(options: AgentOptions): AccountBound {
  const pods = renderedPods(options);
  const containers = pods.flatMap((pod) => pod.containers);
  const volumes = pods.flatMap((pod) => pod.volumes ?? []);
  const mounts = containers.flatMap((one) => one.volumeMounts ?? []);
  const fixed = mounts.filter(({ readOnly }) => readOnly === true).map(({ mountPath }) => mountPath);
  return {
    name: 'agents',
    apiGroup: 'apps',
    resource: 'daemonsets',
    operations: WRITES,
    variables: [
      ...imageVariables(options.image),
      { name: 'pod', expression: "dyn(request.operation == 'DELETE' ? {} : object.spec.template.spec)" },
      { name: 'all', expression: 'dyn(variables.pod.?containers.orValue([]))' },
      { name: 'volumes', expression: 'dyn(variables.pod.?volumes.orValue([]))' },
    ],
    validations: [
      {
        expression: [
          `variables.pod.all(key, key in ${listOf(POD_FIELDS)})`,
          "(request.operation == 'DELETE' || size(variables.all) == 1)",
          `variables.pod.?serviceAccountName.orValue('${NAMES.syncer}') == '${NAMES.syncer}'`,
          `variables.all.all(one, one.all(key, key in ${listOf(CONTAINER_FIELDS)}) && !one.?readinessProbe.?exec.hasValue())`,
        ].join(' && '),
        message:
          'this account of Pullwright brings the agent alone to nodes: one container, its own service account, no other process',
      },
      {
        expression: `variables.all.all(one, ${IMAGE_IS} && ${commandIs(options)})`,
        message: `this account of Pullwright runs on nodes only the agent, of the repository of ${options.image}`,
      },
      {
        expression: [
          `variables.volumes.all(one, one.all(key, key in ['name', 'hostPath', 'secret']))`,
          `variables.volumes.all(one, !has(one.hostPath) || one.hostPath.path in ${listOf(volumes.flatMap(hostPathOf))})`,
          `variables.volumes.all(one, !has(one.secret) || one.secret.secretName in ${listOf(volumes.flatMap(secretOf))})`,
          `variables.all.all(one, one.?volumeMounts.orValue([]).all(mount, mount.all(key, key in ['name', 'mountPath', 'readOnly', 'recursiveReadOnly']) && mount.mountPath in ${listOf(mounts.map(({ mountPath }) => mountPath))} && (!(mount.mountPath in ${listOf(fixed)}) || mount.?readOnly.orValue(false))))`,
        ].join(' && '),
        message:
          'this account of Pullwright gives the agent only its own folders of the node, where they belong',
      },
      {
        expression: `variables.all.all(one, one.?env.orValue([]).all(variable, variable.name in ${listOf(containers.flatMap(({ env = [] }) => env.map(({ name }) => name)))} && variable.?valueFrom.?fieldRef.hasValue()))`,
        message: 'this account of Pullwright gives the agent no variables but name and address of its node',
      },
    ],
  };
}

/** What the API server adds by itself is among them. */
const POD_FIELDS = [
  'affinity',
  'automountServiceAccountToken',
  'containers',
  'dnsPolicy',
  'enableServiceLinks',
  'hostNetwork',
  'imagePullSecrets',
  'nodeSelector',
  'priorityClassName',
  'restartPolicy',
  'schedulerName',
  'securityContext',
  'serviceAccount',
  'serviceAccountName',
  'terminationGracePeriodSeconds',
  'tolerations',
  'volumes',
];
const CONTAINER_FIELDS = [
  'args',
  'command',
  'env',
  'image',
  'imagePullPolicy',
  'name',
  'ports',
  'readinessProbe',
  'resources',
  'securityContext',
  'terminationMessagePath',
  'terminationMessagePolicy',
  'volumeMounts',
];

function renderedPods(options: AgentOptions): readonly PodSpec[] {
  const states = [true, false].map((merged) => ({ configHash: '', merged }));
  if (options.shape === 'upstream') return states.map((state) => podOf(upstreamDaemonSet(options, state)));
  return [agentPod(options)];
}

function podOf(daemonSet: KubeObject): PodSpec {
  return (daemonSet.spec as { readonly template: { readonly spec: PodSpec } }).template.spec;
}

function hostPathOf({ hostPath }: Volume): readonly string[] {
  return hostPath === undefined ? [] : [hostPath.path];
}

function secretOf({ secret }: Volume): readonly string[] {
  return secret?.secretName === undefined ? [] : [secret.secretName];
}

function commandIs({ shape }: AgentOptions): string {
  if (shape === 'upstream')
    return "one.?command.orValue([]) == ['/usr/bin/control-plane-operator'] && one.?args.orValue([]) == ['sync-global-pullsecret']";
  const flags = `^--(${AGENT_FLAGS.join('|')})(=[0-9A-Za-z.()$-]*)?$`;
  return `size(one.?args.orValue([])) == 0 && size(one.?command.orValue([])) > 1 && one.command[0] == '${EXECUTABLE}' && one.command[1] == 'agent' && one.command.all(word, word in ${listOf([EXECUTABLE, 'agent'])} || word.matches('${flags}'))`;
}

/** The API server refuses to grant what the account lacks; what it has is more than an agent may get. */
const ROLES: AccountBound = {
  name: 'roles',
  apiGroup: RBAC_GROUP,
  resource: ['roles', 'clusterroles'],
  operations: WRITES,
  validations: [
    {
      expression: `${GOES}object.?rules.orValue([]).all(rule, !('*' in rule.verbs) && !('*' in rule.?resources.orValue([])) && !('*' in rule.?apiGroups.orValue([])) && (!('secrets' in rule.?resources.orValue([])) || (size(rule.?resourceNames.orValue([])) > 0 && rule.verbs.all(verb, verb in ['get', 'list', 'watch']))))`,
      message: 'this account of Pullwright lets others read Secrets by name only, and write none',
    },
  ],
};

const BINDINGS: AccountBound = {
  name: 'bindings',
  apiGroup: RBAC_GROUP,
  resource: ['rolebindings', 'clusterrolebindings'],
  operations: WRITES,
  validations: [
    {
      expression: `${GOES}(object.roleRef.name == '${NAMES.syncer}' && object.?subjects.orValue([]).all(subject, subject.kind == 'ServiceAccount' && subject.name == '${NAMES.syncer}' && subject.?namespace.orValue('') == '${NAMES.namespace}'))`,
      message: `this account of Pullwright binds the role ${NAMES.syncer} alone, and for the ServiceAccount ${NAMES.namespace}/${NAMES.syncer} alone`,
    },
  ],
};

/** A conversion would send objects of a kind elsewhere. */
const DEFINITIONS: AccountBound = {
  name: 'definitions',
  apiGroup: 'apiextensions.k8s.io',
  resource: 'customresourcedefinitions',
  operations: WRITES,
  validations: [
    {
      expression: `${GOES}object.spec.?conversion.?strategy.orValue('None') == 'None'`,
      message: 'this account of Pullwright brings definitions of kinds without a webhook that converts them',
    },
  ],
};

// What RBAC cannot say about the agents' account: the agent of a node speaks of that node alone. The API server puts the node of a
// pod's token beside its user name (Kubernetes 1.30 and later); one that does not is not asked, see docs/security.md.

/** Name of the policy and its binding. */
export const AGENT_POLICY_NAME = 'global-pull-secret-syncer.pullwright.dev';

const CLAIM = 'authentication.kubernetes.io/node-name';

/** The policy and its binding; none where agents do not report. */
export function agentBounds(options: Pick<AgentOptions, 'report' | 'shape'>): readonly KubeObject[] {
  if (!reports(options)) return [];
  const user = userOf({ namespace: NAMES.namespace, name: NAMES.syncer });
  return admissionPolicy({
    metadata: {
      name: AGENT_POLICY_NAME,
      labels: labels({ name: NAMES.syncer, component: 'global-pull-secret' }),
    },
    apiGroup: ['pullwright.dev', 'events.k8s.io'],
    apiVersion: '*',
    resource: ['pullstatuses', 'pullstatuses/status', 'events'],
    operations: ['CREATE', 'UPDATE'],
    failurePolicy: 'Fail',
    matchConditions: [
      { name: 'account', expression: `request.userInfo.username == '${user}'` },
      {
        name: 'node-is-known',
        expression: `has(request.userInfo.extra) && '${CLAIM}' in request.userInfo.extra`,
      },
    ],
    variables: [{ name: 'node', expression: `request.userInfo.extra['${CLAIM}'][0]` }],
    validations: [
      {
        expression:
          "request.resource.resource == 'events' ? object.?regarding.?kind.orValue('') == 'Node' && object.?regarding.?name.orValue('') == variables.node : object.metadata.name == 'node-' + variables.node",
        message: 'the agent of a node reports on that node alone',
      },
    ],
    actions: ['Deny'],
  });
}

// ServiceAccount, Roles and RoleBindings of the node agent in both namespaces.
// Source of the rule: requirement 1, "RBAC resources (ServiceAccount, Role, RoleBinding) are created for the DaemonSet in
// both kube-system and openshift-config". The agent reads mounted files and needs none of it; what it watches and books is
// granted by name, and without `watch`, `report` and turns the pod has no token to use it with.

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
