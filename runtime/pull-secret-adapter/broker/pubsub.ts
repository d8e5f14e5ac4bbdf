/** Google Pub/Sub with Google's client (53 MB), loaded only if selected. The client honours `PUBSUB_EMULATOR_HOST`. */
import type { Message, PubSub as PubSubClient } from '@google-cloud/pubsub';
import {
  type BrokerNote,
  type Consumer,
  checkPeriodically,
  codeOf,
  DELIVERY_ATTEMPTS,
  deliveriesTo,
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
  /** Create missing topics and subscriptions. @default {false} */
  readonly createIfMissing?: boolean;
}

/** gRPC status code. */
const INVALID_ARGUMENT = 3;
/** Pause before a failed subscription is reopened. */
const REOPEN_MS = 10_000;

/**
 * Detects a hanging connection within 40 seconds and a recovered server within ten; the client's defaults are five and two
 * minutes. Its types omit these options, but it passes them to gRPC.
 */
const CONNECTION: Readonly<Record<string, number>> = {
  'grpc.keepalive_time_ms': 30_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.max_reconnect_backoff_ms': 10_000,
};

/** Starts consuming. The client extends the lease of a message while it is handled. */
export async function consumePubSub(options: PubSubOptions, handler: Handler): Promise<Consumer> {
  const { topology, note } = options;
  const { Duration } = await import('@google-cloud/pubsub');
  const client = await openClient(options);
  const subscription = client.subscription(topology.subscription, {
    streamingOptions: { retryMaxBackoff: Duration.from({ milliseconds: REOPEN_MS }) },
    // The default nacks messages that are still being handled.
    closeOptions: { behavior: 'WAIT' },
    flowControl: { maxMessages: options.prefetch ?? 20, allowExcessMessages: false },
  });
  const dead = client.topic(topology.deadLetterTopic);
  const deliveries = deliveriesTo(handler, note);
  let reopening: NodeJS.Timeout | undefined;
  const settle = async (message: Message): Promise<void> => {
    const { data, attributes } = message;
    const bury = (reason: string): Promise<unknown> =>
      dead.publishMessage({ data, attributes: { ...attributes, 'x-pullwright-reason': reason } });
    const end = await deliveries.take({ body: data, attributes }, bury);
    // If dead-lettering fails, Pub/Sub does it itself after its maximum of delivery attempts.
    if (end === 'done') message.ack();
    else message.nack();
  };
  subscription.on('message', (message: Message) => void settle(message));
  // The client reopens its stream silently, so the state of the connection must be checked.
  const health = checkPeriodically(
    () => ask(client, 'SubscriberClient', 'acknowledge', { subscription: topology.subscription, ackIds: [] }),
    note,
    { message: 'Consuming from Pub/Sub', fields: { subscription: topology.subscription } },
    'Pub/Sub is unreachable or rejects the subscription',
  );
  subscription.on('debug', () => health.doubt());
  subscription.on('error', (error: unknown) => {
    if (deliveries.isClosed()) return;
    health.doubt();
    note('warn', 'The Pub/Sub subscription failed', { code: codeOf(error) });
    // The client stops for good on errors it treats as final, such as a missing permission or subscription.
    clearTimeout(reopening);
    reopening = setTimeout(() => subscription.open(), REOPEN_MS);
  });
  return {
    connected: health.connected,
    close: async () => {
      health.stop();
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
    // The check is repeated anyway.
    const gaxOpts = { timeout: 10_000, maxRetries: 0 };
    pubSub.request<unknown>({ client, method, reqOpts, gaxOpts }, (error) => {
      const code: number | undefined = error?.code;
      if (error === null || code === INVALID_ARGUMENT) resolve();
      else reject(error);
    });
  });
}

/** Closes with a timeout; unacknowledged messages are redelivered. */
async function leave(client: PubSubClient, ended: Promise<void>): Promise<void> {
  await within(GOODBYE_MS, ended).catch(() => undefined);
  await within(GOODBYE_MS, client.close()).catch(() => undefined);
}

/** Opens a publisher. */
export async function publishPubSub(options: PubSubOptions): Promise<Publisher> {
  const { topology, note } = options;
  const client = await openClient(options);
  const topic = client.topic(topology.topic);
  const health = checkPeriodically(
    () => ask(client, 'PublisherClient', 'publish', { topic: topology.topic, messages: [] }),
    note,
    { message: 'Publishing to Pub/Sub', fields: { topic: topology.topic } },
    'Pub/Sub is unreachable or rejects the topic',
  );
  return {
    publish: async ({ id, body }) => {
      const message = { data: Buffer.from(body), attributes: { [MESSAGE_ID_HEADER]: id } };
      await within(PUBLISH_MS, topic.publishMessage(message));
    },
    connected: health.connected,
    close: () => {
      health.stop();
      return leave(client, Promise.resolve());
    },
  };
}

async function openClient({ project, topology, createIfMissing }: PubSubOptions): Promise<PubSubClient> {
  const { PubSub } = await import('@google-cloud/pubsub');
  const client = new PubSub({ projectId: project, ...CONNECTION });
  if (createIfMissing === true) await createAll(client, topology);
  return client;
}

async function createAll(client: PubSubClient, topology: PubSubTopology): Promise<void> {
  const existing = (error: { readonly code?: unknown }): void => {
    if (error.code !== 6) throw error;
  };
  const { topic, subscription, deadLetterTopic, deadLetterSubscription } = topology;
  await client.createTopic(topic).catch(existing);
  await client.createTopic(deadLetterTopic).catch(existing);
  await client
    .createSubscription(topic, subscription, {
      deadLetterPolicy: { deadLetterTopic, maxDeliveryAttempts: DELIVERY_ATTEMPTS },
      // Without it a rejected message is redelivered at once, and a one-minute outage uses up its attempts.
      retryPolicy: { minimumBackoff: { seconds: 10 }, maximumBackoff: { seconds: 600 } },
    })
    .catch(existing);
  // A topic does not retain messages: without a subscription, dead letters are discarded.
  await client
    .createSubscription(deadLetterTopic, deadLetterSubscription, { expirationPolicy: {} })
    .catch(existing);
}
