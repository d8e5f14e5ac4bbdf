/** The section `systems.pull-secret-adapter` of a fleet, and a construct for charts of one's own. */
import type { Construct } from 'constructs';
import { z } from 'zod';
import { PROVIDER } from '../../runtime/pull-secret-adapter/objects.ts';
import { type AdapterOptions, optionsSchema } from '../../runtime/pull-secret-adapter/options.ts';
import { type SentinelInput, sentinelSchema } from '../../runtime/pull-secret-adapter/sentinel/options.ts';
import { ObjectGroup } from '../shared/group.ts';
import type { ChartSystem } from '../shared/system.ts';
import { type AdapterInstallation, adapterInstallation } from './installation.ts';

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
  /** How a report is sent. @default {'auto'} */
  readonly statusMethod?: 'auto' | 'PUT' | 'POST';
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

const name = z.string().regex(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/);

export const schema: z.ZodType<PullSecretAdapterInput, PullSecretAdapterInput> = z
  .strictObject({
    api: z.url({ protocol: /^https?$/ }).describe('Base URL of the HyperFleet API'),
    broker: z.enum(['rabbitmq', 'pubsub']).exactOptional().describe('Where events come from'),
    brokerSecret: name.exactOptional().describe('Secret whose key "url" holds the URL of RabbitMQ'),
    apiTokenSecret: name
      .exactOptional()
      .describe('Secret whose key "token" holds the bearer token of the HyperFleet API'),
    apiTokenAudience: z
      .string()
      .min(1)
      .max(500)
      .exactOptional()
      .describe("Audience of a token of the pods' own ServiceAccounts"),
    caConfigMap: name
      .exactOptional()
      .describe('ConfigMap whose key "ca.crt" holds further authorities to trust'),
    statusMethod: z.enum(['auto', 'PUT', 'POST']).exactOptional().describe('How a report is sent'),
    exchange: z.string().min(1).max(255).exactOptional().describe('Exchange of RabbitMQ'),
    exchangeType: z.enum(['topic', 'fanout', 'direct']).exactOptional().describe('Type of the exchange'),
    routingKey: z.string().max(255).exactOptional().describe('Routing key of RabbitMQ'),
    createTopics: z
      .boolean()
      .exactOptional()
      .describe('Whether topics and subscription of Pub/Sub are made when they are missing'),
    gcpProject: z.string().min(1).max(100).exactOptional().describe('Project of Pub/Sub'),
    topic: z.string().min(1).max(255).exactOptional().describe('Topic, and exchange of RabbitMQ'),
    subscription: z
      .string()
      .min(1)
      .max(255)
      .exactOptional()
      .describe("Subscription, and end of the queue's name"),
    namespace: name.exactOptional().describe('Namespace of adapter and Jobs'),
    replicas: z.int().min(1).max(10).exactOptional().describe('Replicas of the adapter'),
    jobGoogleServiceAccount: z
      .string()
      .min(1)
      .max(320)
      .exactOptional()
      .describe('Google service account of the Jobs: this or jobFederation'),
    jobFederation: z
      .string()
      .regex(PROVIDER, {
        error:
          'expected projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER, as gcloud shows it',
      })
      .exactOptional()
      .describe('Provider of a workload identity pool that the Jobs come from'),
    googleServiceAccount: z
      .string()
      .min(1)
      .max(320)
      .exactOptional()
      .describe('Google service account of the adapter'),
    sentinel: z.boolean().exactOptional().describe('Whether Sentinel is installed too'),
    sentinelOptions: sentinelSchema.exactOptional().describe('How Sentinel decides'),
    adapterOptions: optionsSchema.exactOptional().describe('How the adapter works'),
    alerts: z.boolean().exactOptional().describe('Whether a PrometheusRule is rendered'),
    args: z
      .array(z.string().max(1000))
      .max(50)
      .exactOptional()
      .describe('Further flags of "pullwright adapter"'),
    egressPorts: z
      .array(z.int().min(1).max(65_535))
      .max(20)
      .exactOptional()
      .describe('Further TCP ports that the pods may reach'),
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
    error: 'One token is enough: expected apiTokenSecret or apiTokenAudience',
  })
  .refine((section) => section.broker !== 'pubsub' || section.gcpProject !== undefined, {
    path: ['gcpProject'],
    error: 'Pub/Sub needs its project: expected gcpProject',
  });

/** Installs the adapter in one management cluster. */
export class PullSecretAdapter extends ObjectGroup {
  constructor(scope: Construct, id: string, props: PullSecretAdapterInput & { readonly image: string }) {
    super(scope, id, adapterInstallation(installation(props, props.image)));
  }
}

export const pullSecretAdapterSystem: ChartSystem<PullSecretAdapterInput, PullSecretAdapterInput> = {
  name: 'pull-secret-adapter',
  summary: 'Brings pull secrets of HyperFleet clusters to Google Secret Manager and HyperShift',
  config: schema,
  kinds: ['management', 'standalone'],
  objects: (config, cluster) =>
    adapterInstallation({
      ...installation(config, cluster.image, cluster.imagePullSecrets),
      ...(cluster.network === undefined ? {} : { network: cluster.network }),
    }),
};

/** Where HyperFleet's other adapters are. */
export const ADAPTER_NAMESPACE = 'hyperfleet-system';

const DEFAULTS = {
  broker: 'rabbitmq',
  topic: 'hyperfleet-clusters',
  subscription: 'pullsecret',
  namespace: ADAPTER_NAMESPACE,
  replicas: 2,
  pullSecretName: 'pull-secret',
  sentinel: false,
  alerts: true,
  args: [],
} as const;

function installation(
  section: PullSecretAdapterInput,
  image: string,
  imagePullSecrets: readonly string[] = [],
): AdapterInstallation {
  const { brokerSecret = 'pull-secret-adapter-broker', ...rest } = section;
  const withSecret = (section.broker ?? 'rabbitmq') === 'rabbitmq' ? { brokerSecret } : {};
  // The rights of the Jobs name the Secret that they are told to write.
  const pullSecretName = section.adapterOptions?.pullSecretName ?? DEFAULTS.pullSecretName;
  return { ...DEFAULTS, ...rest, ...withSecret, pullSecretName, image, imagePullSecrets };
}
