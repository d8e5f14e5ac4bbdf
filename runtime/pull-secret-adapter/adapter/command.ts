/** How `pullwright adapter` works, as its flags say it. */
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import {
  type Command,
  type CommandIo,
  type CommandTable,
  defineCommand,
  type ExitCode,
} from '../../cli/command.ts';
import {
  CLUSTER_FLAGS,
  checked,
  choice,
  count,
  type Flags,
  file,
  type Given,
  LOG_FLAGS,
  seconds,
  several,
  text,
  toggle,
} from '../../cli/flags.ts';
import { UsageError } from '../../core/errors.ts';
import { VERSION } from '../../core/version.ts';
import { parseYaml } from '../../kube/yaml.ts';
import { apiOf, BROKER_FLAGS, consumerOf } from '../broker/flags.ts';
import { OWN_JOB_VARIABLES } from '../objects.ts';
import { type AdapterSettings, DEFAULT_SETTINGS } from '../options.ts';

const ADAPTER_FLAGS = {
  namespace: text({
    value: 'NAME',
    short: 'n',
    completes: 'namespaces',
    default: DEFAULT_SETTINGS.namespace,
    help: 'namespace of the Jobs',
  }),
  'adapter-name': text({
    value: 'NAME',
    default: DEFAULT_SETTINGS.adapterName,
    help: 'name in the list of required adapters',
  }),
  dependency: several(
    text({
      value: 'NAME',
      help: `adapter that must be available first; without it, ${DEFAULT_SETTINGS.dependencies.join(', ')}`,
    }),
  ),
  'management-namespace': text({
    value: 'TEMPLATE',
    default: DEFAULT_SETTINGS.managementNamespace,
    help: "namespace of HyperShift's Secret, {id} and {name} are filled in; empty for none",
  }),
  'pull-secret-name': text({
    value: 'NAME',
    default: DEFAULT_SETTINGS.pullSecretName,
    help: "name of HyperShift's Secret",
  }),
  'gcp-secret-name': text({
    value: 'TEMPLATE',
    default: DEFAULT_SETTINGS.gcpSecretName,
    help: 'name in Secret Manager, {id} and {name} are filled in',
  }),
  impersonate: text({
    value: 'TEMPLATE',
    default: DEFAULT_SETTINGS.impersonate,
    help: 'service account that the Job takes on, {project} is filled in; empty for its own',
  }),
  'pass-as': choice(['file', 'env'], {
    default: DEFAULT_SETTINGS.passAs,
    help: 'how the Job gets the pull secret',
  }),
  image: text({ value: 'REF', default: DEFAULT_SETTINGS.image, help: 'image of the Jobs' }),
  'image-pull-secret': several(text({ value: 'NAME', help: 'Secret that the Jobs pull their image with' })),
  'service-account': text({
    value: 'NAME',
    default: DEFAULT_SETTINGS.serviceAccount,
    help: 'service account of the Jobs',
  }),
  'job-federation': text({
    value: 'NAME',
    help: 'provider of a workload identity pool that the Jobs come from, where there is no metadata server',
  }),
  'job-ca': text({
    value: 'CONFIGMAP',
    help: 'further authorities that Jobs trust, in the key ca.crt; for endpoints, see --job-env',
  }),
  location: text({
    value: 'TEMPLATE',
    help: 'regional secrets in this location of Secret Manager, {region} is filled in; without it, secrets that Google replicates',
  }),
  replication: text({
    value: 'POLICY',
    default: DEFAULT_SETTINGS.replication,
    help: 'automatic or user-managed:LOCATION[,LOCATION]',
  }),
  'kms-key': text({ value: 'NAME', help: "key of Cloud KMS; without it, Google's own" }),
  'keep-versions': count({
    default: String(DEFAULT_SETTINGS.keepVersions),
    help: 'older versions that stay enabled',
  }),
  'previous-for': seconds({
    help: 'how long an older version stays enabled after it was replaced; 0: not at all; without it, until --keep-versions pushes it out',
  }),
  'destroy-after': checked(
    seconds({
      default: `${DEFAULT_SETTINGS.destroyAfterSeconds}s`,
      help: 'how long a disabled version stays before Google destroys it, from 24h to 1000 days; 0: it is never destroyed',
    }),
    (value) =>
      value === 0 || (value >= 86_400 && value <= 86_400_000) ? undefined : '0, or from 24h to 24000h',
  ),
  'on-deletion': choice(['delete', 'retain'], {
    default: DEFAULT_SETTINGS.onDeletion,
    help: "what deletion does to the secret in the customer's project",
  }),
  adopt: toggle({ help: "take over secrets that carry no owner's label" }),
  tenants: file({
    help: 'projects that each tenant may name, as YAML: {TENANT: [PROJECT, PREFIX*]}; others are not touched',
  }),
  challenge: choice(['none', 'project-label'], {
    default: DEFAULT_SETTINGS.challenge,
    help: 'what the owner of a project has to set on it before a pull secret of this tenant goes there; the report names label and value',
  }),
  'tenant-key': text({
    value: 'KEY',
    default: DEFAULT_SETTINGS.tenantKey,
    help: 'where a cluster names its tenant: created_by, tenancy.KEY or labels.KEY',
  }),
  'verify-every': seconds({
    default: `${DEFAULT_SETTINGS.verifyEverySeconds}s`,
    help: 'what is stored is proved again when its proof is older; 0: never',
  }),
  'denied-retry': seconds({
    default: `${DEFAULT_SETTINGS.deniedRetrySeconds}s`,
    help: 'pause after a refused permission; 0: until the cluster changes',
  }),
  'job-ttl': seconds({
    default: `${DEFAULT_SETTINGS.jobTtlSeconds}s`,
    least: 60,
    help: 'how long a finished Job stays',
  }),
  'job-deadline': seconds({
    default: `${DEFAULT_SETTINGS.jobDeadlineSeconds}s`,
    least: 60,
    help: 'how long a Job may take',
  }),
  'job-env': several(
    text({ value: 'NAME=VALUE', help: 'further environment of Jobs, but for what the adapter says itself' }),
  ),
  repeat: seconds({
    default: `${DEFAULT_SETTINGS.repeatSeconds}s`,
    help: "an event is answered with an unchanged report only if that is this old; Sentinel's debounce",
  }),
} as const satisfies Flags;

