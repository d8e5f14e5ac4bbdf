/** What is installed once per management cluster: identities, rights, the Deployments of adapter and Sentinel, what watches them. */

import { createHash } from 'node:crypto';
import { basename, dirname } from 'node:path';
import { stringify } from 'yaml';
import type { KubeObject, ObjectMeta } from '../../runtime/core/kubernetes/object.ts';
import {
  configMap,
  deployment,
  type Egress,
  type EnvVar,
  HARDENED_CONTAINER,
  HARDENED_POD,
  labels,
  type NetworkSettings,
  namespaceReference,
  networkPolicy,
  podDisruptionBudget,
  selectorLabels,
  service,
  serviceAccount,
  type Volume,
  type VolumeMount,
} from '../../runtime/core/kubernetes/objects.ts';
import {
  authoritiesOfPod,
  FEDERATION_CONFIG,
  FEDERATION_KEY,
  federationCredentials,
} from '../../runtime/pull-secret-adapter/objects.ts';
import {
  type AdapterOptions,
  adapterOptionArgs,
  DEFAULT_SETTINGS,
  fieldArgs,
  TENANTS_FILE,
} from '../../runtime/pull-secret-adapter/options.ts';
import {
  MESSAGES_FILE,
  messagesOf,
  type SentinelInput,
  sentinelArgs,
} from '../../runtime/pull-secret-adapter/sentinel/options.ts';
import { prometheusRule, serviceMonitor } from '../shared/monitoring.ts';
import { adapterRights, toldOfJobs } from './access.ts';
import { adapterAlerts } from './alerts.ts';

/** The section, as it is written. */
export interface PullSecretAdapterInput {
  /** Base URL of the HyperFleet API. */
  readonly api: string;
  /** @default {'rabbitmq'} */
  readonly broker?: 'rabbitmq' | 'pubsub';
  /** Secret whose key `url` holds the URL of RabbitMQ. @default {'pull-secret-adapter-broker'} */
  readonly brokerSecret?: string;
  /** Secret whose key `token` holds the bearer token of the HyperFleet API, for adapter and Sentinel. @default none */
  readonly apiTokenSecret?: string;
  /** Audience of a token of the pods' own ServiceAccounts, in place of `apiTokenSecret`. @default none: no authentication */
  readonly apiTokenAudience?: string;
  /** ConfigMap whose key `ca.crt` holds further authorities to trust, for adapter, Sentinel and Jobs. @default those of the image */
  readonly caConfigMap?: string;
  /** Project of Pub/Sub. */
  readonly gcpProject?: string;
  /** @default {'hyperfleet-clusters'} */
  readonly topic?: string;
  /** @default {'pullsecret'} */
  readonly subscription?: string;
  /** Exchange of RabbitMQ. @default the topic */
  readonly exchange?: string;
  /** Type of the exchange. @default {'topic'} */
  readonly exchangeType?: 'topic' | 'fanout' | 'direct';
  /** Routing key of RabbitMQ. @default {''} */
  readonly routingKey?: string;
  /** Make topics and subscription of Pub/Sub when they are missing. @default {false} */
  readonly createTopics?: boolean;
  /** Namespace of adapter and Jobs. @default {'hyperfleet-system'} */
  readonly namespace?: string;
  /** @default {2} */
  readonly replicas?: number;
  /** Google service account of the Jobs, for Workload Identity: this or `jobFederation`. */
  readonly jobGoogleServiceAccount?: string;
  /**
   * Full name of the provider of a workload identity pool that knows the tokens of this cluster, where there is no metadata server:
   * `projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER`.
   */
  readonly jobFederation?: string;
  /** Google service account of adapter and Sentinel, for Pub/Sub. */
  readonly googleServiceAccount?: string;
  /** Whether Sentinel is installed too. @default {false} */
  readonly sentinel?: boolean;
  /** How Sentinel decides, with `sentinel: true`. @default as `pullwright sentinel --help` says */
  readonly sentinelOptions?: SentinelInput;
  /** Whether a PrometheusRule is rendered. @default {true} */
  readonly alerts?: boolean;
  /** How the adapter works. @default as `pullwright adapter --help` says */
  readonly adapterOptions?: AdapterOptions;
  /** Further flags of `pullwright adapter`. @default {[]} */
  readonly args?: readonly string[];
  /** TCP ports that the pods may reach beside 80, 443, 988, 6443, those of RabbitMQ and of the API: a proxy's. @default {[]} */
  readonly egressPorts?: readonly number[];
}

