/** `pullwright adapter`: the pull secret adapter for GCP; offline with `--event`. */
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { parseArgs } from 'node:util';
import { parseYaml, toYaml } from '../kube/yaml.ts';
import { type AdapterSettings, DEFAULT_SETTINGS } from '../pull-secret-adapter/adapter/settings.ts';
import { UsageError } from '../rules/errors.ts';
import { VERSION } from '../rules/version.ts';
import { apiOf, BROKER_HELP, BROKER_OPTIONS, consumerOf, oneOf, portOf, seconds } from './broker-flags.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';

const HELP = `
Usage: pullwright adapter --api URL --broker-url-file FILE [options]
       pullwright adapter --event FILE --api-dir DIR --dry-run [--output yaml|json]

Takes cluster events from a broker, and for each cluster brings its pull secret into Google Secret Manager and into the namespace where
HyperShift reads it, by a Job; reports to the HyperFleet API. With --event it prints plan, resources and status for saved answers
of the API (DIR/<id>.json, DIR/<id>-statuses.json), and touches nothing.
${BROKER_HELP}
  --namespace NAME         of Jobs (hyperfleet-system)
  --adapter-name NAME      as in the list of required adapters (pullsecret)
  --dependency NAME        adapter that must be available first; may be repeated (validation, dns, placement)
  --management-namespace T namespace of HyperShift's Secret, {id} and {name} are filled in; empty for none (clusters-{id})
  --gcp-secret-name T      (hyperfleet-{id}-pull-secret)
  --impersonate T          service account that the Job takes on, {project} is filled in
                           (pullsecret-manager@{project}.iam.gserviceaccount.com)
  --pass-as file|env       how the Job gets the pull secret (file)
  --image REF, --service-account NAME (pullsecret-adapter-job)
  --image-pull-secret NAME Secret that the Jobs pull it with; may be repeated
  --job-federation NAME    provider of a workload identity pool that the Jobs come from, where there is no metadata server
  --replication POLICY     automatic or user-managed:LOCATION[,LOCATION] (automatic)
  --kms-key NAME, --keep-versions N (1), --on-deletion delete|retain (delete), --adopt
  --tenants FILE           projects that each tenant may name, as YAML: {TENANT: [PROJECT, PREFIX*]}; others are not touched
  --tenant-key KEY         where a cluster names its tenant: created_by, tenancy.KEY or labels.KEY (created_by)
  --pull-secret-name NAME  of HyperShift's Secret (pull-secret)
  --verify-every-seconds N what is stored is proved again when its proof is older; 0 never (86400)
  --denied-retry-seconds N pause after a refused permission; 0: until the cluster changes (3600)
  --job-ttl-seconds N (3600), --job-deadline-seconds N (310)
  --job-env NAME=VALUE     further environment of Jobs; may be repeated
  --repeat-seconds N       an event is answered with an unchanged report only if that is this old (10, Sentinel's debounce)
  --sweep-seconds N        pause between two goes over all clusters (60)
  --lease-seconds N        (15)
  --concurrency N          clusters looked at at the same time (20)
  --health-port PORT|off (8080), --metrics-port PORT|off (9090), --kubeconfig FILE

Example: pullwright adapter --event examples/adapter/event.json --api-dir examples/adapter/responses --dry-run
`;

