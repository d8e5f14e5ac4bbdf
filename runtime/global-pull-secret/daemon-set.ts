/**
 * The DaemonSet `global-pull-secret-syncer`, in two shapes.
 *
 * Source of the rule: requirement 1 ("Deployment process", "Node-level synchronization") and the DaemonSet of HyperShift's
 * operator. Ours always mounts both secrets and has no content hash in the pod template, so a changed credential reaches nodes
 * by the mount without replacing pods. Its pod uses the host network, so that nodes with a broken network plugin get
 * credentials. Readiness reports whether the file is in sync.
 */

import { type AccountBound, cel, celOf, GOES, nodeReportBounds } from '../core/kubernetes/account-bounds.ts';
import { AGENT_PORTS, GLOBAL_PULL_SECRET as NAMES } from '../core/kubernetes/hypershift.ts';
import type { KubeObject, ObjectMeta } from '../core/kubernetes/object.ts';
import {
  admissionPolicy,
  type Container,
  daemonSet,
  EVENTS,
  grant,
  HOST_CONTAINER,
  imagePullSecretsOf,
  kubernetesObject,
  labels,
  may,
  NODE_STATUSES,
  type PodSpec,
  type PolicyRule,
  podMonitor,
  READ,
  type SecurityContext,
  secretsByName,
  serviceAccount,
  type Validation,
  type Volume,
  type VolumeMount,
} from '../core/kubernetes/objects.ts';
import {
  type AgentOptions,
  type AgentRights,
  booksTurns,
  type Enforcement,
  HASH_LABEL,
  METRICS_NAME,
  OPENSHIFT_PRIORITY_CLASS,
  reports,
  type UpstreamState,
} from './options.ts';

// Renders the command line of the node agent.

/** Path of the executable in the image. */
const EXECUTABLE = '/usr/bin/pullwright';

/** `pullwright agent` with a flag for every option that differs from the agent's default. */
export function agentCommand(options: AgentOptions): readonly string[] {
  return [
    EXECUTABLE,
    'agent',
    `--health-port=${options.healthPort ?? AGENT_PORTS.probes}`,
    ...flag('foreign', options.foreign),
    ...flag('removal-share', options.removals?.share),
    ...flag('removal-delay', options.removals?.delay),
    ...flag('restart', options.restart),
    ...flag('restart-window', options.restartWindow),
    ...(options.watch === false ? [] : ['--watch']),
    ...(reports(options) ? ['--report'] : []),
    ...(options.metrics === undefined ? [] : ['--metrics-address=$(NODE_ADDRESS)']),
    ...flag('log-level', options.logLevel),
    ...(options.janitor === true ? ['--janitor'] : []),
  ];
}

function flag(name: string, value: string | number | undefined): readonly string[] {
  return value === undefined ? [] : [`--${name}=${value}`];
}

const SELECTOR = { name: NAMES.syncer };
const LABELS = labels({ name: NAMES.syncer, component: 'global-pull-secret' });

/** The DaemonSet of the node agent. */
export function agentDaemonSet(options: AgentOptions): KubeObject {
  return daemonSet({
    metadata: metadata(NAMES.namespace),
    selector: SELECTOR,
    maxUnavailable: options.maxUnavailable ?? '10%',
    template: { metadata: { labels: SELECTOR }, spec: agentPod(options) },
  });
}

/** The DaemonSet exactly as HyperShift's operator renders it, for clusters that depend on that shape. */
export function upstreamDaemonSet(options: Pick<AgentOptions, 'image'>, state: UpstreamState): KubeObject {
  const names = state.merged ? [NAMES.original, NAMES.global] : [NAMES.original];
  return daemonSet({
    metadata: { name: NAMES.syncer, namespace: NAMES.namespace },
    selector: SELECTOR,
    template: {
      metadata: { labels: { ...SELECTOR, [HASH_LABEL]: state.configHash } },
      spec: {
        ...basePod(),
        securityContext: {},
        priorityClassName: OPENSHIFT_PRIORITY_CLASS,
        tolerations: [{ operator: 'Exists' }],
        nodeSelector: { [NAMES.nodeLabel]: 'true' },
        containers: [
          {
            name: NAMES.syncer,
            image: options.image,
            imagePullPolicy: 'IfNotPresent',
            command: ['/usr/bin/control-plane-operator'],
            args: ['sync-global-pullsecret'],
            securityContext: { privileged: true },
            terminationMessagePolicy: 'FallbackToLogsOnError',
            resources: { requests: { memory: '35Mi', cpu: '5m' } },
            volumeMounts: mounts(names),
          },
        ],
        volumes: volumes(names, [NAMES.global]),
      },
    },
  });
}

