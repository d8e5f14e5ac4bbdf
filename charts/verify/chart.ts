/** The section `systems.verify` of a fleet, and a construct for charts of one's own. */
import type { Construct } from 'constructs';
import { z } from 'zod';
import { dnsLabel, dnsName, networkField } from '../../runtime/core/kubernetes/fields.ts';
import { GLOBAL_PULL_SECRET } from '../../runtime/core/kubernetes/hypershift.ts';
import { namespace as namespaceObject, OWN_NAMESPACE } from '../../runtime/core/kubernetes/objects.ts';
import { pullStatusName, VERIFY } from '../../runtime/core/kubernetes/pull-status.ts';
import { ObjectGroup } from '../shared/group.ts';
import type { ChartSystem, ClusterContext, ReconcilerPart } from '../shared/system.ts';
import { VERIFY_ALERTS, type VerifyInstallation, verifyObjects } from './objects.ts';

/** The section, as it is written. Every field is optional. */
export interface VerifyInput {
  /** Schedule of the registry checks, in cron syntax. @default {'17 * * * *'} */
  readonly schedule?: string;
  /** Namespaces whose images are checked. @default all; in a management cluster without discovery, its control planes */
  readonly namespaces?: readonly string[];
  /** Pull secrets in them that may be read, by name. @default any; in a management cluster `pull-secret` */
  readonly secretNames?: readonly string[];
  /** Whether all Secrets of these namespaces may be listed, as the credential provider uses them. @default {false} */
  readonly namespaceSecrets?: boolean;
  /** Credentials that end within so many days are pointed out. @default {14} */
  readonly warnDays?: number;
  /** Questions at once. @default {16} */
  readonly concurrency?: number;
  /** Registries that may have any address, a private one although only pods name them. @default {[]} */
  readonly allowHosts?: readonly string[];
  /** Networks, such as `10.1.0.0/16`, that may be contacted even under untrusted host names. @default {[]} */
  readonly allowAddresses?: readonly string[];
  /** Registries (`host:port`) that are contacted without TLS. @default {[]} */
  readonly plainHosts?: readonly string[];
  /** ConfigMap whose key `ca.crt` is trusted instead of the system's certificates. @default none */
  readonly caConfigMap?: string;
  /** TCP ports of registries, token services and the API server. @default {[443, 6443]} */
  readonly egressPorts?: readonly number[];
  /** Whether the CronJob rests. @default {false} */
  readonly suspend?: boolean;
}

const host = z.string().regex(/^[\w.:[\]-]{1,260}$/, 'expected a host, with its port if it has one');

export const schema: z.ZodType<VerifyInput, VerifyInput> = z.strictObject({
  schedule: z
    .string()
    .regex(/^(@(hourly|daily|weekly|monthly)|\S+( +\S+){4})$/, 'expected five fields such as "17 * * * *"')
    .exactOptional()
    .describe('Schedule of the registry checks, in cron syntax'),
  namespaces: z.array(dnsLabel()).min(1).exactOptional().describe('Namespaces whose images are checked'),
  secretNames: z
    .array(dnsName())
    .min(1)
    .exactOptional()
    .describe('Pull secrets in these namespaces that may be read, by name'),
  namespaceSecrets: z
    .boolean()
    .exactOptional()
    .describe('Whether all Secrets of these namespaces may be listed, as the credential provider uses them'),
  warnDays: z
    .int()
    .min(0)
    .max(3650)
    .exactOptional()
    .describe('Credentials that end within so many days are pointed out'),
  concurrency: z.int().min(1).max(256).exactOptional().describe('Questions at once'),
  allowHosts: z
    .array(host)
    .exactOptional()
    .describe('Registries that may have any address, a private one although only pods name them'),
  allowAddresses: z
    .array(networkField())
    .exactOptional()
    .describe('Networks that may be contacted even under untrusted host names'),
  plainHosts: z.array(host).exactOptional().describe('Registries (host:port) that are contacted without TLS'),
  caConfigMap: dnsName()
    .exactOptional()
    .describe('ConfigMap whose key "ca.crt" is trusted instead of the certificates of the system'),
  egressPorts: z
    .array(z.int().min(1).max(65_535))
    .exactOptional()
    .describe('TCP ports of registries, token services and the API server'),
  suspend: z.boolean().exactOptional().describe('Whether the CronJob rests'),
});

