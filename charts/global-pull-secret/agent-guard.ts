/**
 * What an account that brings the agent to nodes may write of it, beyond what RBAC can say by names: a DaemonSet of that name with another
 * program, folder or account would be root on every node.
 *
 * The pod is held to what is rendered: one container with our program, from our repository whatever the tag, so that git and reconciler may be
 * updated in either order; its folders, places and variables are those of the options. Roles speak of Secrets by name, and bindings give
 * the agents' role to the agents alone.
 */
import { GLOBAL_PULL_SECRET as NAMES } from '../../runtime/rules/kubernetes/global-pull-secret.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { type AccountBound, IMAGE_IS, imageVariables } from '../shared/account-bounds.ts';
import type { PodSpec, Volume } from '../shared/objects.ts';
import { agentPod, upstreamDaemonSet } from './agent.ts';
import { AGENT_FLAGS, EXECUTABLE } from './agent-command.ts';
import type { AgentOptions } from './options.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';
const WRITES = ['CREATE', 'UPDATE', 'DELETE'] as const;
/** Whatever of these names goes is an outage of the agent, and no right of anybody. */
const GOES = "request.operation == 'DELETE' || ";

/** As a list of CEL. */
const listOf = (values: Iterable<unknown>): string => JSON.stringify([...new Set(values)]);

/**
 * The bounds of an account that applies the agent's objects.
 *
 * @example
 * ```ts
 * import { agentGuard } from './agent-guard.ts';
 * import assert from 'node:assert/strict';
 *
 * const bounds = agentGuard({ image: 'registry.example.com/pullwright:0.1.0' });
 * assert.deepEqual(bounds.map(({ name }) => name), ['agents', 'roles', 'bindings', 'definitions']);
 * ```
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
