/** `pullwright sentinel`: polls the clusters of the HyperFleet API and publishes events about those that need work. */
import { readFile } from 'node:fs/promises';
import { type Command, type CommandIo, defineCommand, type ExitCode } from '../../cli/command.ts';
import { file, type Given, LOG_FLAGS, toggle } from '../../cli/flags.ts';
import { errnoOf, UsageError } from '../../core/errors.ts';
import { isRecord } from '../../core/record.ts';
import { parseYaml } from '../../kube/yaml.ts';
import { BROKER_FLAGS, openProgram } from '../broker/flags.ts';
import { SENTINEL_FLAGS, sentinelSettings } from './options.ts';

const TABLE = {
  name: 'sentinel',
  about: [
    `Publishes an event for each cluster to reconcile. Rule "reconcile" decides by generation and age, like HyperFleet's Sentinel; rule "dependencies" publishes "cluster.create" once the required adapters are available.`,
  ],
  flags: {
    ...BROKER_FLAGS,
    ...SENTINEL_FLAGS,
    messages: file({
      help: "message_decision and message_data in CEL, in the format of HyperFleet's own Sentinel: when rule reconcile sends an event, and its data",
    }),
    once: toggle({ help: 'poll once, without ports, then exit' }),
    ...LOG_FLAGS,
  },
  examples: [
    'pullwright sentinel --api https://hyperfleet.example.com --broker-url-file /etc/broker/url --once',
  ],
  permissions: {
    hosts: ['the HyperFleet API, the broker; listens on <--health-port> and <--metrics-port>'],
    api: [],
  },
} as const;

export const command: Command = defineCommand(TABLE, run);

async function run({ flags }: Given<typeof TABLE.flags>, io: CommandIo): Promise<ExitCode> {
  const settings = sentinelSettings(flags, await messageFile(flags.messages));
  const { runSentinel, Sentinel } = await import('./sentinel.ts');
  const { api, broker, ...program } = await openProgram(flags, io, 'sentinel');
  const publisher = await broker.publisher();
  const sentinel = new Sentinel(api, publisher, settings);
  try {
    return await runSentinel({
      ...program,
      sentinel,
      connected: () => publisher.connected(),
      pauseMs: settings.pollSeconds * 1000,
      once: flags.once,
      ports: flags.once ? { health: undefined, metrics: undefined } : program.ports,
    });
  } finally {
    await publisher.close();
  }
}

/** @throws UsageError */
async function messageFile(path: string | undefined): Promise<object> {
  if (path === undefined) return {};
  try {
    const file = parseYaml(await readFile(path, 'utf8'));
    if (isRecord(file) && Object.keys(file).length > 0) return file;
  } catch (error) {
    const code = errnoOf(error);
    if (code !== undefined) throw new UsageError(`Cannot read the messages in "${path}": ${code}`);
    // Text that is not YAML fails below, like an empty file.
  }
  throw new UsageError(
    `Cannot use the messages in "${path}": expected YAML with message_decision, message_data, or both`,
  );
}