/** What is not written in the section. */
export interface AdapterInstallation extends PullSecretAdapterInput {
  readonly image: string;
  /** Secrets in `namespace` that the Jobs pull it with; the pods of adapter and Sentinel get theirs with every other pod. @default none */
  readonly imagePullSecrets?: readonly string[];
  readonly network?: NetworkSettings;
}

const DEFAULTS = {
  broker: 'rabbitmq',
  brokerSecret: 'pull-secret-adapter-broker',
  topic: 'hyperfleet-clusters',
  subscription: 'pullsecret',
  namespace: DEFAULT_SETTINGS.namespace,
  replicas: 2,
  adapterOptions: {},
  sentinelOptions: {},
  alerts: true,
} as const;

type Installation = AdapterInstallation & Required<Pick<AdapterInstallation, keyof typeof DEFAULTS>>;

// What the pods of adapter and Sentinel find in their file system: credentials, authorities, the list of tenants.

/** A ConfigMap with one file, for one of the two programs. */
interface ConfigFile {
  readonly config: string;
  readonly volume: string;
  readonly path: string;
  readonly text: string;
}

interface PodFiles {
  readonly env: readonly EnvVar[];
  readonly mounts: readonly VolumeMount[];
  readonly volumes: readonly Volume[];
}

function podFiles(input: Installation, own: ConfigFile | undefined): PodFiles {
  const { broker, brokerSecret, caConfigMap } = input;
  const sources: readonly Volume[] = [
    ...(broker === 'rabbitmq' ? [secretVolume('broker', brokerSecret)] : []),
    ...apiVolumes(input),
  ];
  const mounted = (name: string, mountPath: string): VolumeMount => ({ name, mountPath, readOnly: true });
  const authorities =
    caConfigMap === undefined ? { env: [], mounts: [], volumes: [] } : authoritiesOfPod(caConfigMap);
  return {
    env: authorities.env,
    mounts: [
      ...sources.map(({ name }) => mounted(name, `/etc/pullwright/${name}`)),
      ...authorities.mounts,
      ...(own === undefined ? [] : [mounted(own.volume, dirname(own.path))]),
    ],
    volumes: [
      ...sources,
      ...authorities.volumes,
      ...(own === undefined ? [] : [{ name: own.volume, configMap: { name: own.config } }]),
    ],
  };
}

/** Readable by any user that the platform gives the pod: no other user runs in it. */
function secretVolume(name: string, secretName: string): Volume {
  return { name, secret: { secretName, defaultMode: 0o444 } };
}

function apiVolumes({ apiTokenSecret, apiTokenAudience: audience }: Installation): readonly Volume[] {
  if (apiTokenSecret !== undefined) return [secretVolume('api', apiTokenSecret)];
  if (audience === undefined) return [];
  const token = { serviceAccountToken: { audience, expirationSeconds: 3600, path: 'token' } };
  return [{ name: 'api', projected: { sources: [token], defaultMode: 0o444 } }];
}

/** What the fleet says in a file, if it says anything. */
function configFile(
  text: unknown,
  program: Pick<ConfigFile, 'config' | 'volume' | 'path'>,
): ConfigFile | undefined {
  return text === undefined
    ? undefined
    : { ...program, text: stringify(text, { sortMapEntries: true, lineWidth: 0 }) };
}

export const ADAPTER_ACCOUNT = 'pull-secret-adapter';
export const JOB_ACCOUNT = 'pullsecret-adapter-job';
const SENTINEL_ACCOUNT = 'pull-secret-sentinel';
/** AMQP with and without TLS. */
const BROKER_PORTS = [5671, 5672];
/** The metadata server: Google's own address, and the one that GKE puts in its place. */
const METADATA_PORTS = [80, 988];
const API_SERVER_PORTS = [443, 6443];