type Values = Given<typeof ADAPTER_FLAGS>['flags'];

/** What the flags say. @throws UsageError */
function settingsOf(flags: Values): Omit<AdapterSettings, 'tenants'> {
  return {
    namespace: flags.namespace,
    adapterName: flags['adapter-name'],
    dependencies: flags.dependency ?? DEFAULT_SETTINGS.dependencies,
    managementNamespace: flags['management-namespace'],
    gcpSecretName: flags['gcp-secret-name'],
    impersonate: flags.impersonate,
    passAs: flags['pass-as'],
    image: flags.image,
    imagePullSecrets: flags['image-pull-secret'] ?? [],
    serviceAccount: flags['service-account'],
    federation: flags['job-federation'] ?? DEFAULT_SETTINGS.federation,
    jobAuthorities: flags['job-ca'] ?? DEFAULT_SETTINGS.jobAuthorities,
    location: flags.location ?? DEFAULT_SETTINGS.location,
    replication: flags.replication,
    kmsKey: flags['kms-key'] ?? DEFAULT_SETTINGS.kmsKey,
    keepVersions: flags['keep-versions'],
    previousForSeconds: flags['previous-for'],
    destroyAfterSeconds: flags['destroy-after'],
    onDeletion: flags['on-deletion'],
    adopt: flags.adopt,
    challenge: flags.challenge,
    tenantKey: flags['tenant-key'],
    pullSecretName: flags['pull-secret-name'],
    verifyEverySeconds: flags['verify-every'],
    deniedRetrySeconds: flags['denied-retry'],
    jobTtlSeconds: flags['job-ttl'],
    jobDeadlineSeconds: flags['job-deadline'],
    repeatSeconds: flags.repeat,
    jobEnv: jobEnvOf(flags['job-env'] ?? []),
  };
}

/** The list of tenants, if a file is named. @throws UsageError */
export async function tenantsOf(path: string | undefined): Promise<AdapterSettings['tenants']> {
  if (path === undefined) return undefined;
  const wanted = 'expected YAML of the form {TENANT: [PROJECT, PREFIX*]}';
  let read: unknown;
  try {
    read = parseYaml(await readFile(path, 'utf8'));
  } catch {
    throw new UsageError(`Cannot read the list of tenants from "${path}": ${wanted}`);
  }
  const entries = Object.entries(typeof read === 'object' && read !== null ? read : {});
  const isList = (value: unknown): value is readonly string[] =>
    Array.isArray(value) && value.every((one) => typeof one === 'string' && one.length > 1);
  if (Array.isArray(read) || entries.length === 0 || !entries.every(([, projects]) => isList(projects)))
    throw new UsageError(`Cannot use the list of tenants in "${path}": ${wanted}`);
  return Object.fromEntries(entries) as NonNullable<AdapterSettings['tenants']>;
}

