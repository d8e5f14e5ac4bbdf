/**
 * The section `systems.verify` of a fleet, and a construct for other charts: the CronJob that checks credentials against
 * registries, with read access limited to the pods' pull configuration.
 */
import type { Construct } from 'constructs';
import { z } from 'zod';
import { dnsLabel, dnsName, type Frozen, networkField } from '../../runtime/core/kubernetes/fields.ts';
import { GLOBAL_PULL_SECRET } from '../../runtime/core/kubernetes/hypershift.ts';
import type { KubeObject, ObjectMeta } from '../../runtime/core/kubernetes/object.ts';
import {
  EVENTS,
  grant,
  kubernetesObject,
  labels,
  may,
  NODE_MIRROR_READS,
  namespace as namespaceObject,
  networkPolicy,
  OWN_NAMESPACE,
  type PodSpec,
  type PolicyRule,
  READ,
  secretsByName,
  selectorLabels,
  serviceAccount,
} from '../../runtime/core/kubernetes/objects.ts';
import { pullStatusName, VERIFY } from '../../runtime/core/kubernetes/pull-status.ts';
import { ObjectGroup } from '../shared/group.ts';
import type { Alert } from '../shared/monitoring.ts';
import { ownPod } from '../shared/pod.ts';
import type { ChartSystem, ClusterContext, SystemPart } from '../shared/system.ts';

const host = z.string().regex(/^[\w.:[\]-]{1,260}$/, 'expected a host with optional port');

export const schema = z.strictObject({
  schedule: z
    .string()
    .regex(/^(@(hourly|daily|weekly|monthly)|\S+( +\S+){4})$/, 'expected five fields such as "17 * * * *"')
    .default('17 * * * *')
    .describe('Schedule of the registry checks, in cron syntax'),
  namespaces: z
    .array(dnsLabel)
    .min(1)
    .exactOptional()
    .describe(
      'Namespaces whose images are checked; default all, in a management cluster without discovery its control planes',
    ),
  secretNames: z
    .array(dnsName)
    .min(1)
    .exactOptional()
    .describe(
      'Names of pull secrets in these namespaces that may be read; default any, in a management cluster pull-secret',
    ),
  namespaceSecrets: z
    .boolean()
    .default(false)
    .describe('Whether all Secrets of these namespaces may be listed, as the credential provider uses them'),
  warnDays: z
    .int()
    .min(0)
    .max(3650)
    .default(14)
    .describe('Warn about credentials that expire within this number of days'),
  concurrency: z.int().min(1).max(256).default(16).describe('Concurrent requests'),
  allowHosts: z.array(host).default([]).describe('Registries that may have any address, even a private one'),
  allowAddresses: z
    .array(networkField)
    .default([])
    .describe('Networks that may be contacted even under untrusted host names'),
  plainHosts: z.array(host).default([]).describe('Registries (host:port) that are contacted without TLS'),
  caConfigMap: dnsName
    .exactOptional()
    .describe('ConfigMap whose key "ca.crt" is trusted instead of the certificates of the system'),
  egressPorts: z
    .array(z.int().min(1).max(65_535))
    .default([443, 6443])
    .describe('TCP ports of registries, token services and the API server'),
  suspend: z.boolean().default(false).describe('Whether to suspend the CronJob'),
});

/** The section as input. Every field is optional. */
export type VerifyInput = Frozen<z.input<typeof schema>>;

type VerifyConfig = Frozen<z.output<typeof schema>>;

/** The section with values of its cluster. */
type VerifyInstallation = VerifyConfig & Pick<ClusterContext, 'namespace' | 'image' | 'network'>;

// Alerts on rejected or expired credentials, and on checks that do not run.

