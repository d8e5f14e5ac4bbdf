/** Flags that `adapter` and `sentinel` share: the API and the broker. */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CommandIo } from '../../cli/command.ts';
import { choice, file, port, text, toggle, type ValuesOf } from '../../cli/flags.ts';
import { PullwrightError, UsageError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { type Redacted, redact } from '../../core/redacted.ts';
import { trimEndOf } from '../../core/text.ts';
import { VERSION } from '../../core/version.ts';
import type { Metrics } from '../../engine/metrics.ts';
import { openHttpClient } from '../../http/open.ts';
import { takeProxySettings } from '../../http/proxy.ts';
import { HyperfleetApi } from '../hyperfleet-api.ts';
import {
  type BrokerNote,
  type Consumer,
  type Handler,
  type Publisher,
  pubSubTopology,
  rabbitMqTopology,
} from './broker.ts';

/** The flags. */
export const BROKER_FLAGS = {
  api: text({ value: 'URL', help: 'base URL of the HyperFleet API' }),
  'api-token-file': file({ help: 'bearer token of the API; read again for every request' }),
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
} as const;

type BrokerFlags = Pick<
  ValuesOf<typeof BROKER_FLAGS>,
  Exclude<keyof typeof BROKER_FLAGS, 'health-port' | 'metrics-port'>
>;

interface ApiUser {
  readonly name: string;
  readonly metrics: Pick<Metrics, 'request'>;
  readonly logger: Pick<Logger, 'warn'>;
}

/** The API that the flags name; its answers are counted. @throws UsageError */
export function apiOf(
  flags: Pick<BrokerFlags, 'api' | 'api-token-file'>,
  io: CommandIo,
  client: ApiUser,
): HyperfleetApi {
  const { api = '' } = flags;
  if (!URL.canParse(api) || !/^https?:$/.test(new URL(api).protocol)) {
    throw new UsageError('Cannot reach the HyperFleet API: expected --api with an http or https URL');
  }
  const { host } = new URL(api);
  const file = flags['api-token-file'];
  return new HyperfleetApi({
    baseUrl: trimEndOf(new URL(api).href, '/'),
    ...(file === undefined ? {} : { token: () => secretFile(file, 'token') }),
    userAgent: `pullwright/${VERSION} (${client.name})`,
    onAnswer: ({ method: verb, status }) =>
      client.metrics.request({ code: status === 0 ? '<error>' : String(status), method: verb, host }),
    onLeftOut: (fields) => client.logger.warn('A document of a list is too large and is skipped', fields),
    pause: (ms) => sleep(ms, undefined, { signal: io.signal }),
    http: openHttpClient(takeProxySettings(io.env), [api]),
  });
}

/** The broker that the flags name. */
export interface Broker {
  /** @param prefetch messages handled at the same time */
  readonly consume: (handler: Handler, prefetch: number) => Promise<Consumer>;
  readonly publisher: () => Promise<Publisher>;
}

/** @throws UsageError */
export async function brokerOf(flags: BrokerFlags, note: BrokerNote): Promise<Broker> {
  const { topic, subscription, 'gcp-project': project, 'broker-url-file': file } = flags;
  if (flags.broker === 'pubsub') {
    if (project === undefined) throw new UsageError('Cannot use Pub/Sub: expected --gcp-project ID');
    const { consumePubSub, publishPubSub } = await import('./pubsub.ts');
    const topology = pubSubTopology(project, topic, subscription);
    const options = { project, topology, note, createIfMissing: flags['create-topics'] };
    return {
      consume: (handler, prefetch) => consumePubSub({ ...options, prefetch }, handler),
      publisher: () => publishPubSub(options),
    };
  }
  if (file === undefined) throw new UsageError('Cannot use RabbitMQ: expected --broker-url-file FILE');
  const { consumeRabbitMq, publishRabbitMq } = await import('./rabbitmq.ts');
  const { exchange, 'exchange-type': type, 'routing-key': key } = flags;
  const topology = rabbitMqTopology({ topic, subscription }, exchange, type, key);
  const options = { url: await secretFile(file, 'broker URL'), topology, note };
  return {
    consume: async (handler, prefetch) => consumeRabbitMq({ ...options, prefetch }, handler),
    publisher: async () => publishRabbitMq(options),
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