/** @throws UsageError */
export function jobEnvOf(pairs: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    pairs.map((pair): [string, string] => {
      const at = pair.indexOf('=');
      if (at < 1) throw new UsageError('Cannot use --job-env: expected NAME=VALUE');
      const name = pair.slice(0, at);
      if (OWN_JOB_VARIABLES.has(name))
        throw new UsageError(
          `Cannot use --job-env: the adapter sets "${name}" itself; expected the flag of that meaning`,
        );
      return [name, pair.slice(at + 1)];
    }),
  );
}

// `pullwright adapter`: the pull secret adapter for GCP.

const TABLE = {
  name: 'adapter',
  summary: 'Bring pull secrets of HyperFleet clusters to GCP and HyperShift (runs in a Deployment)',
  about: [
    'Takes cluster events from a broker, and for each cluster brings its pull secret into Google Secret Manager and into the namespace where HyperShift reads it, by a Job; reports to the HyperFleet API.',
  ],
  flags: {
    ...BROKER_FLAGS,
    ...ADAPTER_FLAGS,
    sweep: seconds({ default: '60s', least: 1, help: 'pause between two goes over all clusters' }),
    'lease-duration': seconds({ default: '15s', least: 1, help: 'how long the Lease lasts' }),
    concurrency: count({ default: '20', least: 1, help: 'clusters that are looked at at the same time' }),
    kubeconfig: CLUSTER_FLAGS.kubeconfig,
    context: CLUSTER_FLAGS.context,
    ...LOG_FLAGS,
  },
  examples: [
    'pullwright adapter --api https://hyperfleet.example.com --broker rabbitmq --broker-url-file /etc/broker/url',
  ],
  permissions: {
    reads: [],
    writes: [],
    hosts: [
      'the HyperFleet API, the broker, the API server; listens on <--health-port> and <--metrics-port>',
    ],
    api: [
      'get, list, watch, create, patch, delete jobs (hyperfleet-system)',
      'list pods (hyperfleet-system)',
      'get, create, patch, delete secrets (hyperfleet-system)',
      'get, list, watch, create, patch, delete configmaps (hyperfleet-system)',
      'get namespaces; get, create, patch, delete rolebindings/pullsecret-adapter-job; bind clusterroles/pullwright-pull-secret-job',
      'get, create, update leases (hyperfleet-system)',
    ],
  },
} as const satisfies CommandTable<Flags>;

export const command: Command = defineCommand(TABLE, run);

type AdapterValues = Given<typeof TABLE.flags>['flags'];

async function run({ flags }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const settings = { ...settingsOf(flags), tenants: await tenantsOf(flags.tenants) };
  return serve(flags, settings, io);
}

async function serve(flags: AdapterValues, settings: AdapterSettings, io: CommandIo): Promise<ExitCode> {
  const { runAdapter } = await import('./process.ts');
  const { createLogger } = await import('../../core/logger.ts');
  const { createMetrics } = await import('../../engine/metrics.ts');
  const { loadConnection } = await import('../../kube/kubeconfig.ts');
  const { HttpKubeClient } = await import('../../kube/http-client.ts');
  const logger = createLogger({
    write: (line) => io.stderr.write(line),
    format: flags['log-format'],
    level: () => flags['log-level'],
  });
  const metrics = createMetrics();
  const api = apiOf(flags, io, { name: 'pull-secret-adapter', metrics, logger });
  const { concurrency } = flags;
  const connection = await loadConnection(flags.kubeconfig, io.env, flags.context);
  const { host } = new URL(connection.server);
  const kube = new HttpKubeClient({
    connection,
    userAgent: `pullwright/${VERSION} (pull-secret-adapter)`,
    onRequest: (seen) => metrics.request({ ...seen, host }),
  });
  try {
    return await runAdapter({
      api,
      kube,
      settings,
      // More than are looked at at the same time: events of one cluster become one look, and one that waits holds up no other.
      consume: (handler) =>
        consumerOf(
          flags,
          { note: (at, message, fields) => logger[at](message, fields), prefetch: concurrency * 5 },
          handler,
        ),
      logger,
      metrics,
      signal: io.signal,
      sweepSeconds: flags.sweep,
      leaseSeconds: flags['lease-duration'],
      concurrency,
      instance: io.env['HOSTNAME'] ?? hostname(),
      ports: {
        health: flags['health-port'],
        metrics: flags['metrics-port'],
      },
    });
  } finally {
    kube.close();
  }
}
