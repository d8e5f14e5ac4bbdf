/** `pullwright sentinel`: goes over the clusters of the HyperFleet API and publishes events about those that want work. */
import { parseArgs } from 'node:util';
import { DEFAULT_DEPENDENCIES } from '../pull-secret-adapter/adapter/settings.ts';
import { DEFAULT_AGES } from '../pull-secret-adapter/sentinel/decision.ts';
import type { SentinelSettings } from '../pull-secret-adapter/sentinel/sentinel.ts';
import { UsageError } from '../rules/errors.ts';
import { apiOf, BROKER_HELP, BROKER_OPTIONS, oneOf, portOf, publisherOf, seconds } from './broker-flags.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';

const HELP = `
Usage: pullwright sentinel --api URL --broker-url-file FILE [options]

Publishes an event about every cluster that wants work: rule "reconcile" by generation and age, as the running system; rule
"dependencies" once the adapters that come first are available, as "cluster.create".
${BROKER_HELP}
  --rule reconcile|dependencies   (reconcile)
  --dependency NAME               may be repeated (validation, dns, placement)
  --event-type TYPE               (com.redhat.hyperfleet.cluster.reconcile; cluster.create with rule dependencies)
  --label KEY=VALUE               only clusters with this label; may be repeated
  --poll-seconds N (5), --max-age-seconds N (1800), --debounce-seconds N (10)
  --repeat-limit-seconds N        longest pause between events about a cluster of which nobody reports anything new (60);
                                  0: an event at every poll, as the running system
  --once                          one go, then end
  --health-port PORT|off (8080), --metrics-port PORT|off (9090); none with --once

Example: pullwright sentinel --api https://hyperfleet.example.com --broker-url-file /etc/broker/url --once
`;

export const command: Command = {
  name: 'sentinel',
  summary: 'Publish events about HyperFleet clusters that want work (runs in a Deployment)',
  help: HELP,
  permissions: {
    reads: ['<--broker-url-file>', '<--api-token-file>'],
    writes: [],
    hosts: ['the HyperFleet API, the broker; listens on <--health-port> and <--metrics-port>'],
    api: [],
  },
  run,
};

const OPTIONS = {
  ...BROKER_OPTIONS,
  rule: { type: 'string', default: 'reconcile' },
  dependency: { type: 'string', multiple: true },
  'event-type': { type: 'string' },
  label: { type: 'string', multiple: true },
  'poll-seconds': { type: 'string', default: '5' },
  'max-age-seconds': { type: 'string', default: String(DEFAULT_AGES.reconciled) },
  'debounce-seconds': { type: 'string', default: String(DEFAULT_AGES.notReconciled) },
  'repeat-limit-seconds': { type: 'string', default: '60' },
  'health-port': { type: 'string', default: '8080' },
  'metrics-port': { type: 'string', default: '9090' },
  once: { type: 'boolean', default: false },
} as const;

async function run(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const { values: flags } = parseArgs({ args: [...args], options: OPTIONS });
  const rule = oneOf('--rule', flags.rule, ['reconcile', 'dependencies'] as const);
  const settings: SentinelSettings = {
    rule,
    dependencies: flags.dependency ?? DEFAULT_DEPENDENCIES,
    eventType:
      flags['event-type'] ??
      (rule === 'reconcile' ? 'com.redhat.hyperfleet.cluster.reconcile' : 'cluster.create'),
    source: 'hyperfleet-sentinel',
    selector: labelsOf(flags.label ?? []),
    ages: {
      reconciled: seconds('--max-age-seconds', flags['max-age-seconds'], 1),
      notReconciled: seconds('--debounce-seconds', flags['debounce-seconds'], 0),
    },
    repeatLimitSeconds: seconds('--repeat-limit-seconds', flags['repeat-limit-seconds'], 0),
  };
  const pauseMs = seconds('--poll-seconds', flags['poll-seconds'], 1) * 1000;
  const ports = {
    health: flags.once ? undefined : portOf('--health-port', flags['health-port']),
    metrics: flags.once ? undefined : portOf('--metrics-port', flags['metrics-port']),
  };
  const { createMetrics } = await import('../telemetry/metrics.ts');
  const metrics = createMetrics();
  const api = apiOf(flags, io, { name: 'sentinel', metrics });
  const { createLogger } = await import('../telemetry/logger.ts');
  const { Sentinel } = await import('../pull-secret-adapter/sentinel/sentinel.ts');
  const { runSentinel } = await import('../pull-secret-adapter/sentinel/process.ts');
  const level = oneOf('--log-level', flags['log-level'], ['debug', 'info', 'warn', 'error'] as const);
  const logger = createLogger({
    write: (line) => io.stderr.write(line),
    format: oneOf('--log-format', flags['log-format'], ['json', 'logfmt'] as const),
    level: () => level,
  });
  const publisher = await publisherOf(flags, (at, message, fields) => logger[at](message, fields));
  const sentinel = new Sentinel(api, publisher, settings);
  try {
    const code = await runSentinel({
      sentinel,
      logger,
      metrics,
      signal: io.signal,
      pauseMs,
      once: flags.once,
      ports,
    });
    return code === 0 ? 0 : 1;
  } finally {
    await publisher.close();
  }
}

function labelsOf(pairs: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    pairs.map((pair): [string, string] => {
      const [key = '', value] = pair.split('=');
      if (key === '' || value === undefined) throw new UsageError('Cannot use --label: wanted KEY=VALUE');
      return [key, value];
    }),
  );
}