function basePod(): Pick<PodSpec, 'serviceAccountName' | 'automountServiceAccountToken' | 'dnsPolicy'> {
  return { serviceAccountName: NAMES.syncer, automountServiceAccountToken: false, dnsPolicy: 'Default' };
}

function agentPod(options: AgentOptions): PodSpec {
  const names = [NAMES.original, NAMES.global];
  return {
    ...basePod(),
    // Agents that need no API access get no token.
    automountServiceAccountToken: options.watch !== false || reports(options) || booksTurns(options),
    hostNetwork: true,
    enableServiceLinks: false,
    securityContext: {},
    priorityClassName: options.priorityClassName ?? 'system-node-critical',
    tolerations: options.tolerations ?? [{ operator: 'Exists' }],
    ...imagePullSecretsOf(options.imagePullSecrets),
    ...placement(options),
    // Time for two failed kubelet restarts, their pauses and the roll-back.
    terminationGracePeriodSeconds: 60,
    containers: [agentContainer(options, names)],
    // Both optional: a cluster may have no platform secret, and the tenant's works alone.
    volumes: [
      ...volumes(names, names),
      ...(options.janitor === true ? [AUTH_FILES.volume] : []),
      ...(options.metrics === undefined
        ? []
        : [{ name: TLS.name, secret: { secretName: options.metrics.tlsSecret, optional: true } }]),
    ],
  };
}

/** A nodeSelector when it suffices (upstream's form), else an affinity. */
function placement(options: AgentOptions): Pick<PodSpec, 'nodeSelector' | 'affinity'> {
  const eligible = { [NAMES.nodeLabel]: 'true' };
  const also = options.alsoNodes ?? [];
  if (also.length === 0) return { nodeSelector: eligible };
  const nodeSelectorTerms = [eligible, ...also].map((wanted) => ({
    matchExpressions: Object.entries(wanted).map(([key, value]) => ({
      key,
      operator: 'In',
      values: [value],
    })),
  }));
  return {
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  };
}

function agentContainer(options: AgentOptions, secrets: readonly string[]): Container {
  const port = options.healthPort ?? AGENT_PORTS.probes;
  const isOpen = options.metrics !== undefined;
  return {
    name: NAMES.syncer,
    image: options.image,
    imagePullPolicy: 'IfNotPresent',
    command: agentCommand(options),
    env: [
      { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
      ...(isOpen ? [{ name: 'NODE_ADDRESS', valueFrom: { fieldRef: { fieldPath: 'status.hostIP' } } }] : []),
    ],
    // Declared for the scheduler: the pod uses the host network.
    ports: [declared('probes', port), ...(isOpen ? [declared('metrics', AGENT_PORTS.metrics)] : [])],
    securityContext: securityContext(options),
    terminationMessagePolicy: 'FallbackToLogsOnError',
    // Measured with watch, turns and metrics: 67 MiB, of which 44 are pages of the executable.
    resources: options.resources ?? { requests: { memory: '80Mi', cpu: '5m' } },
    // No liveness probe: another process on the port must not restart the agent, which exits by itself when its loop hangs.
    readinessProbe: {
      httpGet: { path: '/readyz', port, host: '127.0.0.1' },
      periodSeconds: 10,
      failureThreshold: 1,
    },
    volumeMounts: [
      ...mounts(secrets),
      ...(options.janitor === true ? [AUTH_FILES.mount] : []),
      ...(isOpen ? [TLS] : []),
    ],
  };
}

function declared(name: string, port: number): NonNullable<Container['ports']>[number] {
  return { name, containerPort: port, hostPort: port, protocol: 'TCP' };
}

const TLS = { name: 'metrics-tls', mountPath: '/etc/pullwright-tls', readOnly: true } as const;

/** CRI-O's folder of namespaced auth files; only the janitor mounts it. */
const AUTH_FILES = {
  volume: { name: 'crio-auth', hostPath: { path: '/etc/crio/auth', type: 'DirectoryOrCreate' } },
  mount: { name: 'crio-auth', mountPath: '/etc/crio/auth' },
} as const;

/**
 * Privileged, as required. The restricted form adds the capabilities to replace root's files atomically with the owner kept
 * (`DAC_OVERRIDE`, `FOWNER`, `CHOWN`). D-Bus needs uid 0 and no capability.
 */
function securityContext(options: AgentOptions): SecurityContext {
  if ((options.security ?? 'privileged') === 'privileged') return HOST_CONTAINER;
  return {
    privileged: false,
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    runAsNonRoot: false,
    runAsUser: 0,
    runAsGroup: 0,
    capabilities: { drop: ['ALL'], add: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'NET_BIND_SERVICE'] },
    seccompProfile: { type: 'RuntimeDefault' },
    ...(options.seLinuxType === undefined ? {} : { seLinuxOptions: { type: options.seLinuxType } }),
  };
}

