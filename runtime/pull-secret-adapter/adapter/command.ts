/** `pullwright adapter` and its flags. */
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { type Command, type CommandIo, defineCommand, type ExitCode } from '../../cli/command.ts';
import { CLUSTER_FLAGS, file, type Given, LOG_FLAGS, several, text } from '../../cli/flags.ts';
import { UsageError } from '../../core/errors.ts';
import { VERSION } from '../../core/version.ts';
import { parseYaml } from '../../kube/yaml.ts';
import { BROKER_FLAGS, openProgram } from '../broker/flags.ts';
import { DEFAULT_SETTINGS, OPTION_FLAGS, settingsOf } from '../options.ts';

/** Reads the tenants file, if set. @throws UsageError */
export async function tenantsOf(path: string | undefined): Promise<unknown> {
  if (path === undefined) return undefined;
  try {
    return parseYaml(await readFile(path, 'utf8'));
  } catch {
    throw new UsageError(
      `Cannot read the list of tenants from "${path}": expected YAML of the form {TENANT: [PROJECT, PREFIX*]}`,
    );
  }
}

// `pullwright adapter`: the pull secret adapter for GCP.

const TABLE = {
  name: 'adapter',
  about: [
    'Consumes cluster events from a broker. For each cluster, a Job syncs the pull secret to Google Secret Manager and to the namespace where HyperShift reads it. Reports to the HyperFleet API.',
  ],
  flags: {
    ...BROKER_FLAGS,
    ...OPTION_FLAGS,
    tenants: file({
      help: 'projects that each tenant may use, as YAML: {TENANT: [PROJECT, PREFIX*]}; others are denied',
    }),
    namespace: text({
      value: 'NAME',
      short: 'n',
      completes: 'namespaces',
      default: DEFAULT_SETTINGS.namespace,
      help: 'namespace of the Jobs',
    }),
    image: text({ value: 'REF', default: DEFAULT_SETTINGS.image, help: 'image of the Jobs' }),
    'image-pull-secret': several(text({ value: 'NAME', help: 'imagePullSecret of the Jobs' })),
    'service-account': text({
      value: 'NAME',
      default: DEFAULT_SETTINGS.serviceAccount,
      help: 'ServiceAccount of the Jobs',
    }),
    'job-federation': text({
      value: 'NAME',
      help: 'workload identity pool provider that authenticates the Jobs, without a metadata server',
    }),
    'job-ca': text({
      value: 'CONFIGMAP',
      help: 'additional CAs that Jobs trust, in the key ca.crt; for endpoints, see --job-env',
    }),
    kubeconfig: CLUSTER_FLAGS.kubeconfig,
    context: CLUSTER_FLAGS.context,
    ...LOG_FLAGS,
  },
  examples: [
    'pullwright adapter --api https://hyperfleet.example.com --broker rabbitmq --broker-url-file /etc/broker/url',
  ],
  permissions: {
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
} as const;

export const command: Command = defineCommand(TABLE, run);

async function run({ flags }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const settings = settingsOf(flags, await tenantsOf(flags.tenants), {
    namespace: flags.namespace,
    image: flags.image,
    imagePullSecrets: flags['image-pull-secret'] ?? [],
    serviceAccount: flags['service-account'],
    federation: flags['job-federation'] ?? '',
    jobAuthorities: flags['job-ca'] ?? '',
  });
  const { runAdapter } = await import('./process.ts');
  const { loadConnection } = await import('../../kube/kubeconfig.ts');
  const { HttpKubeClient } = await import('../../kube/http-client.ts');
  const { broker, ...program } = await openProgram(flags, io, 'pull-secret-adapter');
  const connection = await loadConnection(flags.kubeconfig, io.env, flags.context);
  const { host } = new URL(connection.server);
  const kube = new HttpKubeClient({
    connection,
    userAgent: `pullwright/${VERSION} (pull-secret-adapter)`,
    onRequest: (seen) => program.metrics.request({ ...seen, host }),
  });
  try {
    return await runAdapter({
      ...program,
      kube,
      settings,
      // More than the concurrent passes: events of one cluster share a pass, and a waiting event does not block others.
      consume: (handler) => broker.consume(handler, settings.concurrency * 5),
      instance: io.env['HOSTNAME'] ?? hostname(),
    });
  } finally {
    kube.close();
  }
}
