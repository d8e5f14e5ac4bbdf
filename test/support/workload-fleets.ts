/** Fleets that together render every workload of ours, with every option that reaches a pod. */
import { renderFleet } from '../../charts/app.ts';
import { readFleet } from '../../charts/fleet.ts';
import type { ClusterInput } from '../../charts/fleet-schema.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { agentDaemonSet } from '../../runtime/global-pull-secret/daemon-set.ts';
import { jobObject } from '../../runtime/pull-secret-adapter/adapter/resources.ts';
import { clusterDocument } from '../../runtime/pull-secret-adapter/cluster.ts';
import { type AdapterSettings, DEFAULT_SETTINGS } from '../../runtime/pull-secret-adapter/options.ts';

export const WORKLOAD_IMAGE = 'registry.example.com/pullwright/pullwright:0.1.0';
export const WORKLOAD_PULL_SECRET = 'image-pull';

const API = 'https://hyperfleet.example.com';
const PROVIDER = 'projects/1/locations/global/workloadIdentityPools/pool/providers/cluster';

/** Clusters by a name that says what is special about them. */
export const CLUSTERS: Readonly<Record<string, readonly ClusterInput[]>> = {
  defaults: [
    {
      name: 'a',
      systems: {
        'global-pull-secret': {},
        'pull-secret-injection': { admission: 'webhook', certificates: { kind: 'service-ca' } },
        'registry-overrides': {},
        'credential-provider': { installer: {} },
        'pull-secret-adapter': { api: API, jobGoogleServiceAccount: 'a@b.iam.gserviceaccount.com' },
        verify: { secretNames: ['pull-secret'] },
      },
    },
  ],
  options: [
    {
      name: 'a',
      reconciler: { replicas: 1, logFormat: 'logfmt', logLevel: 'debug', memoryLimit: '1Gi' },
      monitoring: true,
      systems: {
        'global-pull-secret': {
          agent: {
            image: 'registry.example.com/own/agent:1',
            shape: 'pullwright',
            security: 'restricted',
            seLinuxType: 'spc_t',
            foreign: 'keep',
            restart: 'on-removal',
            restartWindow: '1m',
            report: true,
            maxUnavailable: 1,
            priorityClassName: 'high',
            resources: { requests: { cpu: '1m' }, limits: { memory: '1Gi' } },
            tolerations: [{ operator: 'Exists' }],
            alsoNodes: [{ a: 'b' }],
            watch: true,
            metrics: { tlsSecret: 'agent-tls' },
            healthPort: 9999,
            logLevel: 'debug',
            janitor: true,
          },
        },
        'pull-secret-injection': {
          admission: 'webhook',
          certificates: { kind: 'cert-manager', issuer: { kind: 'Issuer', name: 'a' } },
          excludedNamespaces: ['b'],
          namespaces: ['a'],
          withoutContainers: true,
        },
        'credential-provider': {
          secretAnnotation: true,
          provider: { authDir: '/var/lib/auth', verbose: true },
          installer: { nodeSelector: { a: 'b' }, restartWindowSeconds: 1, report: true, metrics: true },
        },
        'pull-secret-adapter': {
          api: `${API}:8443`,
          apiTokenSecret: 'api-token',
          brokerSecret: 'broker',
          caConfigMap: 'authorities',
          adapterOptions: { tenants: { acme: ['acme-*'] }, adopt: true },
          replicas: 1,
          jobFederation: PROVIDER,
          sentinel: true,
          sentinelOptions: { rule: 'reconcile', labels: { a: 'b' }, pollSeconds: 1, maxAgeSeconds: 60 },
          logLevel: 'debug',
          logFormat: 'logfmt',
        },
        verify: {
          namespaces: ['web'],
          namespaceSecrets: true,
          allowHosts: ['a.example.com'],
          allowAddresses: ['10.1.0.0/16'],
          plainHosts: ['b.example.com:5000'],
          caConfigMap: 'registry-ca',
          warnDays: 3,
          concurrency: 2,
          suspend: true,
        },
      },
    },
  ],
  others: [
    {
      name: 'a',
      systems: {
        'global-pull-secret': {
          agent: { watch: false, restart: 'never', report: false },
        },
        'pull-secret-injection': { admission: 'webhook', certificates: { kind: 'manual', caBundle: 'YQ==' } },
        'credential-provider': { installer: { uninstall: true } },
        'pull-secret-adapter': {
          api: API,
          apiTokenAudience: 'hyperfleet',
          broker: 'pubsub',
          gcpProject: 'p',
          topic: 't',
          subscription: 's',
          sentinel: true,
          googleServiceAccount: 'c@d.iam.gserviceaccount.com',
          jobGoogleServiceAccount: 'a@b.iam.gserviceaccount.com',
        },
      },
    },
  ],
  fleet: [
    {
      name: 'hub',
      kind: 'management',
      discovery: true,
      systems: { 'global-pull-secret': {}, 'registry-overrides': {} },
    },
    {
      name: 'a',
      kind: 'hosted',
      management: 'hub',
      systems: {
        'global-pull-secret': {},
        'pull-secret-injection': { admission: 'webhook' },
        'credential-provider': { matchImages: ['docker.io'] },
      },
    },
  ],
};