/** Mounts the whole of `/var/lib/kubelet`, because an atomic rename needs the folder of the file. */
function volumes(secrets: readonly string[], optional: readonly string[]): readonly Volume[] {
  return [
    { name: 'kubelet-config', hostPath: { path: KUBELET_FOLDER, type: 'Directory' } },
    { name: 'dbus', hostPath: { path: DBUS_FOLDER, type: 'Directory' } },
    ...secrets.map((name) => ({
      name,
      secret: { secretName: name, ...(optional.includes(name) ? { optional: true } : {}) },
    })),
  ];
}

function mounts(secrets: readonly string[]): readonly VolumeMount[] {
  return [
    { name: 'kubelet-config', mountPath: KUBELET_FOLDER },
    { name: 'dbus', mountPath: DBUS_FOLDER },
    ...secrets.map((name) => ({ name, mountPath: `/etc/${name}`, readOnly: true })),
  ];
}

const KUBELET_FOLDER = NAMES.kubeletFile.slice(0, NAMES.kubeletFile.lastIndexOf('/'));
const DBUS_FOLDER = '/var/run/dbus';

/** PodMonitor for the Prometheus Operator, which verifies the agents' certificate. */
export function agentPodMonitor({ tlsSecret }: NonNullable<AgentOptions['metrics']>): KubeObject {
  return podMonitor(metadata(NAMES.namespace), SELECTOR, { serverName: METRICS_NAME, secret: tlsSecret });
}

// Bounds of accounts that deliver the agent to nodes, beyond RBAC's resource names: a DaemonSet of this name with another
// program, folder or account would be root on every node.
//
// The pod must equal the rendered one, because an older image may have a known vulnerability. Roles may grant Secrets by name
// only, and bindings may grant the agents' role to the agents only.

const RBAC_GROUP = 'rbac.authorization.k8s.io';

/** Returns the bounds of an account that applies the agent's objects. */
export function agentGuard(options: AgentOptions): readonly AccountBound[] {
  return [agentPods(options), agentRoles(options), agentBindings(options)];
}

const CONTAINER = 'object.spec.template.spec.containers[0]';

function agentPods(options: AgentOptions): AccountBound {
  const { imagePullSecrets: _, resources, ...more } = options;
  const own: AgentOptions = {
    ...more,
    // The API server normalizes quantities.
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
        message: `this account of Pullwright may write only the rendered agent with image ${options.image}`,
      },
    ],
  };
}

/** CEL for the expected field per namespace; key "" is the cluster-scoped object. */
function byNamespace(options: AgentOptions, kind: 'Role' | 'RoleBinding', field: string): string {
  const found = agentRbac(options)
    .filter((object) => object.kind.endsWith(kind))
    .map((object) => [object.metadata.namespace ?? '', object[field]]);
  return `object[?'${field}'].orValue([]) == ${celOf(Object.fromEntries(found))}[request.?namespace.orValue('')]`;
}

/** Roles of other names may only grant Secrets by name, as for nodes of the credential provider. */
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
        message:
          'this account of Pullwright may grant the agent only the rendered permissions, and others only Secrets by name',
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
        message: `this account of Pullwright may bind only the role ${NAMES.syncer}, and only to ServiceAccount ${NAMES.namespace}/${NAMES.syncer}`,
      },
    ],
  };
}

/** Name of the policy and its binding. */
export const AGENT_POLICY_NAME = 'global-pull-secret-syncer.pullwright.dev';

