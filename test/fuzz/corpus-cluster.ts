/** Objects of a cluster with everything that reconcilers and commands look at, small enough to be made wrong quickly. */
import { plantedAuth } from '../support/canary.ts';

const UID = '11111111-1111-4111-8111-1111111111';

export interface Plain {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Readonly<Record<string, unknown>> & { readonly name: string };
}

type Body = Readonly<Record<string, unknown>>;

let count = 0;

function object(
  kind: string,
  name: string,
  { metadata = {}, ...body }: Body & { readonly metadata?: Body } = {},
): Plain {
  const [version = '', short = ''] = kind.includes(' ') ? kind.split(' ') : ['v1', kind];
  count += 1;
  const uid = `${UID}${String(count).padStart(2, '0')}`;
  return { apiVersion: version, kind: short, metadata: { name, uid, ...metadata }, ...body };
}

function pullSecret(
  namespace: string,
  name: string,
  registries: readonly string[],
  metadata: Body = {},
): Plain {
  const auths = Object.fromEntries(registries.map((one) => [one, { auth: plantedAuth(name, 'robot') }]));
  const value = Buffer.from(JSON.stringify({ auths })).toString('base64');
  return object('Secret', name, {
    metadata: { namespace, ...metadata },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': value },
  });
}

const CONFIG = 'config.openshift.io/v1';
const HYPERSHIFT = 'hypershift.openshift.io/v1beta1';
const MACHINES = 'machineconfiguration.openshift.io/v1';
const IMAGE = 'quay.io/team/app:1.2';

/** A stand-alone cluster. */
export const STANDALONE: readonly Plain[] = [
  pullSecret('openshift-config', 'pull-secret', ['quay.io', 'registry.redhat.io']),
  pullSecret('kube-system', 'additional-pull-secret', ['https://quay.io/v1/', 'r.io/team']),
  pullSecret('hub', 'shared', ['quay.io/team'], {
    annotations: { 'pullwright.dev/allow-namespaces': 'web,shop' },
  }),
  object('Namespace', 'web', { metadata: { labels: { tier: 'front' } } }),
  object('Namespace', 'shop', { status: { phase: 'Active' } }),
  object('ServiceAccount', 'default', {
    metadata: { namespace: 'web' },
    imagePullSecrets: [{ name: 'shared' }],
  }),
  object('Pod', 'web-1', {
    metadata: { namespace: 'web', labels: { app: 'web' } },
    spec: {
      nodeName: 'n1',
      containers: [{ name: 'a', image: IMAGE }],
      imagePullSecrets: [{ name: 'shared' }],
    },
    status: {
      phase: 'Pending',
      containerStatuses: [{ name: 'a', state: { waiting: { reason: 'ImagePullBackOff' } } }],
    },
  }),
  object('apps/v1 Deployment', 'web', {
    metadata: { namespace: 'web' },
    spec: {
      template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'a', image: IMAGE }] } },
    },
  }),
  object('Node', 'n1', {
    metadata: {
      labels: { 'node-role.kubernetes.io/worker': '', 'kubernetes.io/os': 'linux' },
      annotations: { 'machineconfiguration.openshift.io/currentConfig': 'rendered-worker-1' },
    },
    status: {
      nodeInfo: { kubeletVersion: 'v1.34.1', containerRuntimeVersion: 'cri-o://1.34.0' },
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  }),
  object('pullwright.dev/v1alpha1 PullSecretProfile', 'team', {
    metadata: { generation: 2 },
    spec: {
      namespaceSelector: { matchLabels: { tier: 'front' } },
      selector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['web'] }] },
      secrets: [{ name: 'shared', sources: [{ namespace: 'hub', name: 'shared' }] }],
    },
  }),
  object('apps.kruise.io/v1alpha1 SidecarSet', 'sidecar', {
    spec: {
      selector: { matchLabels: { app: 'web' } },
      imagePullSecrets: [{ name: 'pull' }],
      updateStrategy: { type: 'NotUpdate' },
    },
  }),
];

