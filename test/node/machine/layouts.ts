/**
 * The files of a node, as `kubeadm` and CRI-O's packages lay them out, and as OpenShift's Machine Config Operator does. They
 * differ only in the cgroup driver and the targets of units, which a machine in namespaces cannot have.
 */
import { stringify } from 'yaml';

export const LAYOUTS = ['kubeadm', 'openshift'] as const;
export type LayoutName = (typeof LAYOUTS)[number];

/** Paths of the kubelet that the tests read. */
export interface LayoutInput {
  readonly name: LayoutName;
  /** Name and address of the node. */
  readonly node: string;
  readonly address: string;
  /** Address of the cluster's DNS. */
  readonly dns: string;
  /** Range of pod addresses, such as `10.244.0.0/24`. */
  readonly pods: string;
  readonly cgroup: string;
  readonly ca: string;
  /** Text of the kubelet's kubeconfig. */
  readonly kubeconfig: string;
  readonly pauseImage: string;
  /** Text of CRI-O's auth file. */
  readonly pauseAuth: string;
}

/** Path to text. */
export type Files = Readonly<Record<string, string>>;

const UNITS = '/usr/lib/systemd/system';

export function layoutFiles(input: LayoutInput): Files {
  return {
    ...systemFiles(input),
    ...runtimeFiles(input),
    ...(input.name === 'kubeadm' ? kubeadm(input) : openshift(input)),
  };
}

function systemFiles({ cgroup }: LayoutInput): Files {
  const empty = '[Unit]\nDefaultDependencies=no\n';
  const targets = ['sysinit', 'basic', 'shutdown', 'network-online', 'multi-user'];
  const socket = (...lines: readonly string[]): string => `${empty}[Socket]\n${lines.join('\n')}\n`;
  return {
    ...Object.fromEntries(targets.map((name) => [`${UNITS}/${name}.target`, empty])),
    [`${UNITS}/boot.target`]: `${empty}Requires=systemd-journald.service dbus.service cgroup-root.service crio.service kubelet.service\nWants=multi-user.target\n`,
    [`${UNITS}/cgroup-root.service`]: `${empty}Before=kubelet.service\n[Service]\nType=oneshot\nExecStart=/bin/sh -c "for d in /sys/fs/cgroup/*/; do mkdir -p $$d/${cgroup}; done"\n`,
    [`${UNITS}/dbus.socket`]: socket('ListenStream=/run/dbus/system_bus_socket'),
    [`${UNITS}/dbus.service`]: `${empty}Requires=dbus.socket\n[Service]\nType=notify\nExecStart=/usr/bin/dbus-daemon --system --address=systemd: --nofork --nopidfile --systemd-activation\n`,
    [`${UNITS}/systemd-journald.socket`]: socket(
      'ListenStream=/run/systemd/journal/stdout',
      'ListenDatagram=/run/systemd/journal/socket',
      'ListenDatagram=/run/systemd/journal/dev-log',
      'Service=systemd-journald.service',
    ),
    [`${UNITS}/systemd-journald.service`]: `${empty}Requires=systemd-journald.socket\n[Service]\nType=notify\nExecStart=/lib/systemd/systemd-journald\nSockets=systemd-journald.socket\nFileDescriptorStoreMax=4224\n`,
    '/etc/systemd/system.conf':
      '[Manager]\nDefaultCPUAccounting=no\nDefaultMemoryAccounting=no\nDefaultTasksAccounting=no\nDefaultIOAccounting=no\n',
    '/etc/systemd/journald.conf': '[Journal]\nStorage=volatile\nReadKMsg=no\nAudit=no\nForwardToSyslog=no\n',
  };
}

function runtimeFiles({ pauseImage, pauseAuth, pods }: LayoutInput): Files {
  return {
    '/etc/crio/crio.conf.d/10-test.conf': `[crio]
storage_driver = "overlay"
[crio.api]
stream_port = "0"
[crio.runtime]
cgroup_manager = "cgroupfs"
conmon_cgroup = "pod"
conmon = "/usr/bin/conmon"
default_runtime = "runc"
pinns_path = "/usr/bin/pinns"
[crio.runtime.runtimes.runc]
runtime_path = "/usr/bin/runc"
runtime_root = "/run/runc"
monitor_path = "/usr/bin/conmon"
[crio.image]
pause_image = "${pauseImage}"
pause_command = "/waiter"
pause_image_auth_file = "/etc/crio/pause-auth.json"
[crio.network]
network_dir = "/etc/cni/net.d"
plugin_dirs = ["/usr/lib/cni"]
`,
    '/etc/crio/pause-auth.json': pauseAuth,
    '/etc/cni/net.d/10-bridge.conflist': JSON.stringify({
      cniVersion: '0.4.0',
      name: 'pods',
      plugins: [
        {
          type: 'bridge',
          bridge: 'cni0',
          isGateway: true,
          ipam: {
            type: 'host-local',
            ranges: [[{ subnet: pods }]],
            routes: [{ dst: '0.0.0.0/0' }],
          },
        },
        { type: 'loopback' },
      ],
    }),
    [`${UNITS}/crio.service`]: `[Unit]
Description=Container Runtime Interface for OCI (CRI-O)
Wants=network-online.target
Before=kubelet.service
After=network-online.target
[Service]
Type=notify
ExecStart=/usr/bin/crio $CRIO_CONFIG_OPTIONS
TimeoutStartSec=0
Restart=on-failure
RestartSec=10
KillMode=process
StandardOutput=append:/var/log/crio.log
StandardError=append:/var/log/crio.log
[Install]
WantedBy=multi-user.target
`,
  };
}

