/**
 * The DaemonSet `global-pull-secret-syncer`, in two shapes.
 *
 * Source of the rule: requirement 1 ("Deployment process", "Node-level synchronization") and the DaemonSet that HyperShift's
 * operator makes. Ours differs where that one hurts: both secrets are always mounted and there is no content hash in the pod
 * template, so that a changed credential reaches the nodes by the mount and replaces no pod; the pod uses the node's network,
 * so that a node without a working network plugin still gets its credentials; readiness says whether the file is in place.
 */
import { AGENT_PORTS, GLOBAL_PULL_SECRET as NAMES } from '../core/kubernetes/hypershift.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import {
  type Container,
  daemonSet,
  HOST_CONTAINER,
  imagePullSecretsOf,
  labels,
  type PodSpec,
  podMonitor,
  type SecurityContext,
  type Volume,
  type VolumeMount,
} from '../core/kubernetes/objects.ts';
import {
  type AgentOptions,
  booksTurns,
  HASH_LABEL,
  METRICS_NAME,
  OPENSHIFT_PRIORITY_CLASS,
  reports,
  type UpstreamState,
} from './options.ts';

// Command line of the node agent, from its options.

/** Where the image holds the executable. */
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

/** The DaemonSet of the node agent. */
export function agentDaemonSet(options: AgentOptions): KubeObject {
  return daemonSet({
    metadata: {
      name: NAMES.syncer,
      namespace: NAMES.namespace,
      labels: labels({ name: NAMES.syncer, component: 'global-pull-secret' }),
    },
    selector: SELECTOR,
    maxUnavailable: options.maxUnavailable ?? '10%',
    template: { metadata: { labels: SELECTOR }, spec: agentPod(options) },
  });
}

/**
 * The DaemonSet exactly as HyperShift's operator makes it: for clusters where something depends on that shape.
 */
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
    // Without any of these there is no token to steal.
    automountServiceAccountToken: asksApiServer(options),
    hostNetwork: true,
    enableServiceLinks: false,
    securityContext: {},
    priorityClassName: options.priorityClassName ?? 'system-node-critical',
    tolerations: options.tolerations ?? [{ operator: 'Exists' }],
    ...imagePullSecretsOf(options.imagePullSecrets),
    ...placement(options),
    // Two restarts of a kubelet that does not come up, their pauses, and the way back.
    terminationGracePeriodSeconds: 60,
    containers: [agentContainer(options, names)],
    // Neither is certain to be there: a cluster may have no platform secret, and the tenant's part works alone.
    volumes: [
      ...volumes(names, names),
      ...(options.janitor === true ? [AUTH_FILES.volume] : []),
      ...(options.metrics === undefined
        ? []
        : [{ name: TLS.name, secret: { secretName: options.metrics.tlsSecret, optional: true } }]),
    ],
  };
}

function asksApiServer(options: AgentOptions): boolean {
  return options.watch !== false || reports(options) || booksTurns(options);
}

/** A nodeSelector where it suffices (upstream's form), an affinity for several kinds of nodes. */
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
    // Declared, so that the scheduler knows them: the pod has the node's network.
    ports: [declared('probes', port), ...(isOpen ? [declared('metrics', AGENT_PORTS.metrics)] : [])],
    securityContext: securityContext(options),
    terminationMessagePolicy: 'FallbackToLogsOnError',
    // Measured with watch, turns and metrics: 67 MiB, of which 44 are pages of the executable.
    resources: options.resources ?? { requests: { memory: '80Mi', cpu: '5m' } },
    // There is no liveness probe: who else holds the port must not end the agent, which ends by itself when its loop hangs.
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

/** Where CRI-O looks for auth files of namespaces; only the janitor needs it. */
const AUTH_FILES = {
  volume: { name: 'crio-auth', hostPath: { path: '/etc/crio/auth', type: 'DirectoryOrCreate' } },
  mount: { name: 'crio-auth', mountPath: '/etc/crio/auth' },
} as const;

/**
 * Privileged as in the requirement. The restricted form keeps what the work takes: root's own files on the host
 * (`DAC_OVERRIDE`, `FOWNER`, `CHOWN` for an atomic replacement with the owner kept); the bus asks for uid 0 and no capability.
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

/** An atomic rename needs the folder of the file, so that the whole of `/var/lib/kubelet` is mounted. */
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

/** What tells the Prometheus Operator to scrape the agents; it verifies their certificate. */
export function agentPodMonitor({ tlsSecret }: NonNullable<AgentOptions['metrics']>): KubeObject {
  const metadata = {
    name: NAMES.syncer,
    namespace: NAMES.namespace,
    labels: labels({ name: NAMES.syncer, component: 'global-pull-secret' }),
  };
  return podMonitor(metadata, SELECTOR, { serverName: METRICS_NAME, secret: tlsSecret });
}
