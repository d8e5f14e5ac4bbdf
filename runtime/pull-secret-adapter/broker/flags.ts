/** Flags of both `adapter` and `sentinel`, for the API and the broker. */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CommandIo } from '../../cli/command.ts';
import { choice, file, type LOG_FLAGS, port, text, toggle, type ValuesOf } from '../../cli/flags.ts';
import { PullwrightError, UsageError } from '../../core/errors.ts';
import { createLogger } from '../../core/logger.ts';
import { type Redacted, redact } from '../../core/redacted.ts';
import { trimEndOf } from '../../core/text.ts';
import { VERSION } from '../../core/version.ts';
import { openHttpClient } from '../../http/open.ts';
import { HyperfleetApi } from '../hyperfleet-api.ts';
import { type BrokerNote, type Handler, pubSubTopology, rabbitMqTopology } from './broker.ts';

export const BROKER_FLAGS = {
  api: text({ value: 'URL', help: 'base URL of the HyperFleet API' }),
  'api-token-file': file({ help: 'bearer token for the API; reread for every request' }),
  broker: choice(['rabbitmq', 'pubsub'], { default: 'rabbitmq', help: 'type of the broker' }),
  'broker-url-file': file({ help: 'amqp or amqps URL of RabbitMQ, with its password' }),
  'gcp-project': text({ value: 'ID', help: 'project of Pub/Sub; PUBSUB_EMULATOR_HOST is honoured' }),
  topic: text({ value: 'NAME', default: 'hyperfleet-clusters', help: 'topic, and exchange of RabbitMQ' }),
  subscription: text({
    value: 'NAME',
    default: 'pullsecret',
    help: 'subscription; suffix of the queue name',
  }),
  exchange: text({ value: 'NAME', help: 'exchange of RabbitMQ; if unset, the topic' }),
  'exchange-type': choice(['topic', 'fanout', 'direct'], {
    default: 'topic',
    help: 'type of the exchange',
  }),
  'routing-key': text({ value: 'KEY', default: '', help: 'routing key of RabbitMQ' }),
  'create-topics': toggle({ help: 'create missing Pub/Sub topics and subscription' }),
  'health-port': port({ default: '8080', help: 'the port of /healthz and /readyz' }),
  'metrics-port': port({ default: '9090', help: 'the port of /metrics' }),
} as const;

type Given = ValuesOf<typeof BROKER_FLAGS & typeof LOG_FLAGS>;

/** Opens logger, metrics, broker, and the API client, whose responses are counted in metrics. @throws UsageError */
export async function openProgram(flags: Given, io: CommandIo, name: string) {
  const { createMetrics } = await import('../../engine/metrics.ts');
  const metrics = createMetrics();
  const logger = createLogger({
    write: (line) => io.stderr.write(line),
    format: flags['log-format'],
    level: () => flags['log-level'],
  });
  const { api: address = '', 'api-token-file': file } = flags;
  const url = URL.parse(address);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new UsageError('Cannot reach the HyperFleet API: expected --api with an http or https URL');
  const { host, href } = url;
  const api = new HyperfleetApi({
    baseUrl: trimEndOf(href, '/'),
    ...(file === undefined ? {} : { token: () => secretFile(file, 'token') }),
    userAgent: `pullwright/${VERSION} (${name})`,
    onAnswer: ({ method, status }) =>
      metrics.request({ code: status === 0 ? '<error>' : String(status), method, host }),
    onLeftOut: (fields) => logger.warn('Skipped a list item that is too large', fields),
    pause: (ms) => sleep(ms, undefined, { signal: io.signal }),
    http: openHttpClient(io.env, [address]),
  });
  const broker = await brokerOf(flags, (at, message, fields) => logger[at](message, fields));
  const ports = { health: flags['health-port'], metrics: flags['metrics-port'] };
  return { logger, metrics, api, broker, ports, signal: io.signal };
}

/** What `adapter` and `sentinel` run with. */
export type Program = Awaited<ReturnType<typeof openProgram>>;

/** Opens the selected broker. `prefetch`: messages handled at the same time. @throws UsageError */
async function brokerOf(flags: Given, note: BrokerNote) {
  const { topic, subscription, 'gcp-project': project, 'broker-url-file': file } = flags;
  if (flags.broker === 'pubsub') {
    if (project === undefined) throw new UsageError('Cannot use Pub/Sub: expected --gcp-project ID');
    const { consumePubSub, publishPubSub } = await import('./pubsub.ts');
    const topology = pubSubTopology(project, topic, subscription);
    const options = { project, topology, note, createIfMissing: flags['create-topics'] };
    return {
      consume: (handler: Handler, prefetch: number) => consumePubSub({ ...options, prefetch }, handler),
      publisher: () => publishPubSub(options),
    };
  }
  if (file === undefined) throw new UsageError('Cannot use RabbitMQ: expected --broker-url-file FILE');
  const { consumeRabbitMq, publishRabbitMq } = await import('./rabbitmq.ts');
  const { exchange, 'exchange-type': type, 'routing-key': key } = flags;
  const topology = rabbitMqTopology({ topic, subscription }, exchange, type, key);
  const options = { url: await secretFile(file, 'broker URL'), topology, note };
  return {
    consume: (handler: Handler, prefetch: number) =>
      Promise.resolve(consumeRabbitMq({ ...options, prefetch }, handler)),
    publisher: () => Promise.resolve(publishRabbitMq(options)),
  };
}

async function secretFile(file: string, what: string): Promise<Redacted<string>> {
  try {
    return redact((await readFile(file, 'utf8')).trim());
  } catch (error) {
    throw new PullwrightError(`Cannot read the ${what} from "${file}"`, {
      code: 'FileUnreadable',
      cause: error,
    });
  }
}