/** Every object, in the order in which it can be applied. */
export function adapterInstallation(section: AdapterInstallation): readonly KubeObject[] {
  const input: Installation = { ...DEFAULTS, ...section };
  const { namespace, sentinel: withSentinel = false } = input;
  const tenants = { config: 'pull-secret-adapter-tenants', volume: 'tenants', path: TENANTS_FILE };
  const adapter: Program = {
    ...namesOf(input, ADAPTER_ACCOUNT, 'adapter'),
    replicas: input.replicas,
    args: adapterArgs(input),
    file: configFile(input.adapterOptions.tenants, tenants),
  };
  const messages = { config: 'pull-secret-sentinel-messages', volume: 'messages', path: MESSAGES_FILE };
  const sentinel: Program = {
    ...namesOf(input, SENTINEL_ACCOUNT, 'sentinel'),
    replicas: 1,
    args: ['sentinel', ...brokerArgs(input), ...sentinelArgs(input.sentinelOptions)],
    file: configFile(messagesOf(input.sentinelOptions), messages),
  };
  return [
    // Usually there already: HyperFleet's other adapters live in it.
    namespaceReference(namespace),
    ...accounts(input),
    ...adapterRights({
      namespace,
      account: ADAPTER_ACCOUNT,
      image: input.image,
      jobAccount: JOB_ACCOUNT,
      told: toldOfJobs(adapter.args),
      // They name the Secret that the Jobs write.
      pullSecretName: input.adapterOptions.pullSecretName ?? DEFAULT_SETTINGS.pullSecretName,
      labels: adapter.metadata.labels,
      jobLabels: labels({ name: JOB_ACCOUNT, component: 'job' }),
    }),
    ...(input.jobFederation === undefined ? [] : [credentials(namespace, input.jobFederation)]),
    ...programObjects(input, adapter),
    ...(withSentinel ? programObjects(input, sentinel) : []),
    jobNetworkPolicy(input),
    ...(input.alerts ? [prometheusRule(adapter.metadata, adapterAlerts(namespace, withSentinel))] : []),
  ];
}

/** Names and labels of a program. The component label distinguishes the adapter's pods from those of Jobs, which have the same name label. */
interface Names {
  readonly metadata: ObjectMeta & {
    readonly namespace: string;
    readonly labels: NonNullable<ObjectMeta['labels']>;
  };
  readonly selector: Readonly<Record<string, string>>;
}

/** One of the two programs. */
interface Program extends Names {
  readonly replicas: number;
  readonly args: readonly string[];
  readonly file: ConfigFile | undefined;
}

function namesOf({ namespace }: Installation, name: string, component: string): Names {
  const names = { name, component };
  return { metadata: { name, namespace, labels: labels(names) }, selector: selectorLabels(names) };
}

function accounts(input: Installation): readonly KubeObject[] {
  const account = (name: string, component: string, google: string | undefined): KubeObject =>
    serviceAccount({
      ...namesOf(input, name, component).metadata,
      ...(google === undefined ? {} : { annotations: { 'iam.gke.io/gcp-service-account': google } }),
    });
  return [
    account(ADAPTER_ACCOUNT, 'adapter', input.googleServiceAccount),
    account(JOB_ACCOUNT, 'job', input.jobGoogleServiceAccount),
    ...(input.sentinel === true ? [account(SENTINEL_ACCOUNT, 'sentinel', input.googleServiceAccount)] : []),
  ];
}

function credentials(namespace: string, provider: string): KubeObject {
  const metadata = {
    name: FEDERATION_CONFIG,
    namespace,
    labels: labels({ name: JOB_ACCOUNT, component: 'job' }),
  };
  const text = JSON.stringify(federationCredentials(provider), null, 2);
  return configMap(metadata, { [FEDERATION_KEY]: `${text}\n` });
}

function brokerArgs(input: Installation): readonly string[] {
  return [
    ...fieldArgs(['api', 'broker', 'topic', 'subscription', 'gcpProject'], input),
    ...(input.broker === 'rabbitmq' ? ['--broker-url-file', '/etc/pullwright/broker/url'] : []),
    ...(input.apiTokenSecret === undefined && input.apiTokenAudience === undefined
      ? []
      : ['--api-token-file', '/etc/pullwright/api/token']),
    ...fieldArgs(['exchange', 'exchangeType', 'routingKey', 'createTopics'], input),
  ];
}

