/** `pullwright sentinel`: goes over the clusters of the HyperFleet API and publishes events about those that want work. */
import { readFile } from 'node:fs/promises';
import {
  type Command,
  type CommandIo,
  type CommandTable,
  defineCommand,
  type ExitCode,
} from '../../cli/command.ts';
import {
  choice,
  duration,
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
import { apiOf, BROKER_FLAGS, publisherOf } from '../broker/flags.ts';
import { DEFAULT_DEPENDENCIES } from '../options.ts';
import type { Messages } from './messages.ts';
import { DEFAULT_AGES, Sentinel, type SentinelSettings } from './sentinel.ts';

const TABLE = {
  name: 'sentinel',
  summary: 'Publish events about HyperFleet clusters that want work (runs in a Deployment)',
  about: [
    'Publishes an event about every cluster that wants work: rule "reconcile" by generation and age, as the running system; rule "dependencies" once the adapters that come first are available, as "cluster.create".',
  ],
  flags: {
    ...BROKER_FLAGS,
    rule: choice(['reconcile', 'dependencies'], { default: 'reconcile', help: 'when an event is sent' }),
    dependency: several(
      text({
        value: 'NAME',
        help: `adapter that comes first; without it, ${DEFAULT_DEPENDENCIES.join(', ')}`,
      }),
    ),
    messages: file({
      help: "message_decision and message_data in CEL, as HyperFleet's own Sentinel has them: when an event is sent with rule reconcile, and what its data are",
    }),
    'event-type': text({
      value: 'TYPE',
      help: 'type of the events; without it, com.redhat.hyperfleet.cluster.reconcile, or cluster.create with rule dependencies',
    }),
    label: several(text({ value: 'KEY=VALUE', help: 'only clusters with this label' })),
    poll: duration({ default: '5s', least: 1000, help: 'pause between two goes over all clusters' }),
    'max-age': seconds({
      default: `${DEFAULT_AGES.reconciled}s`,
      least: 1,
      help: 'how old the report about a cluster that is as it should be may become',
    }),
    debounce: seconds({
      default: `${DEFAULT_AGES.notReconciled}s`,
      help: 'the same for a cluster that is not',
    }),
    'repeat-limit': seconds({
      default: '60s',
      help: 'longest pause between events about a cluster of which nobody reports anything new; 0: an event at every poll, as the running system',
    }),
    once: toggle({ help: 'one go, without ports, then end' }),
    ...LOG_FLAGS,
  },
  examples: [
    'pullwright sentinel --api https://hyperfleet.example.com --broker-url-file /etc/broker/url --once',
  ],
  permissions: {
    reads: [],
    writes: [],
    hosts: ['the HyperFleet API, the broker; listens on <--health-port> and <--metrics-port>'],
    api: [],
  },
} as const satisfies CommandTable<Flags>;

export const command: Command = defineCommand(TABLE, run);

async function run({ flags }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const { rule } = flags;
  const settings: SentinelSettings = {
    rule,
    dependencies: flags.dependency ?? DEFAULT_DEPENDENCIES,
    eventType:
      flags['event-type'] ??
      (rule === 'reconcile' ? 'com.redhat.hyperfleet.cluster.reconcile' : 'cluster.create'),
    source: 'hyperfleet-sentinel',
    selector: labelsOf(flags.label ?? []),
    ages: {
      reconciled: flags['max-age'],
      notReconciled: flags.debounce,
    },
    messages: await messagesOf(flags.messages, rule),
    repeatLimitSeconds: flags['repeat-limit'],
  };
  const ports = {
    health: flags.once ? undefined : flags['health-port'],
    metrics: flags.once ? undefined : flags['metrics-port'],
  };
  const { createMetrics } = await import('../../engine/metrics.ts');
  const metrics = createMetrics();
  const { createLogger } = await import('../../core/logger.ts');
  const { runSentinel } = await import('./process.ts');
  const logger = createLogger({
    write: (line) => io.stderr.write(line),
    format: flags['log-format'],
    level: () => flags['log-level'],
  });
  const api = apiOf(flags, io, { name: 'sentinel', metrics, logger });
  const publisher = await publisherOf(flags, (at, message, fields) => logger[at](message, fields));
  const sentinel = new Sentinel(api, publisher, settings);
  try {
    const code = await runSentinel({
      sentinel,
      connected: () => publisher.connected(),
      logger,
      metrics,
      signal: io.signal,
      pauseMs: flags.poll,
      once: flags.once,
      ports,
    });
    return code === 0 ? 0 : 1;
  } finally {
    await publisher.close();
  }
}

/** @throws UsageError */
async function messagesOf(path: string | undefined, rule: SentinelSettings['rule']): Promise<Messages> {
  const { DEFAULT_MESSAGES, readMessages } = await import('./messages.ts');
  if (path === undefined) return DEFAULT_MESSAGES;
  const { parseYaml } = await import('../../kube/yaml.ts');
  let messages: Messages;
  try {
    messages = readMessages(parseYaml(await readFile(path, 'utf8')));
  } catch (error) {
    const why =
      error instanceof TypeError
        ? error.message
        : 'expected YAML with message_decision, message_data, or both';
    throw new UsageError(`Cannot use the messages in "${path}": ${why}`);
  }
  if (messages.decide !== undefined && rule === 'dependencies')
    throw new UsageError(
      'Cannot use message_decision with --rule dependencies: both say when an event is sent, expected one of them',
    );
  return messages;
}

function labelsOf(pairs: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    pairs.map((pair): [string, string] => {
      const [key = '', value] = pair.split('=');
      if (key === '' || value === undefined) throw new UsageError('Cannot use --label: expected KEY=VALUE');
      return [key, value];
    }),
  );
}