export const command: Command = {
  name: 'adapter',
  summary: 'Bring pull secrets of HyperFleet clusters to GCP and HyperShift (runs in a Deployment)',
  help: HELP,
  permissions: {
    reads: [
      '<--event>',
      '<--api-dir>',
      '<--kubeconfig>',
      '<--broker-url-file>',
      '<--api-token-file>',
      '<--tenants>',
    ],
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
  run,
};

const OPTIONS = {
  ...BROKER_OPTIONS,
  event: { type: 'string' },
  'api-dir': { type: 'string' },
  'dry-run': { type: 'boolean', default: false },
  output: { type: 'string', default: 'yaml' },
  namespace: { type: 'string' },
  'adapter-name': { type: 'string' },
  dependency: { type: 'string', multiple: true },
  'management-namespace': { type: 'string' },
  'gcp-secret-name': { type: 'string' },
  impersonate: { type: 'string' },
  'pass-as': { type: 'string' },
  image: { type: 'string' },
  'image-pull-secret': { type: 'string', multiple: true },
  'service-account': { type: 'string' },
  'job-federation': { type: 'string' },
  replication: { type: 'string' },
  'kms-key': { type: 'string' },
  'keep-versions': { type: 'string' },
  'on-deletion': { type: 'string' },
  adopt: { type: 'boolean', default: false },
  tenants: { type: 'string' },
  'tenant-key': { type: 'string' },
  'pull-secret-name': { type: 'string' },
  'verify-every-seconds': { type: 'string' },
  'denied-retry-seconds': { type: 'string' },
  'job-ttl-seconds': { type: 'string' },
  'job-deadline-seconds': { type: 'string' },
  'job-env': { type: 'string', multiple: true },
  'repeat-seconds': { type: 'string', default: '10' },
  'sweep-seconds': { type: 'string', default: '60' },
  'lease-seconds': { type: 'string', default: '15' },
  concurrency: { type: 'string', default: '20' },
  'health-port': { type: 'string', default: '8080' },
  'metrics-port': { type: 'string', default: '9090' },
  kubeconfig: { type: 'string' },
} as const;

type Flags = ReturnType<typeof parseFlags>;

function parseFlags(
  args: readonly string[],
) /* inferred */: ReturnType<typeof parseArgs<{ args: string[]; options: typeof OPTIONS }>>['values'] {
  return parseArgs({ args: [...args], options: OPTIONS }).values;
}

async function run(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const flags = parseFlags(args);
  const settings = { ...settingsOf(flags), ...(await tenantsOf(flags.tenants)) };
  return flags.event === undefined ? serve(flags, settings, io) : offline(flags, settings, io);
}

async function offline(flags: Flags, settings: AdapterSettings, io: CommandIo): Promise<ExitCode> {
  const { event, 'api-dir': folder } = flags;
  if (event === undefined || folder === undefined || !flags['dry-run']) {
    throw new UsageError('Cannot run on saved answers: wanted --event FILE --api-dir DIR --dry-run');
  }
  const output = oneOf('--output', flags.output, ['yaml', 'json'] as const);
  const { runOffline } = await import('../pull-secret-adapter/adapter/offline.ts');
  const result = await runOffline(event, folder, settings, new Date());
  // Through JSON, where what is redacted shows as such.
  const plain: unknown = JSON.parse(JSON.stringify(result));
  io.stdout.write(
    output === 'json' ? `${JSON.stringify(plain, undefined, 2)}\n` : toYaml(plain, { lineWidth: 0 }),
  );
  return 0;
}

async function serve(flags: Flags, settings: AdapterSettings, io: CommandIo): Promise<ExitCode> {
  const { runAdapter } = await import('../pull-secret-adapter/adapter/process.ts');
  const { createLogger } = await import('../telemetry/logger.ts');
  const { createMetrics } = await import('../telemetry/metrics.ts');
  const { loadConnection } = await import('../kube/kubeconfig.ts');
  const { HttpKubeClient } = await import('../kube/http-client.ts');
  const level = oneOf('--log-level', flags['log-level'], ['debug', 'info', 'warn', 'error'] as const);
  const logger = createLogger({
    write: (line) => io.stderr.write(line),
    format: oneOf('--log-format', flags['log-format'], ['json', 'logfmt'] as const),
    level: () => level,
  });
  const metrics = createMetrics();
  const api = apiOf(flags, io, { name: 'pull-secret-adapter', metrics });
  const concurrency = seconds('--concurrency', flags.concurrency, 1);
  const connection = await loadConnection(flags.kubeconfig, io.env);
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
      sweepSeconds: seconds('--sweep-seconds', flags['sweep-seconds'], 1),
      leaseSeconds: seconds('--lease-seconds', flags['lease-seconds'], 1),
      concurrency,
      instance: io.env['HOSTNAME'] ?? hostname(),
      ports: {
        health: portOf('--health-port', flags['health-port']),
        metrics: portOf('--metrics-port', flags['metrics-port']),
      },
    });
  } finally {
    kube.close();
  }
}

