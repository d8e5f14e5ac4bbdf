/** Flags that `adapter` and `sentinel` share: the API and the broker. */

import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BrokerNote, Consumer, Handler, Publisher } from '../brokers/broker.ts';
import type { PubSubOptions } from '../brokers/pubsub.ts';
import type { RabbitMqOptions } from '../brokers/rabbitmq.ts';
import { pubSubTopology, rabbitMqTopology } from '../brokers/topology.ts';
import { openHttpClient } from '../http/open.ts';
import { HyperfleetApi } from '../pull-secret-adapter/hyperfleet-api.ts';
import { PullwrightError, UsageError } from '../rules/errors.ts';
import { type Redacted, redact } from '../rules/redacted.ts';
import { trimEndOf } from '../rules/text/trim.ts';
import { VERSION } from '../rules/version.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { CommandIo } from './command.ts';
import { takeProxySettings } from './proxy-settings.ts';

export const BROKER_OPTIONS = {
  api: { type: 'string' },
  'api-token-file': { type: 'string' },
  'status-method': { type: 'string', default: 'auto' },
  broker: { type: 'string', default: 'rabbitmq' },
  'broker-url-file': { type: 'string' },
  'gcp-project': { type: 'string' },
  topic: { type: 'string', default: 'hyperfleet-clusters' },
  subscription: { type: 'string', default: 'pullsecret' },
  exchange: { type: 'string' },
  'exchange-type': { type: 'string', default: 'topic' },
  'routing-key': { type: 'string', default: '' },
  'create-topics': { type: 'boolean', default: false },
  'log-level': { type: 'string', default: 'info' },
  'log-format': { type: 'string', default: 'json' },
} as const;

export const BROKER_HELP = `
  --api URL                base URL of the HyperFleet API
  --api-token-file FILE    bearer token; read again for every request
  --status-method METHOD   PUT, POST or auto (auto)
  --broker KIND            rabbitmq or pubsub (rabbitmq)
  --broker-url-file FILE   amqp or amqps URL of RabbitMQ, with its password
  --gcp-project ID         project of Pub/Sub; PUBSUB_EMULATOR_HOST is honoured
  --topic NAME             topic, and exchange of RabbitMQ (hyperfleet-clusters)
  --subscription NAME      subscription, and end of the queue's name (pullsecret)
  --exchange NAME, --exchange-type fanout|topic (topic), --routing-key KEY ("")
  --create-topics          make topics and subscription of Pub/Sub when they are missing
  --log-level LEVEL, --log-format json|logfmt`;

export interface BrokerFlags {
  readonly api?: string | undefined;
  readonly 'api-token-file'?: string | undefined;
  readonly 'status-method': string;
  readonly broker: string;
  readonly 'broker-url-file'?: string | undefined;
  readonly 'gcp-project'?: string | undefined;
  readonly topic: string;
  readonly subscription: string;
  readonly exchange?: string | undefined;
  readonly 'exchange-type': string;
  readonly 'routing-key': string;
  readonly 'create-topics': boolean;
}

/** The API that the flags name; its answers are counted. @throws UsageError */
export function apiOf(
  flags: BrokerFlags,
  io: CommandIo,
  client: { readonly name: string; readonly metrics: Pick<Metrics, 'request'> },
): HyperfleetApi {
  const { api = '' } = flags;
  if (!URL.canParse(api) || !/^https?:$/.test(new URL(api).protocol)) {
    throw new UsageError('Cannot reach the HyperFleet API: wanted --api with an http or https URL');
  }
  const { host } = new URL(api);
  const method = oneOf('--status-method', flags['status-method'], ['auto', 'PUT', 'POST'] as const);
  const file = flags['api-token-file'];
  return new HyperfleetApi({
    baseUrl: trimEndOf(new URL(api).href, '/'),
    ...(file === undefined ? {} : { token: () => secretFile(file, 'token') }),
    statusMethod: method,
    userAgent: `pullwright/${VERSION} (${client.name})`,
    onAnswer: ({ method: verb, status }) =>
      client.metrics.request({ code: status === 0 ? '<error>' : String(status), method: verb, host }),
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
  if (kindOf(flags) === 'pubsub') {
    const { consumePubSub } = await import('../brokers/pubsub.ts');
    return consumePubSub({ ...pubSubOptions(flags, note), prefetch }, handler);
  }
  const { consumeRabbitMq } = await import('../brokers/rabbitmq.ts');
  return consumeRabbitMq({ ...(await rabbitOptions(flags, note)), prefetch }, handler);
}

/** @throws UsageError */
export async function publisherOf(flags: BrokerFlags, note: BrokerNote): Promise<Publisher> {
  if (kindOf(flags) === 'pubsub') {
    const { publishPubSub } = await import('../brokers/pubsub.ts');
    return publishPubSub(pubSubOptions(flags, note));
  }
  const { publishRabbitMq } = await import('../brokers/rabbitmq.ts');
  return publishRabbitMq(await rabbitOptions(flags, note));
}

function kindOf(flags: BrokerFlags): 'rabbitmq' | 'pubsub' {
  return oneOf('--broker', flags.broker, ['rabbitmq', 'pubsub'] as const);
}

function pubSubOptions(flags: BrokerFlags, note: BrokerNote): PubSubOptions {
  const project = flags['gcp-project'];
  if (project === undefined) throw new UsageError('Cannot use Pub/Sub: wanted --gcp-project ID');
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
  if (file === undefined) throw new UsageError('Cannot use RabbitMQ: wanted --broker-url-file FILE');
  const { topic, subscription, exchange } = flags;
  const topology = rabbitMqTopology({
    topic,
    subscription,
    ...(exchange === undefined ? {} : { exchange }),
    exchangeType: oneOf('--exchange-type', flags['exchange-type'], ['fanout', 'topic', 'direct'] as const),
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

/** @throws UsageError */
export function oneOf<T extends string>(flag: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((candidate) => candidate === value);
  if (found === undefined)
    throw new UsageError(`Cannot use ${flag} "${value}": wanted ${allowed.join(', ')}`);
  return found;
}

/** @throws UsageError */
export function seconds(flag: string, value: string, least: number): number {
  if (/^\d{1,9}$/.test(value) && Number(value) >= least) return Number(value);
  throw new UsageError(`Cannot use ${flag} "${value}": wanted a whole number of seconds, at least ${least}`);
}

/** Undefined: off. @throws UsageError */
export function portOf(flag: string, text: string): number | undefined {
  if (text === 'off') return undefined;
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new UsageError(`Cannot use ${flag} "${text}": wanted a port, or off`);
}