/** The policy and its binding; empty when agents do not report. */
export function agentBounds(options: Pick<AgentOptions, 'report' | 'shape'>): readonly KubeObject[] {
  if (!reports(options)) return [];
  const account = { namespace: NAMES.namespace, name: NAMES.syncer };
  const policy = { name: AGENT_POLICY_NAME, labels: LABELS };
  return nodeReportBounds(account, policy, (node) => `node-${node}`);
}

// ServiceAccount, Roles and RoleBindings of the node agent in both namespaces.
// Source of the rule: requirement 1, "RBAC resources (ServiceAccount, Role, RoleBinding) are created for the DaemonSet in
// both kube-system and openshift-config". The agent reads mounted files and needs no RBAC for that. Watches and turns are
// granted by name; without `watch`, `report` and turns, the pod has no token.

/** ServiceAccount, Roles, RoleBindings and the Lease of restart turns; with reports, also the rights to write them. */
export function agentRbac(options: AgentRights): readonly KubeObject[] {
  const ours = options.shape !== 'upstream';
  const report = reports(options);
  const turns = booksTurns(options);
  return [
    ours ? serviceAccount(metadata(NAMES.namespace)) : upstreamServiceAccount(),
    ...grantAgents(metadata(NAMES.namespace), [
      secretsByName([NAMES.original, NAMES.global], options.watch === false || !ours ? ['get'] : READ),
      ...(turns ? TURNS : []),
      ...(report ? NODE_STATUSES : []),
    ]),
    ...grantAgents(metadata(NAMES.configNamespace), [secretsByName([NAMES.platform], ['get'])]),
    // Rendered empty, so that the agents' writes to `spec` are not drift.
    ...(turns ? [kubernetesObject('Lease', { ...metadata(NAMES.namespace), name: NAMES.turns }, {})] : []),
    // Cluster-wide: Nodes are cluster-scoped, and Events about them are in another namespace.
    ...(report
      ? grantAgents({ name: NAMES.syncer, labels: LABELS }, [may(['get'], '', ['nodes']), EVENTS])
      : []),
  ];
}

/** The Lease, and the DaemonSet, whose node count decides how many nodes may restart at once. */
const TURNS: readonly PolicyRule[] = [
  may(['get', 'update'], 'coordination.k8s.io', ['leases'], [NAMES.turns]),
  may(['get'], 'apps', ['daemonsets'], [NAMES.syncer]),
];

/** The ServiceAccount as HyperShift's operator renders it: only its name. */
export function upstreamServiceAccount(): KubeObject {
  return kubernetesObject('ServiceAccount', { name: NAMES.syncer, namespace: NAMES.namespace }, {});
}

function grantAgents(metadata: ObjectMeta, rules: readonly PolicyRule[]): readonly KubeObject[] {
  return grant(metadata, rules, { name: NAMES.syncer, namespace: NAMES.namespace });
}

function metadata(namespace: string): ObjectMeta {
  return { name: NAMES.syncer, namespace, labels: LABELS };
}

// Reports faults at admission that the reconciler would report later: an `additional-pull-secret` of the wrong type or without
// its key. By default the author gets a warning and the audit log an entry; a denial would break the tenant's pipeline.
// `deny` denies, except updates of Secrets that already have the wrong type: a type is immutable, so only deletion would help.

/** Name of the warning policy; the denying policy appends `-deny`. */
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
  message: `${SUBJECT} must be of type ${NAMES.secretType}: delete it and create it with that type`,
  messageExpression: `'${SUBJECT} has type ' + object.type + ', expected ${NAMES.secretType}: delete it and create it with that type'`,
};

const HAS_KEY: Validation = {
  expression: `has(object.data) && '${NAMES.dataKey}' in object.data`,
  message: `${SUBJECT} must have the key ${NAMES.dataKey}: nothing is merged without it`,
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

/**
 * ServiceAccount, Roles, RoleBindings, DaemonSet and admission policy, as rendered into git.
 *
 * @throws RangeError for `shape: upstream`, which holds a hash of the content: git does not know it
 */
export function syncObjects(agent: AgentOptions, enforce: Enforcement): readonly KubeObject[] {
  if (agent.shape === 'upstream')
    throw new RangeError(
      `Cannot render DaemonSet "${NAMES.syncer}" in upstream's shape: the hash of the content is missing`,
    );
  return [
    ...agentRbac(agent),
    ...agentBounds(agent),
    agentDaemonSet(agent),
    ...additionalSecretPolicies(enforce),
  ];
}