function kubeletConfiguration({ cgroup, dns }: LayoutInput, caFile: string): string {
  return stringify({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: caFile },
    },
    authorization: { mode: 'Webhook' },
    cgroupDriver: 'cgroupfs',
    clusterDNS: [dns],
    clusterDomain: 'cluster.local',
    cgroupRoot: `/${cgroup}`,
    containerRuntimeEndpoint: 'unix:///var/run/crio/crio.sock',
    enforceNodeAllocatable: [],
    evictionHard: {},
    failCgroupV1: false,
    failSwapOn: false,
    localStorageCapacityIsolation: false,
    staticPodPath: '/etc/kubernetes/manifests',
  });
}

const LOG = 'StandardOutput=append:/var/log/kubelet.log\nStandardError=append:/var/log/kubelet.log\n';

/** Source: the packages kubelet and kubeadm of pkgs.k8s.io, and what `kubeadm join` writes. */
function kubeadm(input: LayoutInput): Files {
  return {
    '/etc/kubernetes/pki/ca.crt': input.ca,
    '/etc/kubernetes/kubelet.conf': input.kubeconfig,
    '/var/lib/kubelet/config.yaml': kubeletConfiguration(input, '/etc/kubernetes/pki/ca.crt'),
    '/var/lib/kubelet/kubeadm-flags.env': `KUBELET_KUBEADM_ARGS="--node-ip=${input.address} --hostname-override=${input.node}"\n`,
    [`${UNITS}/kubelet.service`]: `[Unit]
Description=kubelet: The Kubernetes Node Agent
Documentation=https://kubernetes.io/docs/
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=10
${LOG}
[Install]
WantedBy=multi-user.target
`,
    [`${UNITS}/kubelet.service.d/10-kubeadm.conf`]: `# Note: This dropin only works with kubeadm and kubelet v1.11+
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
# This is a file that "kubeadm init" and "kubeadm join" generate at runtime, populating the KUBELET_KUBEADM_ARGS variable dynamically
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
# This is a file that the user can use for overrides of the kubelet args as a last resort.
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`,
  };
}

/**
 * Source: templates/worker/01-worker-kubelet of the Machine Config Operator, in the form for machines without a cloud, whose
 * unit has the variable of the credential provider. Its kubelet may label its own role; this one may not.
 */
function openshift(input: LayoutInput): Files {
  return {
    '/etc/machine-config-daemon/currentconfig': '{}',
    '/etc/kubernetes/kubelet-ca.crt': input.ca,
    '/var/lib/kubelet/kubeconfig': input.kubeconfig,
    '/etc/kubernetes/kubelet.conf': kubeletConfiguration(input, '/etc/kubernetes/kubelet-ca.crt'),
    '/etc/node-sizing.env': 'SYSTEM_RESERVED_MEMORY=0Mi\nSYSTEM_RESERVED_CPU=0m\nSYSTEM_RESERVED_ES=0Gi\n',
    '/etc/kubernetes/kubelet-env': `KUBELET_NODE_IP=${input.address}\nKUBELET_NODE_NAME=${input.node}\n`,
    '/usr/local/bin/kubenswrapper': '#!/bin/sh\nexec "$@"\n',
    [`${UNITS}/kubelet.service`]: `[Unit]
Description=Kubernetes Kubelet
Requires=crio.service
After=crio.service

[Service]
Type=notify
ExecStartPre=/bin/mkdir --parents /etc/kubernetes/manifests
Environment="KUBELET_LOG_LEVEL=2"
EnvironmentFile=/etc/os-release
EnvironmentFile=-/etc/kubernetes/kubelet-workaround
EnvironmentFile=-/etc/kubernetes/kubelet-env
EnvironmentFile=/etc/node-sizing.env

ExecStart=/usr/local/bin/kubenswrapper \\
    /usr/bin/kubelet \\
      --config=/etc/kubernetes/kubelet.conf \\
      --bootstrap-kubeconfig=/etc/kubernetes/kubeconfig \\
      --kubeconfig=/var/lib/kubelet/kubeconfig \\
      --node-labels=node.openshift.io/os_id=\${ID} \\
      --node-ip=\${KUBELET_NODE_IP} \\
      --volume-plugin-dir=/etc/kubernetes/kubelet-plugins/volume/exec \\
      $KUBELET_CRIO_IMAGE_CREDENTIAL_PROVIDER_FLAGS \\
      --hostname-override=\${KUBELET_NODE_NAME} \\
      --v=\${KUBELET_LOG_LEVEL}

Restart=always
RestartSec=10
${LOG}
[Install]
WantedBy=multi-user.target
`,
  };
}
