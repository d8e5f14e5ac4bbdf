/** Google Pub/Sub, by Google's client: loaded only when it is chosen (53 MB). `PUBSUB_EMULATOR_HOST` is the client's own switch. */
import type { ClientConfig, Message, PubSub as PubSubClient } from '@google-cloud/pubsub';
import {
  type BrokerNote,
  type Consumer,
  codeOf,
  DELIVERY_ATTEMPTS,
  Deliveries,
  feelPulse,
  GOODBYE_MS,
  type Handler,
  MESSAGE_ID_HEADER,
  PUBLISH_MS,
  type Publisher,
  type PubSubTopology,
  within,
} from './broker.ts';

export interface PubSubOptions {
  readonly project: string;
  readonly topology: PubSubTopology;
  readonly note: BrokerNote;
  /** Messages handled at the same time. @default {20} */
  readonly prefetch?: number;
  /** Make topics and subscription when they are missing. @default {false} */
  readonly createIfMissing?: boolean;
}

/** Of gRPC. */
const INVALID_ARGUMENT = 3;
/** Pause before a subscription that failed is opened again. */
const REOPEN_MS = 10_000;

/**
 * A hanging connection is detected within 40 seconds, and a recovered server within ten; the client's defaults are five and
 * two minutes. Its types omit these options, but it passes them to gRPC.
 */
const CONNECTION: Readonly<Record<string, number>> = {
  'grpc.keepalive_time_ms': 30_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.max_reconnect_backoff_ms': 10_000,
};

/** Starts to consume. The client extends the lease of a message while it is being handled. */
export async function consumePubSub(options: PubSubOptions, handler: Handler): Promise<Consumer> {
  const { topology, note } = options;
  const { Duration, PubSub } = await import('@google-cloud/pubsub');
  const client = new PubSub(configOf(options));
  if (options.createIfMissing === true) await createAll(client, topology);
  const subscription = client.subscription(topology.subscription, {
    streamingOptions: { retryMaxBackoff: Duration.from({ milliseconds: REOPEN_MS }) },
    // Its default gives back what is still being handled.
    closeOptions: { behavior: 'WAIT' },
    flowControl: { maxMessages: options.prefetch ?? 20, allowExcessMessages: false },
  });
  const dead = client.topic(topology.deadLetterTopic);
  const deliveries = new Deliveries(handler, note);
  let reopening: NodeJS.Timeout | undefined;
  const settle = async (message: Message): Promise<void> => {
    const { data, attributes } = message;
    const bury = (reason: string): Promise<unknown> =>
      dead.publishMessage({ data, attributes: { ...attributes, 'x-pullwright-reason': reason } });
    const end = await deliveries.take({ body: data, attributes }, bury);
    // Pub/Sub moves one that cannot be buried by itself, after its own count of attempts.
    if (end === 'done') message.ack();
    else message.nack();
  };
  subscription.on('message', (message: Message) => void settle(message));
  // Its stream comes and goes, and the client opens it again in silence.
  const pulse = feelPulse(
    () => ask(client, 'SubscriberClient', 'acknowledge', { subscription: topology.subscription, ackIds: [] }),
    note,
    { message: 'Consuming from Pub/Sub', fields: { subscription: topology.subscription } },
    'Pub/Sub does not answer, or refuses the subscription',
  );
  subscription.on('debug', () => pulse.doubt());
  subscription.on('error', (error: unknown) => {
    if (deliveries.closed) return;
    pulse.doubt();
    note('warn', 'The Pub/Sub subscription failed', { code: codeOf(error) });
    // The client stops for good on errors it treats as final, such as a missing permission or subscription.
    clearTimeout(reopening);
    reopening = setTimeout(() => subscription.open(), REOPEN_MS);
  });
  return {
    connected: () => pulse.connected(),
    close: async () => {
      pulse.stop();
      clearTimeout(reopening);
      const handled = deliveries.close();
      const ended = subscription.close();
      await handled;
      await leave(client, ended);
    },
  };
}

/**
 * An empty acknowledge or publish request: it needs the same permission, changes no message, and the server rejects it
 * (INVALID_ARGUMENT) only after it has found the subscription or topic and authorized the caller.
 */
async function ask(
  pubSub: PubSubClient,
  client: 'SubscriberClient' | 'PublisherClient',
  method: string,
  reqOpts: object,
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    // It is asked again anyway.
    const gaxOpts = { timeout: 10_000, maxRetries: 0 };
    pubSub.request<unknown>({ client, method, reqOpts, gaxOpts }, (error) => {
      const code: number | undefined = error?.code;
      if (error === null || code === INVALID_ARGUMENT) resolve();
      else reject(error);
    });
  });
}

/** Closing may time out when the broker does not answer: unacknowledged messages are redelivered. */
async function leave(client: PubSubClient, ended: Promise<void>): Promise<void> {
  await within(GOODBYE_MS, ended).catch(() => undefined);
  await within(GOODBYE_MS, client.close()).catch(() => undefined);
}

/** Publishes; resolves with the server's answer. */
export async function publishPubSub(options: PubSubOptions): Promise<Publisher> {
  const { topology, note } = options;
  const { PubSub } = await import('@google-cloud/pubsub');
  const client = new PubSub(configOf(options));
  if (options.createIfMissing === true) await createAll(client, topology);
  const topic = client.topic(topology.topic);
  const pulse = feelPulse(
    () => ask(client, 'PublisherClient', 'publish', { topic: topology.topic, messages: [] }),
    note,
    { message: 'Publishing to Pub/Sub', fields: { topic: topology.topic } },
    'Pub/Sub does not answer, or refuses the topic',
  );
  return {
    publish: async ({ id, body }) => {
      const message = { data: Buffer.from(body), attributes: { [MESSAGE_ID_HEADER]: id } };
      await within(PUBLISH_MS, topic.publishMessage(message));
    },
    connected: () => pulse.connected(),
    close: () => {
      pulse.stop();
      return leave(client, Promise.resolve());
    },
  };
}

function configOf({ project }: PubSubOptions): ClientConfig {
  return { projectId: project, ...CONNECTION };
}

async function createAll(client: PubSubClient, topology: PubSubTopology): Promise<void> {
  const existing = (error: { readonly code?: unknown }): void => {
    if (error.code !== 6) throw error;
  };
  await client.createTopic(topology.topic).catch(existing);
  await client.createTopic(topology.deadLetterTopic).catch(existing);
  await client
    .createSubscription(topology.topic, topology.subscription, {
      deadLetterPolicy: {
        deadLetterTopic: topology.deadLetterTopic,
        maxDeliveryAttempts: DELIVERY_ATTEMPTS,
      },
      // Without it a rejected message is redelivered at once, and a one-minute outage uses up its attempts.
      retryPolicy: { minimumBackoff: { seconds: 10 }, maximumBackoff: { seconds: 600 } },
    })
    .catch(existing);
  // A topic keeps nothing by itself: without a subscription every dead letter is lost.
  await client
    .createSubscription(topology.deadLetterTopic, topology.deadLetterSubscription, {
      expirationPolicy: {},
    })
    .catch(existing);
}