function adapterArgs(input: Installation): readonly string[] {
  return [
    'adapter',
    ...brokerArgs(input),
    '--namespace',
    input.namespace,
    '--image',
    input.image,
    ...(input.imagePullSecrets ?? []).flatMap((name) => ['--image-pull-secret', name]),
    ...(input.jobFederation === undefined ? [] : ['--job-federation', input.jobFederation]),
    ...(input.caConfigMap === undefined ? [] : ['--job-ca', input.caConfigMap]),
    ...adapterOptionArgs(input.adapterOptions),
    ...(input.args ?? []),
  ];
}

function programObjects(input: Installation, program: Program): readonly KubeObject[] {
  const { metadata, selector, replicas, file } = program;
  // The file is read when the program starts: another text is another pod.
  const podAnnotations = file && {
    [`pullwright.dev/${file.volume}`]: createHash('sha256').update(file.text).digest('hex').slice(0, 16),
  };
  const { name: _, ...common } = metadata;
  return [
    ...(file === undefined
      ? []
      : [configMap({ ...common, name: file.config }, { [basename(file.path)]: file.text })]),
    deployment({
      metadata,
      selector,
      replicas,
      pod: pod(input, program),
      ...(podAnnotations && { podAnnotations }),
    }),
    ...(replicas > 1 ? [podDisruptionBudget(metadata, selector)] : []),
    networkPolicy({
      metadata,
      selector,
      ingress: [{ ports: ['metrics'], from: 'monitoring' }],
      egress: egress(input, [...BROKER_PORTS, portOf(input.api)]),
      network: input.network,
    }),
    service(metadata, selector, [{ name: 'metrics', port: 9090, targetPort: 'metrics' }]),
    ...(input.alerts ? [serviceMonitor(metadata, selector)] : []),
  ];
}

function pod(
  input: Installation,
  { metadata: { name }, args, file }: Program,
): Parameters<typeof deployment>[0]['pod'] {
  const probe = (path: string) => ({ httpGet: { path, port: 'health' } });
  const { env, mounts, volumes } = podFiles(input, file);
  return {
    serviceAccountName: name,
    automountServiceAccountToken: name === ADAPTER_ACCOUNT,
    enableServiceLinks: false,
    securityContext: HARDENED_POD,
    terminationGracePeriodSeconds: 30,
    containers: [
      {
        name: 'main',
        image: input.image,
        imagePullPolicy: 'IfNotPresent',
        args,
        ports: [
          { name: 'health', containerPort: 8080 },
          { name: 'metrics', containerPort: 9090 },
        ],
        livenessProbe: { ...probe('/healthz'), periodSeconds: 10 },
        readinessProbe: { ...probe('/readyz'), periodSeconds: 5 },
        resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '512Mi' } },
        securityContext: HARDENED_CONTAINER,
        terminationMessagePolicy: 'FallbackToLogsOnError',
        ...(env.length === 0 ? {} : { env }),
        ...(mounts.length === 0 ? {} : { volumeMounts: mounts }),
      },
    ],
    ...(volumes.length === 0 ? {} : { volumes }),
  };
}

/** Of the pods of Jobs: no ingress. */
function jobNetworkPolicy(input: Installation): KubeObject {
  return networkPolicy({
    metadata: {
      name: JOB_ACCOUNT,
      namespace: input.namespace,
      labels: labels({ name: JOB_ACCOUNT, component: 'job' }),
    },
    selector: { 'hyperfleet.io/adapter': 'pullsecret', 'hyperfleet.io/resource-type': 'job' },
    ingress: [],
    egress: egress(input, []),
    network: input.network,
  });
}

function egress(input: Installation, more: readonly number[]): readonly Egress[] {
  const ports = [...API_SERVER_PORTS, ...more, ...(input.egressPorts ?? [])];
  return [
    { ports: [...new Set(ports)].sort((a, b) => a - b), to: 'named' },
    { ports: METADATA_PORTS, to: 'metadata' },
  ];
}

function portOf(url: string): number {
  const { port, protocol } = new URL(url);
  return port === '' ? (protocol === 'http:' ? 80 : 443) : Number(port);
}