/** Based on the gauges that the reconciler derives from the CronJob's PullStatus. */
const ALERTS: readonly Alert[] = [
  {
    name: 'PullCredentialRefused',
    expression: 'max by (credential, reason) (pullwright_credential_refused) > 0',
    for: '1h',
    summary: 'A registry rejects {{ $labels.credential }}: {{ $labels.reason }}',
    description:
      'New pods that need it cannot start. Renew the entry in place; check with pullwright verify --all-in-use.',
  },
  {
    name: 'PullCredentialEndsSoon',
    expression: 'min by (credential) (pullwright_credential_expires_at) - time() < 3 * 86400',
    for: '10m',
    summary: '{{ $labels.credential }} expires in {{ $value | humanizeDuration }}',
    description: 'Renew the entry in place before it does.',
  },
  {
    name: 'PullCredentialsNotVerified',
    expression: 'time() - max by (scope) (pullwright_verify_last_run) > 86400',
    for: '1h',
    severity: 'info',
    summary: 'Pull credentials have not been checked for {{ $value | humanizeDuration }}',
    description: 'Check the Jobs of CronJob pullwright-verify. The last results are that old.',
  },
];

export const verifySystem: ChartSystem<VerifyConfig, VerifyInput> = {
  name: 'verify',
  summary: 'Checks on a schedule whether registries accept the credentials of pods',
  config: schema,
  kinds: ['standalone', 'management'],
  check: ({ secretNames, namespaceSecrets }, { kind }) => {
    if (!namespaceSecrets || (kind !== 'management' && secretNames === undefined)) return [];
    const text =
      kind === 'management'
        ? 'lists all Secrets, which include administrator kubeconfigs of control planes: expected secretNames'
        : 'lists all Secrets: expected either this or secretNames';
    return [{ path: ['namespaceSecrets'], text }];
  },
  objects: (config, cluster) => verifyObjects({ ...cluster, ...controlPlanes(cluster), ...config }),
  alerts: ALERTS,
  reconciler: (_config, cluster) => reconcilerPart(cluster),
  managementReconciler: reconcilerPart,
};

/** Control plane namespaces contain administrator kubeconfigs. Read by name only: their pods use one known pull secret. */
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

const ALL = labels({ name: VERIFY, component: 'verify' });
const SELECTOR = selectorLabels({ name: VERIFY, component: 'verify' });
/** Name of the CronJob's RBAC objects; those of the reconciler are named after the system. */
const JOB = `${VERIFY}-job`;
const CA_FOLDER = '/etc/pullwright/ca';

/** Returns all objects except the namespace. */
export function verifyObjects(installation: VerifyInstallation): readonly KubeObject[] {
  const own = { name: VERIFY, namespace: installation.namespace, labels: ALL };
  return [
    serviceAccount(own),
    cronJob(installation, own),
    networkPolicy({
      metadata: own,
      selector: SELECTOR,
      ingress: [],
      egress: [{ ports: installation.egressPorts, to: 'named' }],
      network: installation.network,
    }),
    ...access(installation),
  ];
}

function cronJob(installation: VerifyInstallation, metadata: ObjectMeta): KubeObject {
  const { schedule, suspend } = installation;
  return kubernetesObject('CronJob', metadata, {
    spec: {
      schedule,
      suspend,
      // One check at a time; missed runs are not caught up after an outage.
      concurrencyPolicy: 'Forbid',
      startingDeadlineSeconds: 600,
      successfulJobsHistoryLimit: 1,
      failedJobsHistoryLimit: 2,
      jobTemplate: {
        spec: {
          backoffLimit: 1,
          activeDeadlineSeconds: 1800,
          ttlSecondsAfterFinished: 86_400,
          template: { metadata: { labels: SELECTOR }, spec: pod(installation) },
        },
      },
    },
  });
}

function pod(installation: VerifyInstallation): PodSpec {
  const { image, caConfigMap } = installation;
  const ca = caConfigMap !== undefined;
  return ownPod(
    VERIFY,
    {
      name: 'verify',
      image,
      command: ['/usr/bin/pullwright', 'verify'],
      args: argsOf(installation),
      ...(ca ? { volumeMounts: [{ name: 'ca', mountPath: CA_FOLDER, readOnly: true }] } : {}),
    },
    {
      restartPolicy: 'Never',
      ...(ca ? { volumes: [{ name: 'ca', configMap: { name: caConfigMap } }] } : {}),
    },
  );
}

