/** `pullwright adapter`: the pull secret adapter for GCP. */

import { hostname } from 'node:os';
import type { AdapterSettings } from '../pull-secret-adapter/adapter/settings.ts';
import { VERSION } from '../rules/version.ts';
import { ADAPTER_FLAGS, settingsOf, tenantsOf } from './adapter-flags.ts';
import { apiOf, BROKER_FLAGS, consumerOf } from './broker-flags.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';
import { type CommandTable, defineCommand } from './define.ts';
import { CLUSTER_FLAGS, LOG_FLAGS } from './flags/common.ts';
import { count, type Flags, seconds } from './flags/flag.ts';
import type { Given } from './flags/parse.ts';

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

type Values = Given<typeof TABLE.flags>['flags'];

async function run({ flags }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const settings = { ...settingsOf(flags), tenants: await tenantsOf(flags.tenants) };
  return serve(flags, settings, io);
}

async function serve(flags: Values, settings: AdapterSettings, io: CommandIo): Promise<ExitCode> {
  const { runAdapter } = await import('../pull-secret-adapter/adapter/process.ts');
  const { createLogger } = await import('../telemetry/logger.ts');
  const { createMetrics } = await import('../telemetry/metrics.ts');
  const { loadConnection } = await import('../kube/kubeconfig.ts');
  const { HttpKubeClient } = await import('../kube/http-client.ts');
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
