/**
 * What an account that brings the agent to nodes may write of it, beyond what RBAC can say by names: a DaemonSet of that name with another
 * program, folder or account would be root on every node.
 *
 * The pod is held to what is rendered: an older image of ours may have a known fault. Roles speak of Secrets by name, and bindings give the
 * agents' role to the agents alone.
 */

import { type AccountBound, cel, celOf, GOES, nodeReportBounds } from '../core/kubernetes/account-bounds.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../core/kubernetes/hypershift.ts';
import type { KubeObject, ObjectMeta } from '../core/kubernetes/object.ts';
import {
  admissionPolicy,
  EVENTS,
  grant,
  kubernetesObject,
  labels,
  may,
  NODE_STATUSES,
  type PolicyRule,
  READ,
  secretsByName,
  serviceAccount,
  type Validation,
} from '../core/kubernetes/objects.ts';
import { agentDaemonSet, upstreamDaemonSet } from './daemon-set.ts';
import {
  type AgentOptions,
  booksTurns,
  type Enforcement,
  HASH_LABEL,
  reports,
  type UpstreamState,
} from './options.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';

/**
 * The bounds of an account that applies the agent's objects.
 */
export function agentGuard(options: AgentOptions): readonly AccountBound[] {
  return [agentPods(options), agentRoles(options), agentBindings(options)];
}

const CONTAINER = 'object.spec.template.spec.containers[0]';

function agentPods(options: AgentOptions): AccountBound {
  const { imagePullSecrets: _, resources, ...more } = options;
  const own: AgentOptions = {
    ...more,
    // Quantities come back in another form.
    ...(resources === undefined ? {} : { resources: cel<never>(`${CONTAINER}.resources`) }),
  };
  const states = [true, false].map((merged) => ({
    configHash: cel(`object.spec.template.metadata.labels['${HASH_LABEL}']`),
    merged,
  }));
  const rendered =
    options.shape === 'upstream'
      ? states.map((state) => upstreamDaemonSet(own, state))
      : [agentDaemonSet(own)];
  return {
    name: 'agents',
    apiGroup: 'apps',
    resource: 'daemonsets',
    validations: [
      {
        expression: `${GOES}${rendered.map(({ spec }) => `object.spec == ${celOf(spec, 'daemonSet')}`).join(' || ')}`,
        message: `this account of Pullwright brings to nodes the agent as it is rendered, of the image ${options.image}, and nothing else`,
      },
    ],
  };
}

/** Of each namespace; of none that of the whole cluster. */
function byNamespace(options: AgentOptions, kind: 'Role' | 'RoleBinding', field: string): string {
  const found = agentRbac(options)
    .filter((object) => object.kind.endsWith(kind))
    .map((object) => [object.metadata.namespace ?? '', object[field]]);
  return `object[?'${field}'].orValue([]) == ${celOf(Object.fromEntries(found))}[request.?namespace.orValue('')]`;
}

/** A role of another name reads Secrets by name: that of nodes that take credentials by themselves. */
function agentRoles(options: AgentOptions): AccountBound {
  const others =
    "object.?rules.orValue([]).all(rule, rule.apiGroups == [''] && rule.resources == ['secrets'] && size(rule.?resourceNames.orValue([])) > 0 && rule.verbs.all(verb, verb in ['get', 'list', 'watch']))";
  return {
    name: 'roles',
    apiGroup: RBAC_GROUP,
    resource: ['roles', 'clusterroles'],
    validations: [
      {
        expression: `${GOES}!has(object.aggregationRule) && (request.name == '${NAMES.syncer}' ? ${byNamespace(options, 'Role', 'rules')} : ${others})`,
        message: 'this account of Pullwright gives the agent the rendered rights, and others Secrets by name',
      },
    ],
  };
}

function agentBindings(options: AgentOptions): AccountBound {
  return {
    name: 'bindings',
    apiGroup: RBAC_GROUP,
    resource: ['rolebindings', 'clusterrolebindings'],
    validations: [
      {
        expression: `${GOES}object.roleRef.name == '${NAMES.syncer}' && object.roleRef.kind == (request.resource.resource == 'rolebindings' ? 'Role' : 'ClusterRole') && ${byNamespace(options, 'RoleBinding', 'subjects')}`,
        message: `this account of Pullwright binds the role ${NAMES.syncer} alone, and for the ServiceAccount ${NAMES.namespace}/${NAMES.syncer} alone`,
      },
    ],
  };
}

/** Name of the policy and its binding. */
export const AGENT_POLICY_NAME = 'global-pull-secret-syncer.pullwright.dev';

/** The policy and its binding; none where agents do not report. */
export function agentBounds(options: Pick<AgentOptions, 'report' | 'shape'>): readonly KubeObject[] {
  if (!reports(options)) return [];
  const metadata = {
    name: AGENT_POLICY_NAME,
    labels: labels({ name: NAMES.syncer, component: 'global-pull-secret' }),
  };
  return nodeReportBounds(
    { namespace: NAMES.namespace, name: NAMES.syncer },
    metadata,
    (node) => `node-${node}`,
  );
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
  const leases = names.length === 0 ? [] : [may(['get', 'update'], 'coordination.k8s.io', ['leases'], names)];
  return [
    options.shape === 'upstream' ? upstreamServiceAccount() : serviceAccount(metadata(NAMES.namespace)),
    ...grantAgents(metadata(NAMES.namespace), [
      secretsByName([NAMES.original, NAMES.global], options.watch === false || !ours ? ['get'] : READ),
      ...leases,
      ...(ours && booksTurns(options) ? [FLEET_SIZE] : []),
      ...(report ? NODE_STATUSES : []),
    ]),
    ...grantAgents(metadata(NAMES.configNamespace), [secretsByName([NAMES.platform], ['get'])]),
    ...names.map(lease),
    ...(report ? reportRbac() : []),
  ];
}

