/** Flags that `adapter` and `sentinel` share: the API and the broker. */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CommandIo } from '../../cli/command.ts';
import { choice, type Flag, file, port, text, toggle, type ValuesOf } from '../../cli/flags.ts';
import { PullwrightError, UsageError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { type Redacted, redact } from '../../core/redacted.ts';
import { trimEndOf } from '../../core/text.ts';
import { VERSION } from '../../core/version.ts';
import type { Metrics } from '../../engine/metrics.ts';
import { openHttpClient } from '../../http/open.ts';
import { takeProxySettings } from '../../http/proxy.ts';
import { HyperfleetApi } from '../hyperfleet-api.ts';
import type { BrokerNote, Consumer, Handler, Publisher } from './broker.ts';
import type { PubSubOptions } from './pubsub.ts';
import type { RabbitMqOptions } from './rabbitmq.ts';
import { pubSubTopology, rabbitMqTopology } from './topology.ts';

/** The flags. */
export const BROKER_FLAGS: {
  readonly api: Flag<string | undefined>;
  readonly 'api-token-file': Flag<string | undefined>;
  readonly 'status-method': Flag<'auto' | 'PUT' | 'POST'>;
  readonly broker: Flag<'rabbitmq' | 'pubsub'>;
  readonly 'broker-url-file': Flag<string | undefined>;
  readonly 'gcp-project': Flag<string | undefined>;
  readonly topic: Flag<string>;
  readonly subscription: Flag<string>;
  readonly exchange: Flag<string | undefined>;
  readonly 'exchange-type': Flag<'topic' | 'fanout' | 'direct'>;
  readonly 'routing-key': Flag<string>;
  readonly 'create-topics': Flag<boolean>;
  readonly 'health-port': Flag<number | undefined>;
  readonly 'metrics-port': Flag<number | undefined>;
} = {
  api: text({ value: 'URL', help: 'base URL of the HyperFleet API' }),
  'api-token-file': file({ help: 'bearer token of the API; read again for every request' }),
  'status-method': choice(['auto', 'PUT', 'POST'], { default: 'auto', help: 'how a report is sent' }),
  broker: choice(['rabbitmq', 'pubsub'], { default: 'rabbitmq', help: 'the kind of the broker' }),
  'broker-url-file': file({ help: 'amqp or amqps URL of RabbitMQ, with its password' }),
  'gcp-project': text({ value: 'ID', help: 'project of Pub/Sub; PUBSUB_EMULATOR_HOST is honoured' }),
  topic: text({ value: 'NAME', default: 'hyperfleet-clusters', help: 'topic, and exchange of RabbitMQ' }),
  subscription: text({
    value: 'NAME',
    default: 'pullsecret',
    help: "subscription, and end of the queue's name",
  }),
  exchange: text({ value: 'NAME', help: 'exchange of RabbitMQ; without it, the topic' }),
  'exchange-type': choice(['topic', 'fanout', 'direct'], {
    default: 'topic',
    help: 'type of the exchange',
  }),
  'routing-key': text({ value: 'KEY', default: '', help: 'routing key of RabbitMQ' }),
  'create-topics': toggle({ help: 'make topics and subscription of Pub/Sub when they are missing' }),
  'health-port': port({ default: '8080', help: 'the port of /healthz and /readyz' }),
  'metrics-port': port({ default: '9090', help: 'the port of /metrics' }),
};

export type BrokerFlags = Pick<
  ValuesOf<typeof BROKER_FLAGS>,
  Exclude<keyof typeof BROKER_FLAGS, 'health-port' | 'metrics-port'>
>;

export type ApiFlags = Pick<BrokerFlags, 'api' | 'api-token-file' | 'status-method'>;

export interface ApiUser {
  readonly name: string;
  readonly metrics: Pick<Metrics, 'request'>;
  readonly logger: Pick<Logger, 'warn'>;
}

/** The API that the flags name; its answers are counted. @throws UsageError */
export function apiOf(flags: ApiFlags, io: CommandIo, client: ApiUser): HyperfleetApi {
  const { api = '' } = flags;
  if (!URL.canParse(api) || !/^https?:$/.test(new URL(api).protocol)) {
    throw new UsageError('Cannot reach the HyperFleet API: expected --api with an http or https URL');
  }
  const { host } = new URL(api);
  const file = flags['api-token-file'];
  return new HyperfleetApi({
    baseUrl: trimEndOf(new URL(api).href, '/'),
    ...(file === undefined ? {} : { token: () => secretFile(file, 'token') }),
    statusMethod: flags['status-method'],
    userAgent: `pullwright/${VERSION} (${client.name})`,
    onAnswer: ({ method: verb, status }) =>
      client.metrics.request({ code: status === 0 ? '<error>' : String(status), method: verb, host }),
    onLeftOut: (fields) => client.logger.warn('A document of a list is too large and is left out', fields),
    pause: (ms) => sleep(ms, undefined, { signal: io.signal }),
    http: openHttpClient(takeProxySettings(io.env), [api]),
  });
}

/** @throws UsageError */
export async function consumerOf(
  flags: BrokerFlags,
  { note, prefetch }: { readonly note: BrokerNote; readonly prefetch: number },
  handler: Handler,
): Promise<Consumer> {
  if (flags.broker === 'pubsub') {
    const { consumePubSub } = await import('./pubsub.ts');
    return consumePubSub({ ...pubSubOptions(flags, note), prefetch }, handler);
  }
  const { consumeRabbitMq } = await import('./rabbitmq.ts');
  return consumeRabbitMq({ ...(await rabbitOptions(flags, note)), prefetch }, handler);
}

/** @throws UsageError */
export async function publisherOf(flags: BrokerFlags, note: BrokerNote): Promise<Publisher> {
  if (flags.broker === 'pubsub') {
    const { publishPubSub } = await import('./pubsub.ts');
    return publishPubSub(pubSubOptions(flags, note));
  }
  const { publishRabbitMq } = await import('./rabbitmq.ts');
  return publishRabbitMq(await rabbitOptions(flags, note));
}

function pubSubOptions(flags: BrokerFlags, note: BrokerNote): PubSubOptions {
  const project = flags['gcp-project'];
  if (project === undefined) throw new UsageError('Cannot use Pub/Sub: expected --gcp-project ID');
  const { topic, subscription } = flags;
  return {
    project,
    topology: pubSubTopology({ project, topic, subscription }),
    note,
    createIfMissing: flags['create-topics'],
  };
}

async function rabbitOptions(flags: BrokerFlags, note: BrokerNote): Promise<RabbitMqOptions> {
  const file = flags['broker-url-file'];
  if (file === undefined) throw new UsageError('Cannot use RabbitMQ: expected --broker-url-file FILE');
  const { topic, subscription, exchange } = flags;
  const topology = rabbitMqTopology({
    topic,
    subscription,
    ...(exchange === undefined ? {} : { exchange }),
    exchangeType: flags['exchange-type'],
    routingKey: flags['routing-key'],
  });
  return { url: await secretFile(file, 'broker URL'), topology, note };
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