/** Options of sections that reach no pod: other objects, or what the reconciler reads in its configuration. */
export const NO_POD: readonly RegExp[] = [
  /^global-pull-secret\.(source|enforce|mode|platforms|nodes|removals|createConfigNamespace)\b/,
  /^pull-secret-injection\.(trustedLabelKeys|secretNames|audit|sidecarSetCrd|profiles|removals)\b/,
  /^registry-overrides\./,
  /^credential-provider\.(matchImages|crd|nodeAccess|namespaces|alerts|mode|createConfigNamespace|executable\.pools)$/,
  // One list of arguments, rendered by one function from a table of flags; what mounts follow is named above.
  /^credential-provider\.provider\./,
  /^pull-secret-adapter\.(namespace|alerts|egressPorts)$/,
  // Flags, rendered by one function.
  /^pull-secret-adapter\.(sentinelOptions\.|adapterOptions\.(?!tenants)|exchange|exchangeType|routingKey|createTopics)/,
  /^verify\.(schedule|egressPorts)$/,
];

/** Everything that the fleet of this name renders, its clusters together. */
export function renderedBy(name: string): readonly KubeObject[] {
  const fleet = readFleet({
    image: WORKLOAD_IMAGE,
    imagePullSecrets: [WORKLOAD_PULL_SECRET],
    clusters: CLUSTERS[name] ?? [],
  });
  return renderFleet(fleet).clusters.flatMap(({ objects }) => objects);
}

/** Workloads that no fleet renders: the agent as the reconciler applies it, and the Jobs of the adapter. */
export function madeAtRunTime(): Readonly<Record<string, readonly KubeObject[]>> {
  const own = { image: WORKLOAD_IMAGE, imagePullSecrets: [WORKLOAD_PULL_SECRET] };
  const job = (
    purpose: 'store' | 'delete',
    settings: Partial<AdapterSettings> = {},
  ): readonly KubeObject[] => [
    jobObject({ cluster: cluster(), settings: { ...DEFAULT_SETTINGS, ...own, ...settings } }, TASK(purpose)),
  ];
  return {
    'applied by the reconciler': [agentDaemonSet(own)],
    'stores from a file': job('store'),
    'stores from a variable': job('store', { passAs: 'env', managementNamespace: '' }),
    'stores with federation': job('store', { federation: PROVIDER }),
    'stores with authorities': job('store', { jobAuthorities: 'authorities' }),
    deletes: job('delete'),
  };
}

const TASK = (purpose: 'store' | 'delete') => ({
  job: `pullsecret-cls-1-${purpose}`,
  purpose,
  attempt: 1,
  places: ['projects/p/secrets/s', 'namespaces/clusters-cls-1/secrets/pull-secret'],
});

function cluster() {
  const spec = { provider: 'gcp', gcp: { projectId: 'p' }, pullSecret: { data: '{"auths":{}}' } };
  return clusterDocument.parse({ id: 'cls-1', name: 'one', generation: 1, spec });
}