function settingsOf(flags: Flags): AdapterSettings {
  const given: Partial<Record<keyof AdapterSettings, unknown>> = {
    namespace: flags.namespace,
    adapterName: flags['adapter-name'],
    dependencies: flags.dependency,
    managementNamespace: flags['management-namespace'],
    gcpSecretName: flags['gcp-secret-name'],
    impersonate: flags.impersonate,
    passAs:
      flags['pass-as'] === undefined
        ? undefined
        : oneOf('--pass-as', flags['pass-as'], ['file', 'env'] as const),
    image: flags.image,
    imagePullSecrets: flags['image-pull-secret'],
    serviceAccount: flags['service-account'],
    federation: flags['job-federation'],
    replication: flags.replication,
    kmsKey: flags['kms-key'],
    keepVersions:
      flags['keep-versions'] === undefined
        ? undefined
        : seconds('--keep-versions', flags['keep-versions'], 0),
    onDeletion:
      flags['on-deletion'] === undefined
        ? undefined
        : oneOf('--on-deletion', flags['on-deletion'], ['delete', 'retain'] as const),
    adopt: flags.adopt,
    tenantKey: flags['tenant-key'],
    pullSecretName: flags['pull-secret-name'],
    verifyEverySeconds: optionalSeconds('--verify-every-seconds', flags['verify-every-seconds'], 0),
    deniedRetrySeconds: optionalSeconds('--denied-retry-seconds', flags['denied-retry-seconds'], 0),
    jobTtlSeconds: optionalSeconds('--job-ttl-seconds', flags['job-ttl-seconds'], 60),
    jobDeadlineSeconds: optionalSeconds('--job-deadline-seconds', flags['job-deadline-seconds'], 60),
    repeatSeconds: seconds('--repeat-seconds', flags['repeat-seconds'], 0),
    jobEnv: jobEnvOf(flags['job-env'] ?? []),
  };
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return { ...DEFAULT_SETTINGS, ...(set as Partial<AdapterSettings>) };
}

function optionalSeconds(flag: string, value: string | undefined, least: number): number | undefined {
  return value === undefined ? undefined : seconds(flag, value, least);
}

/** The list of tenants, if a file is named. @throws UsageError */
async function tenantsOf(file: string | undefined): Promise<Pick<AdapterSettings, 'tenants'>> {
  if (file === undefined) return { tenants: undefined };
  const wanted = 'wanted YAML of the form {TENANT: [PROJECT, PREFIX*]}';
  let read: unknown;
  try {
    read = parseYaml(await readFile(file, 'utf8'));
  } catch {
    throw new UsageError(`Cannot read the list of tenants from "${file}": ${wanted}`);
  }
  const entries = Object.entries(typeof read === 'object' && read !== null ? read : {});
  const isList = (value: unknown): value is readonly string[] =>
    Array.isArray(value) && value.every((one) => typeof one === 'string' && one.length > 1);
  if (Array.isArray(read) || entries.length === 0 || !entries.every(([, projects]) => isList(projects)))
    throw new UsageError(`Cannot use the list of tenants in "${file}": ${wanted}`);
  return { tenants: Object.fromEntries(entries) as NonNullable<AdapterSettings['tenants']> };
}

function jobEnvOf(pairs: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    pairs.map((pair): [string, string] => {
      const at = pair.indexOf('=');
      if (at < 1) throw new UsageError('Cannot use --job-env: wanted NAME=VALUE');
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}
