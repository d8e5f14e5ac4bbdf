/**
 * RabbitMQ: durable exchange and queue as the existing broker library declares them, publisher confirms, and dead letters, which that
 * library lacks: there one message of invalid JSON stops the queue for good.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type AsyncMessage,
  Connection,
  ConsumerStatus,
  type Publisher as DeadLetters,
} from 'rabbitmq-client';
import { type Redacted, reveal } from '../../core/redacted.ts';
import {
  type BrokerNote,
  type Consumer,
  GOODBYE_MS,
  type Handler,
  MESSAGE_ID_HEADER,
  PUBLISH_MS,
  type Publisher,
  type RabbitMqTopology,
  within,
} from './broker.ts';

export interface RabbitMqOptions {
  /** `amqp://` or `amqps://`; holds a password. */
  readonly url: Redacted<string>;
  readonly topology: RabbitMqTopology;
  readonly note: BrokerNote;
  /** Messages handled at the same time. @default {20} */
  readonly prefetch?: number;
}

/** Pause before requeueing a message that could not be dead-lettered: without it, it would be redelivered at once. */
const PAUSE_MS = 5000;
/** Of AMQP, in seconds. A connection is closed after two missed intervals; the usual minute would make that two. */
const HEARTBEAT_SECONDS = 10;

/** Starts to consume. Reconnects and declares again by itself. */
export function consumeRabbitMq(options: RabbitMqOptions, handler: Handler): Consumer {
  const { topology, note } = options;
  const connection = connect(options);
  const prefetch = options.prefetch ?? 20;
  const dead = connection.createPublisher({
    confirm: true,
    maxAttempts: 3,
    queues: [{ queue: topology.deadLetterQueue, durable: true }],
  });
  const closing = new AbortController();
  const running = new Set<Promise<ConsumerStatus>>();
  let connected = false;
  const settle = async (message: AsyncMessage): Promise<ConsumerStatus> => {
    const body = bytesOf(message);
    const handled = await handler({ body, attributes: attributesOf(message) });
    if (handled.outcome === 'done') return ConsumerStatus.ACK;
    if (handled.outcome === 'again') return ConsumerStatus.REQUEUE;
    const { reason } = handled;
    const moved = await bury(message, reason, { dead, queue: topology.deadLetterQueue });
    if (moved === undefined) {
      note('warn', 'A message was moved to the dead letters', { reason, bytes: body.length });
      return ConsumerStatus.ACK;
    }
    note('warn', 'A message could not be moved to the dead letters', { reason, code: moved });
    await sleep(PAUSE_MS, undefined, { signal: closing.signal }).catch(() => undefined);
    return ConsumerStatus.REQUEUE;
  };
  const subscription = connection.createConsumer(
    {
      queue: topology.queue,
      queueOptions: { durable: true },
      exchanges: [{ exchange: topology.exchange, type: topology.exchangeType, durable: true }],
      // With the queue's name: without it, AMQP takes an empty key for the name of the queue.
      queueBindings: [
        { queue: topology.queue, exchange: topology.exchange, routingKey: topology.routingKey },
      ],
      qos: { prefetchCount: prefetch },
      concurrency: prefetch,
      requeue: true,
    },
    async (message) => {
      // The library hands on what arrives while it takes leave.
      if (closing.signal.aborted) return ConsumerStatus.REQUEUE;
      const work = settle(message).finally(() => running.delete(work));
      running.add(work);
      return work;
    },
  );
  subscription.on('ready', () => {
    connected = true;
    note('info', 'Consuming from RabbitMQ', { queue: topology.queue });
  });
  subscription.on('error', (error: unknown) => {
    connected = false;
    note('warn', 'The RabbitMQ consumer failed and is being set up again', { code: codeOf(error) });
  });
  connection.on('error', () => {
    connected = false;
  });
  return {
    connected: () => connected,
    close: async () => {
      closing.abort();
      const ended = subscription.close().then(() => dead.close());
      await Promise.allSettled(running);
      await leave(connection, ended);
    },
  };
}

/** Whole, with what it carried, so that it can be moved back. Undefined: done; else the code of what went wrong. */
async function bury(
  message: AsyncMessage,
  reason: string,
  to: { readonly dead: DeadLetters; readonly queue: string },
): Promise<string | undefined> {
  const { contentType, messageId } = message;
  const envelope = {
    routingKey: to.queue,
    durable: true,
    ...(contentType === undefined ? {} : { contentType }),
    ...(messageId === undefined ? {} : { messageId }),
    headers: { ...(message.headers as object | undefined), 'x-pullwright-reason': reason },
  };
  try {
    await within(PUBLISH_MS, to.dead.send(envelope, bytesOf(message)));
    return undefined;
  } catch (error) {
    return codeOf(error);
  }
}

/** Publishes durable messages, each confirmed. */
export function publishRabbitMq(options: RabbitMqOptions): Publisher {
  const { topology } = options;
  const connection = connect(options);
  const publisher = connection.createPublisher({
    confirm: true,
    maxAttempts: 3,
    exchanges: [{ exchange: topology.exchange, type: topology.exchangeType, durable: true }],
  });
  return {
    publish: async ({ id, body }) => {
      const envelope = { exchange: topology.exchange, routingKey: topology.routingKey, durable: true };
      const sent = publisher.send({ ...envelope, headers: { [MESSAGE_ID_HEADER]: id } }, Buffer.from(body));
      await within(PUBLISH_MS, sent);
    },
    // False also while the broker blocks publishers because memory or disk is low.
    connected: () => connection.ready,
    close: () => leave(connection, publisher.close()),
  };
}

/** Closes as AMQP requires; a hanging connection is dropped, which requeues unacknowledged messages. */
async function leave(connection: Connection, channels: Promise<void>): Promise<void> {
  await within(
    GOODBYE_MS,
    channels.then(() => connection.close()),
  ).catch(() => connection.unsafeDestroy());
}

function connect({ url, note }: RabbitMqOptions): Connection {
  const connection = new Connection({
    url: reveal(url),
    heartbeat: HEARTBEAT_SECONDS,
    retryLow: 200,
    retryHigh: 10_000,
    connectionName: 'pullwright',
  });
  connection.on('error', (error: unknown) =>
    note('warn', 'The connection to RabbitMQ failed and is being made again', { code: codeOf(error) }),
  );
  return connection;
}

/** Messages of the library may hold the URL. */
function codeOf(error: unknown): string {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' ? code : 'unknown';
}

/** The library has already parsed what says that it is JSON. */
function bytesOf(message: AsyncMessage): Uint8Array {
  const body: unknown = message.body;
  if (body instanceof Uint8Array) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body ?? null));
}

function attributesOf(message: AsyncMessage): Readonly<Record<string, string>> {
  const headers: Readonly<Record<string, unknown>> = message.headers ?? {};
  const texts = Object.entries(headers).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  const type = message.contentType;
  return { ...Object.fromEntries(texts), ...(type === undefined ? {} : { 'content-type': type }) };
}
