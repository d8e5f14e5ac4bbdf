/**
 * The section `systems.pull-secret-adapter` of a fleet, and a construct for other charts. Installed once per management cluster:
 * ServiceAccounts, RBAC, the Deployments of adapter and Sentinel, and their monitoring.
 */

import { hash } from 'node:crypto';
import { basename, dirname } from 'node:path';
import type { Construct } from 'constructs';
import { stringify } from 'yaml';
import { z } from 'zod';
import { type Frozen, optional } from '../../runtime/core/kubernetes/fields.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import {
  configMap,
  deployment,
  type Egress,
  labels,
  namespaceReference,
  networkPolicy,
  type PodSpec,
  podDisruptionBudget,
  selectorLabels,
  service,
  serviceAccount,
  type Volume,
} from '../../runtime/core/kubernetes/objects.ts';
import { defined } from '../../runtime/core/record.ts';
import { jsonText } from '../../runtime/core/text.ts';
import {
  authoritiesOfPod,
  FEDERATION_CONFIG,
  FEDERATION_KEY,
  federationCredentials,
  joinedParts,
  mountedAt,
  NO_PARTS,
  type PodParts,
  PROVIDER,
} from '../../runtime/pull-secret-adapter/objects.ts';
import {
  adapterOptionArgs,
  DEFAULT_SETTINGS,
  fieldArgs,
  optionsSchema,
  TENANTS_FILE,
} from '../../runtime/pull-secret-adapter/options.ts';
import {
  MESSAGES_FILE,
  messagesOf,
  sentinelArgs,
  sentinelSchema,
} from '../../runtime/pull-secret-adapter/sentinel/options.ts';
import { ObjectGroup } from '../shared/group.ts';
import { prometheusRule, serviceMonitor } from '../shared/monitoring.ts';
import { namedPorts, ownPod } from '../shared/pod.ts';
import type { ChartSystem, ClusterContext } from '../shared/system.ts';
import { ADAPTER_ACCOUNT, adapterRights, JOB_ACCOUNT } from './access.ts';
import { adapterAlerts } from './alerts.ts';

const name = z.string().regex(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/);

/** The section as written in the fleet file. */
export const schema = z
  .strictObject({
    api: z.url({ protocol: /^https?$/ }).describe('Base URL of the HyperFleet API'),
    ...optional({
      broker: z.enum(['rabbitmq', 'pubsub']).describe('Broker of the events'),
      brokerSecret: name.describe('Secret with the URL of RabbitMQ in key "url"'),
      apiTokenSecret: name.describe('Secret with the bearer token of the HyperFleet API in key "token"'),
      apiTokenAudience: z
        .string()
        .min(1)
        .max(500)
        .describe("Audience of a token of the pods' own ServiceAccounts"),
      caConfigMap: name.describe('ConfigMap with additional CAs to trust, in key "ca.crt"'),
      exchange: z.string().min(1).max(255).describe('Exchange of RabbitMQ'),
      exchangeType: z.enum(['topic', 'fanout', 'direct']).describe('Type of the exchange'),
      routingKey: z.string().max(255).describe('Routing key of RabbitMQ'),
      createTopics: z.boolean().describe('Whether to create missing Pub/Sub topics and subscription'),
      gcpProject: z.string().min(1).max(100).describe('Project of Pub/Sub'),
      topic: z.string().min(1).max(255).describe('Topic, and exchange of RabbitMQ'),
      subscription: z.string().min(1).max(255).describe('Subscription; suffix of the queue name'),
      namespace: name.describe('Namespace of adapter and Jobs'),
      replicas: z.int().min(1).max(10).describe('Replicas of the adapter'),
      jobGoogleServiceAccount: z
        .string()
        .min(1)
        .max(320)
        .describe('Google service account of the Jobs: this or jobFederation'),
      jobFederation: z
        .string()
        .regex(PROVIDER, {
          error:
            'expected projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER, as gcloud shows it',
        })
        .describe('Workload identity pool provider that authenticates the Jobs'),
      googleServiceAccount: z.string().min(1).max(320).describe('Google service account of the adapter'),
      sentinel: z.boolean().describe('Whether Sentinel is installed too'),
      sentinelOptions: sentinelSchema.describe('Options of Sentinel'),
      adapterOptions: optionsSchema.describe('Options of the adapter'),
      alerts: z.boolean().describe('Whether a PrometheusRule is rendered'),
      logLevel: z.enum(['debug', 'info', 'warn', 'error']).describe('What the adapter logs; default info'),
      logFormat: z.enum(['json', 'logfmt']).describe('Form of its log lines; default json'),
      egressPorts: z
        .array(z.int().min(1).max(65_535))
        .max(20)
        .describe('Additional TCP ports that the pods may reach'),
    }),
  })
  .refine(
    (section) => (section.jobGoogleServiceAccount === undefined) !== (section.jobFederation === undefined),
    {
      path: ['jobGoogleServiceAccount'],
      error: 'The Jobs need one identity: expected jobGoogleServiceAccount or jobFederation',
    },
  )
  .refine((section) => section.sentinelOptions === undefined || section.sentinel === true, {
    path: ['sentinelOptions'],
    error: 'Sentinel is not installed: expected sentinel: true beside it',
  })
  .refine((section) => section.apiTokenSecret === undefined || section.apiTokenAudience === undefined, {
    path: ['apiTokenAudience'],
    error: 'Only one token is allowed: expected apiTokenSecret or apiTokenAudience',
  })
  .refine((section) => section.broker !== 'pubsub' || section.gcpProject !== undefined, {
    path: ['gcpProject'],
    error: 'Pub/Sub needs its project: expected gcpProject',
  });