/** What belongs to mirrors and to the credential provider of the same cluster. */
export const PLATFORM: readonly Plain[] = [
  object(`${CONFIG} ImageDigestMirrorSet`, 'digests', {
    spec: {
      imageDigestMirrors: [
        {
          source: 'quay.io/team',
          mirrors: ['m.io/team', 'n.io'],
          mirrorSourcePolicy: 'AllowContactingSource',
        },
      ],
    },
  }),
  object(`${CONFIG} ImageTagMirrorSet`, 'tags', {
    spec: {
      imageTagMirrors: [
        { source: '*.example.com', mirrors: ['m.io/example'], mirrorSourcePolicy: 'NeverContactSource' },
      ],
    },
  }),
  object('operator.openshift.io/v1alpha1 ImageContentSourcePolicy', 'icsp', {
    spec: { repositoryDigestMirrors: [{ source: 'quay.io/old', mirrors: ['m.io/old'] }] },
  }),
  object(`${CONFIG} CRIOCredentialProviderConfig`, 'cluster', {
    metadata: { generation: 1 },
    spec: { matchImages: ['*.example.com', 'quay.io/team'] },
  }),
  object(`${CONFIG} Infrastructure`, 'cluster', {
    status: { platform: 'AWS', platformStatus: { type: 'AWS' } },
  }),
  object(`${MACHINES} MachineConfigPool`, 'worker', {
    metadata: { labels: { 'machineconfiguration.openshift.io/mco-built-in': '' } },
    spec: {
      machineConfigSelector: { matchLabels: { 'machineconfiguration.openshift.io/role': 'worker' } },
      nodeSelector: { matchLabels: { 'node-role.kubernetes.io/worker': '' } },
      configuration: { name: 'rendered-worker-1' },
    },
    status: {
      configuration: { name: 'rendered-worker-1' },
      conditions: [{ type: 'Updated', status: 'True' }],
      machineCount: 1,
      updatedMachineCount: 1,
    },
  }),
  object(`${MACHINES} MachineConfig`, 'rendered-worker-1', {
    spec: {
      config: {
        ignition: { version: '3.4.0' },
        storage: {
          files: [
            {
              path: '/etc/kubernetes/credential-providers/ecr-credential-provider.yaml',
              contents: {
                source: `data:,${encodeURIComponent('apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders: []\n')}`,
              },
            },
          ],
        },
        systemd: {
          units: [
            {
              name: 'kubelet.service',
              contents:
                '[Service]\nExecStart=/usr/bin/kubelet --image-credential-provider-config=/etc/kubernetes/credential-providers/ecr-credential-provider.yaml\n',
              dropins: [{ name: '10.conf', contents: '[Service]\n' }],
            },
          ],
        },
      },
    },
  }),
];

/** A management cluster with one hosted cluster. */
export const MANAGEMENT: readonly Plain[] = [
  object(`${HYPERSHIFT} HostedCluster`, 'prod', {
    metadata: { namespace: 'clusters', generation: 1 },
    spec: {
      pullSecret: { name: 'prod-pull-secret' },
      release: { image: 'quay.io/openshift-release-dev/ocp-release:4.20.6-x86_64' },
      imageContentSources: [{ source: 'quay.io/team', mirrors: ['m.io/team'] }],
    },
    status: { conditions: [{ type: 'Available', status: 'True', reason: 'AsExpected' }] },
  }),
  object(`${HYPERSHIFT} HostedControlPlane`, 'prod', {
    metadata: {
      namespace: 'clusters-prod',
      annotations: { 'hypershift.openshift.io/cluster': 'clusters/prod' },
    },
    spec: { pullSecret: { name: 'pull-secret' }, platform: { type: 'AWS' } },
  }),
  object(`${HYPERSHIFT} NodePool`, 'prod', {
    metadata: { namespace: 'clusters' },
    spec: {
      clusterName: 'prod',
      replicas: 2,
      config: [{ name: 'a' }],
      platform: { type: 'AWS' },
      management: { upgradeType: 'Replace' },
    },
    status: { conditions: [{ type: 'UpdatingConfig', status: 'False', observedGeneration: 1 }] },
  }),
  pullSecret('clusters-prod', 'pull-secret', ['quay.io']),
  pullSecret('clusters', 'prod-pull-secret', ['quay.io']),
  object('apps/v1 Deployment', 'control-plane-operator', {
    metadata: { namespace: 'clusters-prod', labels: { app: 'control-plane-operator' } },
    spec: {
      template: {
        spec: {
          containers: [
            {
              name: 'control-plane-operator',
              image: IMAGE,
              args: ['run', '--registry-overrides=quay.io=m.io'],
              env: [{ name: 'OPENSHIFT_IMG_OVERRIDES', value: 'quay.io=m.io' }],
            },
          ],
        },
      },
    },
  }),
  object('cluster.x-k8s.io/v1beta1 Machine', 'm1', {
    metadata: {
      namespace: 'clusters-prod',
      annotations: { 'hypershift.openshift.io/nodePool': 'clusters/prod' },
    },
    status: { nodeRef: { name: 'n1' } },
  }),
];

/** What was made by earlier runs, and its marks. */
export const MADE: readonly Plain[] = [
  pullSecret('kube-system', 'global-pull-secret', ['quay.io'], {
    labels: { 'pullwright.dev/owner': 'global-pull-secret', 'app.kubernetes.io/part-of': 'pullwright' },
    annotations: { 'pullwright.dev/key': '{"scope":"local","name":"local"}' },
    managedFields: [
      {
        manager: 'pullwright-global-pull-secret',
        operation: 'Apply',
        fieldsV1: { 'f:data': { 'f:.dockerconfigjson': {} }, 'f:metadata': { 'f:labels': { 'f:a': {} } } },
      },
    ],
  }),
  object('pullwright.dev/v1alpha1 PullStatus', 'secret.additional-pull-secret', {
    metadata: { namespace: 'kube-system' },
    spec: {},
    status: {
      conditions: [{ type: 'Ready', status: 'True', reason: 'Merged' }],
      entries: [{ registry: 'quay.io', verdict: 'Used' }],
    },
  }),
  object('apps/v1 DaemonSet', 'global-pull-secret-syncer', {
    metadata: {
      namespace: 'kube-system',
      generation: 1,
      labels: { 'app.kubernetes.io/part-of': 'pullwright' },
    },
    spec: {
      template: {
        spec: { containers: [{ name: 'agent', image: IMAGE, command: ['/usr/bin/pullwright', 'agent'] }] },
      },
    },
    status: { desiredNumberScheduled: 1, numberReady: 1, observedGeneration: 1 },
  }),
];

export function listOf(objects: readonly Plain[]): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
}