export const verifySystem: ChartSystem<VerifyInput, VerifyInput> = {
  name: 'verify',
  summary: 'Asks registries on a schedule whether the credentials that pods pull with are taken',
  config: schema,
  kinds: ['standalone', 'management'],
  check: ({ secretNames, namespaceSecrets }, { kind }) => {
    if (namespaceSecrets !== true) return [];
    const path = ['namespaceSecrets'];
    if (kind === 'management')
      return [
        {
          path,
          text: 'lists all Secrets, and beside control planes lie the kubeconfigs of their administrators: expected secretNames',
        },
      ];
    return secretNames === undefined
      ? []
      : [{ path, text: 'lists all Secrets: expected either this or secretNames' }];
  },
  objects: (config, cluster) =>
    verifyObjects(
      installationOf(
        { ...controlPlanes(cluster), ...config },
        {
          namespace: cluster.namespace,
          image: cluster.image,
          ...(cluster.network === undefined ? {} : { network: cluster.network }),
        },
      ),
    ),
  reconciler: (_config, { namespace }) => reconcilerPart(namespace),
  managementReconciler: ({ namespace }, _hosted, own) =>
    own === undefined ? undefined : reconcilerPart(namespace),
};

/** Beside control planes lie the kubeconfigs of their administrators: their pods pull with one Secret, whose name is known. */
function controlPlanes({
  kind,
  hosted,
  discovery,
}: ClusterContext): Pick<VerifyInput, 'namespaces' | 'secretNames'> {
  if (kind !== 'management') return {};
  const namespaces = discovery ? [] : hosted.map((one) => one.controlPlaneNamespace);
  return {
    ...(namespaces.length === 0 ? {} : { namespaces }),
    secretNames: [GLOBAL_PULL_SECRET.platform],
  };
}

function installationOf(
  { caConfigMap, ...config }: VerifyInput,
  place: Pick<VerifyInstallation, 'namespace' | 'image' | 'network'>,
): VerifyInstallation {
  return {
    ...place,
    schedule: '17 * * * *',
    namespaces: [],
    namespaceSecrets: false,
    warnDays: 14,
    concurrency: 16,
    allowHosts: [],
    allowAddresses: [],
    plainHosts: [],
    egressPorts: [443, 6443],
    suspend: false,
    ...config,
    ...(caConfigMap === undefined ? {} : { caConfigMap }),
  };
}

/** The reconciler makes gauges of what the CronJob reports: a finished pod cannot be scraped. */
function reconcilerPart(namespace: string): ReconcilerPart {
  return {
    name: 'verify',
    options: { namespace },
    access: [
      {
        namespace,
        rules: [
          {
            apiGroups: ['pullwright.dev'],
            resources: ['pullstatuses'],
            resourceNames: [pullStatusName('CronJob', VERIFY)],
            verbs: ['get', 'list', 'watch'],
          },
        ],
      },
    ],
    alerts: VERIFY_ALERTS,
  };
}

/** Properties of {@link Verify}. */
export interface VerifyProps extends VerifyInput {
  /** Image of the pods, with tag or digest. */
  readonly image: string;
  /** @default {'pullwright-system'} */
  readonly namespace?: string;
}

/**
 * The CronJob with its rights. It writes a PullStatus about itself, of which the reconciler makes metrics.
 *
 * @example
 * ```ts
 * import { Verify } from './chart.ts';
 * import { Testing } from 'cdk8s';
 * import assert from 'node:assert/strict';
 *
 * const chart = Testing.chart();
 * new Verify(chart, 'verify', { image: 'registry.example.com/pullwright:0.1.0', schedule: '@daily' });
 * const job = Testing.synth(chart).find((object) => object.kind === 'CronJob');
 * assert.equal(job.spec.schedule, '@daily');
 * ```
 */
export class Verify extends ObjectGroup {
  constructor(scope: Construct, id: string, props: VerifyProps) {
    const { image, namespace = OWN_NAMESPACE, ...config } = props;
    const objects = verifyObjects(installationOf(config, { image, namespace }));
    super(scope, id, [namespaceObject(namespace, { podSecurity: 'restricted' }), ...objects]);
  }
}
