/** The DaemonSet that installs the provider on nodes without the Machine Config Operator, and its permissions. */

import { nodeReportBounds } from '../../runtime/core/kubernetes/account-bounds.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import {
  type Container,
  daemonSet,
  EVENTS,
  grant,
  HOST_CONTAINER,
  labels,
  may,
  NODE_STATUSES,
  podMonitor,
  READ,
  serviceAccount,
} from '../../runtime/core/kubernetes/objects.ts';
import { defined } from '../../runtime/core/record.ts';
import type { CredentialProviderInput } from '../../runtime/credential-provider/options.ts';
import {
  CREDENTIAL_PROVIDER,
  installerStatusName,
  PROVIDER_FAILED,
} from '../../runtime/credential-provider/platform.ts';
import { providerArgs } from '../../runtime/credential-provider/provider-flags.ts';

/** The section's `installer`, and related fields of the section. */
export interface InstallerOptions
  extends NonNullable<CredentialProviderInput['installer']>,
    Pick<CredentialProviderInput, 'secretAnnotation' | 'provider'> {
  readonly image: string;
}

const NAME = 'credential-provider-installer';
const NAMESPACE = 'kube-system';
const CLUSTER_NAME = `pullwright-${NAME}`;
/** Below 1024: no local user can bind it first. */
const HEALTH_PORT = 948;

/** ServiceAccount, ClusterRole, ClusterRoleBinding, DaemonSet; with reports a Role and its RoleBinding. */
export function installerObjects(options: InstallerOptions): readonly KubeObject[] {
  const own = labels({ name: NAME, component: 'credential-provider' });
  const metadata = { name: NAME, namespace: NAMESPACE, labels: own };
  return [
    serviceAccount(metadata),
    ...grant(
      { name: CLUSTER_NAME, labels: own },
      [
        // For kubelet and CRI-O versions; RBAC cannot limit a pod to its own node.
        may(['get'], '', ['nodes']),
        may(READ, CREDENTIAL_PROVIDER.group, [CREDENTIAL_PROVIDER.plural], [CREDENTIAL_PROVIDER.objectName]),
        ...(options.report === true ? [EVENTS] : []),
      ],
      metadata,
    ),
    ...(options.report === true
      ? [
          ...grant(metadata, NODE_STATUSES, metadata),
          ...nodeReportBounds(
            metadata,
            { name: `${NAME}.pullwright.dev`, labels: own },
            installerStatusName,
            PROVIDER_FAILED,
          ),
        ]
      : []),
    workload(options, metadata),
    ...(options.metrics === true ? [podMonitor(metadata, { name: NAME })] : []),
  ];
}

interface HostFolder {
  readonly name: string;
  readonly path: string;
  readonly type: 'Directory' | 'DirectoryOrCreate';
  readonly readOnly?: true;
  /** @default the path below `/host` */
  readonly mountPath?: string;
}

const FOLDERS: readonly HostFolder[] = [
  { name: 'etc', path: '/etc', type: 'Directory', readOnly: true },
  { name: 'units', path: '/etc/systemd/system', type: 'Directory' },
  { name: 'configs', path: CREDENTIAL_PROVIDER.configDir, type: 'DirectoryOrCreate' },
  { name: 'plugins', path: CREDENTIAL_PROVIDER.binDir, type: 'DirectoryOrCreate' },
  { name: 'vendor-units', path: '/usr/lib/systemd/system', type: 'Directory', readOnly: true },
  { name: 'kubelet', path: '/var/lib/kubelet', type: 'Directory', readOnly: true },
];

function workload(options: InstallerOptions, metadata: KubeObject['metadata']): KubeObject {
  const authDir = options.provider?.authDir ?? '/etc/crio/auth';
  const folders: readonly HostFolder[] = [
    ...FOLDERS,
    // CRI-O's auth files; the installer removes stale ones.
    { name: 'auth-files', path: authDir, type: 'DirectoryOrCreate' },
    { name: 'dbus', path: '/var/run/dbus', type: 'Directory', mountPath: '/var/run/dbus' },
  ];
  return daemonSet({
    metadata,
    selector: { name: NAME },
    maxUnavailable: '10%',
    template: {
      metadata: { labels: { name: NAME } },
      spec: {
        serviceAccountName: NAME,
        automountServiceAccountToken: true,
        hostNetwork: true,
        dnsPolicy: 'Default',
        enableServiceLinks: false,
        securityContext: {},
        priorityClassName: 'system-node-critical',
        tolerations: [{ operator: 'Exists' }],
        nodeSelector: options.nodeSelector ?? { 'kubernetes.io/os': 'linux' },
        terminationGracePeriodSeconds: 60,
        containers: [container(options, folders)],
        volumes: folders.map(({ name, path, type }) => ({ name, hostPath: { path, type } })),
      },
    },
  });
}

function container(options: InstallerOptions, folders: readonly HostFolder[]): Container {
  const isOpen = options.metrics === true;
  // Host network: without `host`, the kubelet probes the node's address.
  const httpGet = { path: '/readyz', port: HEALTH_PORT, ...(isOpen ? {} : { host: '127.0.0.1' }) };
  return {
    name: NAME,
    image: options.image,
    imagePullPolicy: 'IfNotPresent',
    command: [
      '/usr/bin/pullwright',
      'install-provider',
      '--root=/host',
      ...(options.restartWindowSeconds === undefined
        ? []
        : [`--restart-window=${options.restartWindowSeconds}`]),
      ...(options.secretAnnotation === true ? ['--secret-annotation'] : []),
      ...(options.provider?.authDir === undefined ? [] : [`--auth-dir=${options.provider.authDir}`]),
      ...providerArgs(options.provider ?? {}).map((arg) => `--provider-arg=${arg}`),
      ...(options.report === true ? ['--report'] : []),
      ...(isOpen ? ['--health-address=$(NODE_ADDRESS)'] : []),
      ...(options.uninstall === true ? ['--uninstall'] : []),
    ],
    env: [
      { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
      ...(isOpen ? [{ name: 'NODE_ADDRESS', valueFrom: { fieldRef: { fieldPath: 'status.hostIP' } } }] : []),
    ],
    ...(isOpen ? { ports: [{ name: 'metrics', containerPort: HEALTH_PORT }] } : {}),
    securityContext: HOST_CONTAINER,
    terminationMessagePolicy: 'FallbackToLogsOnError',
    resources: { requests: { memory: '45Mi', cpu: '5m' } },
    // No liveness probe: the process exits by itself when its loop hangs.
    readinessProbe: { httpGet, periodSeconds: 10, failureThreshold: 1 },
    volumeMounts: folders.map(({ name, path, mountPath = `/host${path}`, readOnly }) => ({
      name,
      mountPath,
      ...defined({ readOnly }),
    })),
  };
}
