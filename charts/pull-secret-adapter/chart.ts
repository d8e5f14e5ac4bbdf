/** The section `systems.pull-secret-adapter` of a fleet, and a construct for charts of one's own. */
import type { Construct } from 'constructs';
import { z } from 'zod';
import { optional } from '../../runtime/core/kubernetes/fields.ts';
import { PROVIDER } from '../../runtime/pull-secret-adapter/objects.ts';
import { optionsSchema } from '../../runtime/pull-secret-adapter/options.ts';
import { sentinelSchema } from '../../runtime/pull-secret-adapter/sentinel/options.ts';
import { ObjectGroup } from '../shared/group.ts';
import type { ChartSystem } from '../shared/system.ts';
import { adapterInstallation, type PullSecretAdapterInput } from './installation.ts';

const name = z.string().regex(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/);

export const schema: z.ZodType<PullSecretAdapterInput, PullSecretAdapterInput> = z
  .strictObject({
    api: z.url({ protocol: /^https?$/ }).describe('Base URL of the HyperFleet API'),
    ...optional({
      broker: z.enum(['rabbitmq', 'pubsub']).describe('Where events come from'),
      brokerSecret: name.describe('Secret whose key "url" holds the URL of RabbitMQ'),
      apiTokenSecret: name.describe('Secret whose key "token" holds the bearer token of the HyperFleet API'),
      apiTokenAudience: z
        .string()
        .min(1)
        .max(500)
        .describe("Audience of a token of the pods' own ServiceAccounts"),
      caConfigMap: name.describe('ConfigMap whose key "ca.crt" holds further authorities to trust'),
      exchange: z.string().min(1).max(255).describe('Exchange of RabbitMQ'),
      exchangeType: z.enum(['topic', 'fanout', 'direct']).describe('Type of the exchange'),
      routingKey: z.string().max(255).describe('Routing key of RabbitMQ'),
      createTopics: z
        .boolean()
        .describe('Whether topics and subscription of Pub/Sub are made when they are missing'),
      gcpProject: z.string().min(1).max(100).describe('Project of Pub/Sub'),
      topic: z.string().min(1).max(255).describe('Topic, and exchange of RabbitMQ'),
      subscription: z.string().min(1).max(255).describe("Subscription, and end of the queue's name"),
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
        .describe('Provider of a workload identity pool that the Jobs come from'),
      googleServiceAccount: z.string().min(1).max(320).describe('Google service account of the adapter'),
      sentinel: z.boolean().describe('Whether Sentinel is installed too'),
      sentinelOptions: sentinelSchema.describe('How Sentinel decides'),
      adapterOptions: optionsSchema.describe('How the adapter works'),
      alerts: z.boolean().describe('Whether a PrometheusRule is rendered'),
      args: z.array(z.string().max(1000)).max(50).describe('Further flags of "pullwright adapter"'),
      egressPorts: z
        .array(z.int().min(1).max(65_535))
        .max(20)
        .describe('Further TCP ports that the pods may reach'),
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
    error: 'One token is enough: expected apiTokenSecret or apiTokenAudience',
  })
  .refine((section) => section.broker !== 'pubsub' || section.gcpProject !== undefined, {
    path: ['gcpProject'],
    error: 'Pub/Sub needs its project: expected gcpProject',
  });

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
    adapterInstallation({
      ...config,
      image,
      imagePullSecrets,
      ...(network === undefined ? {} : { network }),
    }),
};
