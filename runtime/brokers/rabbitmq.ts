/**
 * RabbitMQ: durable exchange and queue as the existing broker library declares them, publisher confirms, and dead letters, which that
 * library lacks: there one message that is no JSON stops the queue for good.
 */
import { type AsyncMessage, Connection, ConsumerStatus } from 'rabbitmq-client';
import { type Redacted, reveal } from '../rules/redacted.ts';
import type { BrokerNote, Consumer, Handler, Publisher } from './broker.ts';
import { MESSAGE_ID_HEADER, type RabbitMqTopology } from './topology.ts';

export interface RabbitMqOptions {
  /** `amqp://` or `amqps://`; holds a password. */
  readonly url: Redacted<string>;
  readonly topology: RabbitMqTopology;
  readonly note: BrokerNote;
  /** Messages handled at the same time. @default {20} */
  readonly prefetch?: number;
}

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
  let connected = false;
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
    },
    async (message) => {
      const body = bytesOf(message);
      const handled = await handler({ body, attributes: attributesOf(message) });
      if (handled.outcome === 'done') return ConsumerStatus.ACK;
      if (handled.outcome === 'again') return ConsumerStatus.REQUEUE;
      note('warn', 'A message was moved to the dead letters', { reason: handled.reason, bytes: body.length });
      await dead.send(
        {
          routingKey: topology.deadLetterQueue,
          durable: true,
          headers: { 'x-pullwright-reason': handled.reason },
        },
        body,
      );
      return ConsumerStatus.ACK;
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
      await subscription.close();
      await dead.close();
      await connection.close();
    },
  };
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
      await publisher.send({ ...envelope, headers: { [MESSAGE_ID_HEADER]: id } }, Buffer.from(body));
    },
    close: async () => {
      await publisher.close();
      await connection.close();
    },
  };
}

function connect({ url, note }: RabbitMqOptions): Connection {
  const connection = new Connection({
    url: reveal(url),
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