function argsOf(installation: VerifyInstallation): readonly string[] {
  const { namespaces = [], secretNames = [], caConfigMap } = installation;
  return [
    '--all-in-use',
    ...namespaces.map((one) => `--namespace=${one}`),
    ...secretNames.map((one) => `--secret-name=${one}`),
    `--report=${installation.namespace}/${VERIFY}`,
    `--warn-days=${installation.warnDays}`,
    `--concurrency=${installation.concurrency}`,
    ...installation.allowHosts.map((host) => `--allow-host=${host}`),
    ...installation.allowAddresses.map((network) => `--allow-address=${network}`),
    ...installation.plainHosts.map((host) => `--plain-host=${host}`),
    ...(caConfigMap === undefined ? [] : [`--ca=${CA_FOLDER}/ca.crt`]),
  ];
}

function access(installation: VerifyInstallation): readonly KubeObject[] {
  const { namespace: own, namespaces = [] } = installation;
  const used = usageRules(installation);
  const allow = (rules: readonly PolicyRule[], metadata: Partial<ObjectMeta> = {}) =>
    grant({ name: JOB, labels: ALL, ...metadata }, rules, { name: VERIFY, namespace: own });
  return [
    ...allow(REPORT_RULES, { namespace: own }),
    ...allow([secretsByName(['global-pull-secret'], ['get'])], { namespace: 'kube-system' }),
    ...allow([secretsByName(['pull-secret'], ['get'])], { namespace: 'openshift-config' }),
    ...namespaces.flatMap((namespace) => allow(used, { name: `${VERIFY}-images`, namespace })),
    ...allow([...CLUSTER_RULES, ...(namespaces.length === 0 ? used : [])]),
  ];
}

const CLUSTER_RULES: readonly PolicyRule[] = [
  may(['list'], 'config.openshift.io', ['imagedigestmirrorsets', 'imagetagmirrorsets']),
  may(['get'], 'config.openshift.io', ['criocredentialproviderconfigs'], ['cluster']),
  ...NODE_MIRROR_READS,
];

/** Rules to read the images and Secrets of pods, and to notify their owners. */
function usageRules({ namespaceSecrets, secretNames }: VerifyInstallation): readonly PolicyRule[] {
  return [
    may(['list'], '', ['pods', 'serviceaccounts']),
    may(['list'], 'apps', ['deployments', 'statefulsets', 'daemonsets']),
    may(['list'], 'batch', ['jobs', 'cronjobs']),
    secretNames === undefined
      ? may(namespaceSecrets ? ['get', 'list'] : ['get'], '', ['secrets'])
      : secretsByName(secretNames, ['get']),
    EVENTS,
  ];
}

const REPORT = [pullStatusName('CronJob', VERIFY)];

const REPORT_RULES: readonly PolicyRule[] = [
  may(['get', 'create', 'patch'], 'pullwright.dev', ['pullstatuses'], REPORT),
  may(['patch'], 'pullwright.dev', ['pullstatuses/status'], REPORT),
];

/** The reconciler exports the CronJob's results as gauges, because a finished pod cannot be scraped. */
function reconcilerPart({ namespace }: ClusterContext): SystemPart {
  return {
    options: { namespace },
    access: [{ namespace, rules: [may(READ, 'pullwright.dev', ['pullstatuses'], REPORT)] }],
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
 * The CronJob with its RBAC. It writes a PullStatus about itself, which the reconciler exports as metrics.
 *
 * @throws ZodError when an option is invalid
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
    const objects = verifyObjects({ ...schema.parse(config), image, namespace });
    super(scope, id, [namespaceObject(namespace), ...objects]);
  }
}