/** How many nodes there are, which says how many may restart at once. */
const FLEET_SIZE: PolicyRule = may(['get'], 'apps', ['daemonsets'], [NAMES.syncer]);

/** Nodes belong to no namespace, and Events about them to another than the agent's. */
function reportRbac(): readonly KubeObject[] {
  const { name, labels: marks } = metadata(NAMES.namespace);
  return grantAgents({ name, labels: marks }, [may(['get'], '', ['nodes']), EVENTS]);
}

/** The ServiceAccount as HyperShift's operator makes it: nothing but its name. */
export function upstreamServiceAccount(): KubeObject {
  return kubernetesObject('ServiceAccount', { name: NAMES.syncer, namespace: NAMES.namespace }, {});
}

function grantAgents(metadata: ObjectMeta, rules: readonly PolicyRule[]): readonly KubeObject[] {
  return grant(metadata, rules, { name: NAMES.syncer, namespace: NAMES.namespace });
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

// The objects of a cluster whose nodes get the global pull secret: rendered into git (`delivery: gitops`) or applied by the
// reconciler (`delivery: reconciler`), from the same functions.

// Reports at write time what the reconciler would report later: an `additional-pull-secret` of the wrong type, or without its key.
// By default the author gets a warning and the audit log a line; nothing is refused, because a tenant's mistake is not a reason
// to break the tenant's pipeline. `deny` refuses, but spares updates of Secrets that already have another type: a type cannot
// be changed, so that a refusal would leave no way but deletion.

/** Name of the policy that warns; the one that denies has `-deny` at its end. */
export const POLICY_NAME = 'additional-pull-secret.pullwright.dev';

/** ValidatingAdmissionPolicies and their bindings. */
export function additionalSecretPolicies(enforce: Enforcement): readonly KubeObject[] {
  if (enforce === 'off') return [];
  const warn = policy(POLICY_NAME, ['Warn', 'Audit'], [HAS_TYPE, HAS_KEY]);
  if (enforce === 'warn') return warn;
  const spared = `(request.operation == 'UPDATE' && oldObject.type != '${NAMES.secretType}')`;
  const deny = [HAS_TYPE, HAS_KEY].map((validation) => ({
    ...validation,
    expression: `${spared} || (${validation.expression})`,
  }));
  return [...warn, ...policy(`${POLICY_NAME}-deny`, ['Deny'], deny)];
}

const SUBJECT = `Secret ${NAMES.namespace}/${NAMES.additional}`;

const HAS_TYPE: Validation = {
  expression: `object.type == '${NAMES.secretType}'`,
  message: `${SUBJECT} has another type than ${NAMES.secretType}: delete it and create it with that type`,
  messageExpression: `'${SUBJECT} has type ' + object.type + ', expected ${NAMES.secretType}: delete it and create it with that type'`,
};

const HAS_KEY: Validation = {
  expression: `has(object.data) && '${NAMES.dataKey}' in object.data`,
  message: `${SUBJECT} has no key ${NAMES.dataKey}: nothing of it is merged until it has one`,
};

function policy(
  name: string,
  actions: readonly ('Deny' | 'Warn' | 'Audit')[],
  validations: readonly Validation[],
): readonly KubeObject[] {
  return admissionPolicy({
    metadata: { name, labels: labels({ name: NAMES.additional, component: 'global-pull-secret' }) },
    apiGroup: '',
    apiVersion: 'v1',
    resource: 'secrets',
    resourceNames: [NAMES.additional],
    namespace: NAMES.namespace,
    operations: ['CREATE', 'UPDATE'],
    validations,
    actions,
  });
}

/** Input of {@link syncObjects}. */
export interface SyncOptions {
  readonly agent: AgentOptions;
  /** @default {'warn'} */
  readonly enforce?: Enforcement;
  /** Needed for `shape: upstream`, ignored otherwise. */
  readonly upstream?: UpstreamState;
}

/**
 * ServiceAccount, Roles, RoleBindings, DaemonSet and admission policy.
 *
 * @throws RangeError for `shape: upstream` without its state: the shape holds a hash of the content
 */
export function syncObjects(options: SyncOptions): readonly KubeObject[] {
  return [
    ...agentRbac(options.agent),
    ...agentBounds(options.agent),
    syncDaemonSet(options),
    ...additionalSecretPolicies(options.enforce ?? 'warn'),
  ];
}

function syncDaemonSet(options: SyncOptions): KubeObject {
  if (options.agent.shape !== 'upstream') return agentDaemonSet(options.agent);
  if (options.upstream === undefined)
    throw new RangeError(
      `Cannot render DaemonSet "${NAMES.syncer}" in upstream's shape: the hash of the content is missing`,
    );
  return upstreamDaemonSet(options.agent, options.upstream);
}
