/** Google Pub/Sub, by Google's client: loaded only when it is chosen (53 MB). `PUBSUB_EMULATOR_HOST` is the client's own switch. */
import type { Message, PubSub as PubSubClient } from '@google-cloud/pubsub';
import type { BrokerNote, Consumer, Handled, Handler, Publisher } from './broker.ts';
import { feelPulse } from './pulse.ts';
import { MESSAGE_ID_HEADER, type PubSubTopology } from './topology.ts';

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

/** Starts to consume. The client extends the lease of a message while it is being handled. */
export async function consumePubSub(options: PubSubOptions, handler: Handler): Promise<Consumer> {
  const { topology, note } = options;
  const { PubSub } = await import('@google-cloud/pubsub');
  const client = new PubSub({ projectId: options.project });
  if (options.createIfMissing === true) await createAll(client, topology);
  const subscription = client.subscription(topology.subscription, {
    flowControl: { maxMessages: options.prefetch ?? 20, allowExcessMessages: false },
  });
  const dead = client.topic(topology.deadLetterTopic);
  const running = new Set<Promise<void>>();
  let closing = false;
  let reopening: NodeJS.Timeout | undefined;
  const settle = async (message: Message): Promise<void> => {
    const handled: Handled = await handler({ body: message.data, attributes: message.attributes });
    if (handled.outcome === 'done') return message.ack();
    if (handled.outcome === 'again') return message.nack();
    try {
      await dead.publishMessage({
        data: message.data,
        attributes: { ...message.attributes, 'x-pullwright-reason': handled.reason },
      });
      note('warn', 'A message was moved to the dead letters', {
        reason: handled.reason,
        bytes: message.data.length,
      });
      message.ack();
    } catch {
      // Pub/Sub moves it by itself after its own count of attempts.
      message.nack();
    }
  };
  subscription.on('message', (message: Message) => {
    if (closing) return message.nack();
    const work = settle(message).finally(() => running.delete(work));
    running.add(work);
  });
  // Its stream comes and goes, and the client opens it again in silence.
  const pulse = feelPulse({
    ask: () => askFor(client, topology.subscription),
    changed: (fault) =>
      fault === undefined
        ? note('info', 'Consuming from Pub/Sub', { subscription: topology.subscription })
        : note('warn', 'Pub/Sub does not answer, or refuses the subscription', { code: codeOf(fault) }),
  });
  subscription.on('debug', () => pulse.doubt());
  subscription.on('error', (error: unknown) => {
    pulse.doubt();
    note('warn', 'The Pub/Sub subscription failed', { code: codeOf(error) });
    // The client gives up for good on what it takes for final, such as a right that is missing or a subscription that is not there.
    clearTimeout(reopening);
    reopening = setTimeout(() => subscription.open(), REOPEN_MS);
  });
  return {
    connected: () => pulse.connected(),
    close: async () => {
      pulse.stop();
      clearTimeout(reopening);
      // Takes nothing more, and only then waits for what it has.
      closing = true;
      await Promise.all(running);
      await subscription.close();
      await client.close();
    },
  };
}

/**
 * Acknowledges nothing: whoever may consume may ask that, no message is touched, and the server refuses it (INVALID_ARGUMENT) or not only
 * once it knows the subscription and the caller.
 */
async function askFor(client: PubSubClient, subscription: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const request = {
      client: 'SubscriberClient' as const,
      method: 'acknowledge',
      reqOpts: { subscription, ackIds: [] },
      // The question is asked again anyway.
      gaxOpts: { timeout: 10_000, maxRetries: 0 },
    };
    client.request<unknown>(request, (error) => {
      const code: number | undefined = error?.code;
      if (error === null || code === INVALID_ARGUMENT) resolve();
      else reject(error);
    });
  });
}

/** Messages of the client may hold names of projects and accounts. */
function codeOf(error: unknown): number | string {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'number' || typeof code === 'string' ? code : 'unknown';
}

/** Publishes; resolves with the server's answer. */
export async function publishPubSub(options: PubSubOptions): Promise<Publisher> {
  const { PubSub } = await import('@google-cloud/pubsub');
  const client = new PubSub({ projectId: options.project });
  if (options.createIfMissing === true) await createAll(client, options.topology);
  const topic = client.topic(options.topology.topic);
  return {
    publish: async ({ id, body }) => {
      await topic.publishMessage({ data: Buffer.from(body), attributes: { [MESSAGE_ID_HEADER]: id } });
    },
    close: () => client.close(),
  };
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
        maxDeliveryAttempts: topology.maxDeliveryAttempts,
      },
      // Without it a message that is given back comes again at once, and an outage of a minute uses up its attempts.
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