export type PullSecretAdapterInput = Frozen<z.input<typeof schema>>;

/** The section with values of its cluster. */
export interface AdapterInstallation
  extends PullSecretAdapterInput,
    Pick<ClusterContext, 'image' | 'network'> {
  /** imagePullSecrets of the Jobs, in `namespace`; adapter and Sentinel pods get theirs like all other pods. @default none */
  readonly imagePullSecrets?: readonly string[];
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

// Files in the pods of adapter and Sentinel: credentials, CAs, the list of tenants.

function podFiles(input: Installation, own: Program['file']): PodParts {
  const { broker, brokerSecret, caConfigMap } = input;
  const sources: readonly Volume[] = [
    ...(broker === 'rabbitmq' ? [secretVolume('broker', brokerSecret)] : []),
    ...apiVolumes(input),
  ];
  return joinedParts(
    ...sources.map((volume) => mountedAt(`/etc/pullwright/${volume.name}`, volume)),
    caConfigMap === undefined ? NO_PARTS : authoritiesOfPod(caConfigMap),
    own === undefined
      ? NO_PARTS
      : mountedAt(dirname(own.path), { name: own.volume, configMap: { name: own.config } }),
  );
}

/** World-readable: the platform may assign any user to the pod, and no other user runs in it. */
function secretVolume(name: string, secretName: string): Volume {
  return { name, secret: { secretName, defaultMode: 0o444 } };
}

function apiVolumes({ apiTokenSecret, apiTokenAudience: audience }: Installation): readonly Volume[] {
  if (apiTokenSecret !== undefined) return [secretVolume('api', apiTokenSecret)];
  if (audience === undefined) return [];
  const token = { serviceAccountToken: { audience, expirationSeconds: 3600, path: 'token' } };
  return [{ name: 'api', projected: { sources: [token], defaultMode: 0o444 } }];
}

/** A ConfigMap with one file, for the adapter or Sentinel; undefined when the fleet does not set it. */
function configFile(account: string, volume: string, path: string, content: unknown) {
  if (content === undefined) return undefined;
  const text = stringify(content, { sortMapEntries: true, lineWidth: 0 });
  return { config: `${account}-${volume}`, volume, path, text };
}

const SENTINEL_ACCOUNT = 'pull-secret-sentinel';
/** AMQP with and without TLS. */
const BROKER_PORTS = [5671, 5672];
/** The metadata server: Google's own port, and GKE's replacement. */
const METADATA_PORTS = [80, 988];
const API_SERVER_PORTS = [443, 6443];

/** Returns all objects in apply order. */
export function adapterInstallation(section: AdapterInstallation): readonly KubeObject[] {
  const input: Installation = { ...DEFAULTS, ...section };
  const { namespace, sentinel: withSentinel = false } = input;
  const adapter: Program = {
    ...namesOf(input, ADAPTER_ACCOUNT, 'adapter'),
    replicas: input.replicas,
    args: adapterArgs(input),
    file: configFile(ADAPTER_ACCOUNT, 'tenants', TENANTS_FILE, input.adapterOptions.tenants),
  };
  const sentinel: Program = {
    ...namesOf(input, SENTINEL_ACCOUNT, 'sentinel'),
    replicas: 1,
    args: ['sentinel', ...brokerArgs(input), ...sentinelArgs(input.sentinelOptions)],
    file: configFile(SENTINEL_ACCOUNT, 'messages', MESSAGES_FILE, messagesOf(input.sentinelOptions)),
  };
  return [
    // Usually exists: HyperFleet's other adapters run in it.
    namespaceReference(namespace),
    ...accounts(input),
    ...adapterRights(
      {
        namespace,
        image: input.image,
        environment: input.adapterOptions.jobEnv ?? {},
        jobAuthorities: input.caConfigMap ?? '',
        federation: input.jobFederation ?? '',
      },
      input.adapterOptions.pullSecretName ?? DEFAULT_SETTINGS.pullSecretName,
    ),
    ...(input.jobFederation === undefined ? [] : [credentials(input, input.jobFederation)]),
    ...programObjects(input, adapter),
    ...(withSentinel ? programObjects(input, sentinel) : []),
    // Pods of Jobs have no ingress.
    networkPolicy({
      metadata: namesOf(input, JOB_ACCOUNT, 'job').metadata,
      selector: { 'hyperfleet.io/adapter': 'pullsecret', 'hyperfleet.io/resource-type': 'job' },
      ingress: [],
      egress: egress(input, []),
      network: input.network,
    }),
    ...(input.alerts ? [prometheusRule(adapter.metadata, adapterAlerts(namespace, withSentinel))] : []),
  ];
}

/** The adapter or Sentinel. */
interface Program extends ReturnType<typeof namesOf> {
  readonly replicas: number;
  readonly args: readonly string[];
  readonly file: ReturnType<typeof configFile>;
}

/** The component label distinguishes the adapter's pods from Job pods, which share the name label. */
function namesOf({ namespace }: Installation, name: string, component: string) {
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

function credentials(input: Installation, provider: string): KubeObject {
  const { metadata } = namesOf(input, JOB_ACCOUNT, 'job');
  return configMap(
    { ...metadata, name: FEDERATION_CONFIG },
    { [FEDERATION_KEY]: jsonText(federationCredentials(provider)) },
  );
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
    ...fieldArgs(['namespace', 'image'], input),
    ...(input.imagePullSecrets ?? []).flatMap((name) => ['--image-pull-secret', name]),
    ...fieldArgs(['jobFederation'], input),
    ...(input.caConfigMap === undefined ? [] : ['--job-ca', input.caConfigMap]),
    ...adapterOptionArgs(input.adapterOptions),
    ...fieldArgs(['logLevel', 'logFormat'], input),
  ];
}

function programObjects(input: Installation, program: Program): readonly KubeObject[] {
  const { metadata, selector, replicas, file } = program;
  // The program reads the file at startup, so a change must replace the pods.
  const podAnnotations = file && {
    [`pullwright.dev/${file.volume}`]: hash('sha256', file.text).slice(0, 16),
  };
  const { name: _, ...common } = metadata;
  return [
    ...(file === undefined
      ? []
      : [configMap({ ...common, name: file.config }, { [basename(file.path)]: file.text })]),
    deployment({ metadata, selector, replicas, pod: pod(input, program), podAnnotations }),
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

function pod(input: Installation, { metadata: { name }, args, file }: Program): PodSpec {
  const probe = (path: string) => ({ httpGet: { path, port: 'health' } });
  const { env, mounts, volumes } = podFiles(input, file);
  return ownPod(
    name,
    {
      name: 'main',
      image: input.image,
      args,
      ports: namedPorts({ health: 8080, metrics: 9090 }),
      livenessProbe: { ...probe('/healthz'), periodSeconds: 10 },
      readinessProbe: { ...probe('/readyz'), periodSeconds: 5 },
      resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '512Mi' } },
      ...(env.length === 0 ? {} : { env }),
      ...(mounts.length === 0 ? {} : { volumeMounts: mounts }),
    },
    {
      automountServiceAccountToken: name === ADAPTER_ACCOUNT,
      terminationGracePeriodSeconds: 30,
      ...(volumes.length === 0 ? {} : { volumes }),
    },
  );
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

/** Installs the adapter in one management cluster. */
export class PullSecretAdapter extends ObjectGroup {
  constructor(scope: Construct, id: string, props: PullSecretAdapterInput & { readonly image: string }) {
    super(scope, id, adapterInstallation(props));
  }
}

export const pullSecretAdapterSystem: ChartSystem<PullSecretAdapterInput, PullSecretAdapterInput> = {
  name: 'pull-secret-adapter',
  summary: 'Syncs pull secrets of HyperFleet clusters to Google Secret Manager and HyperShift',
  config: schema,
  kinds: ['management', 'standalone'],
  objects: (config, { image, imagePullSecrets = [], network }) =>
    adapterInstallation({ ...config, image, imagePullSecrets, ...defined({ network }) }),
};
