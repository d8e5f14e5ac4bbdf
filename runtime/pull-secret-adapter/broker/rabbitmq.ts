/**
 * RabbitMQ: durable exchange and queue, declared like those of the existing broker library, with publisher confirms and a
 * dead-letter queue. Without the latter, which that library lacks, one message of invalid JSON blocks its queue.
 */
import { type AsyncMessage, Connection, ConsumerStatus, type Envelope } from 'rabbitmq-client';
import { defined, stringsIn } from '../../core/record.ts';
import { type Redacted, reveal } from '../../core/redacted.ts';
import {
  type BrokerNote,
  type Consumer,
  codeOf,
  deliveriesTo,
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

/** AMQP heartbeat. A connection is closed after two missed heartbeats, which takes two minutes with the default of 60 s. */
const HEARTBEAT_SECONDS = 10;

/** Starts consuming. Reconnects and redeclares automatically. */
export function consumeRabbitMq(options: RabbitMqOptions, handler: Handler): Consumer {
  const { topology, note } = options;
  const connection = connect(options);
  const prefetch = options.prefetch ?? 20;
  const dead = connection.createPublisher({
    confirm: true,
    maxAttempts: 3,
    queues: [{ queue: topology.deadLetterQueue, durable: true }],
  });
  const deliveries = deliveriesTo(handler, note);
  let connected = false;
  const subscription = connection.createConsumer(
    {
      queue: topology.queue,
      queueOptions: { durable: true },
      exchanges: [{ exchange: topology.exchange, type: topology.exchangeType, durable: true }],
      // With an empty queue name, AMQP would replace an empty routing key by the name of the queue.
      queueBindings: [
        { queue: topology.queue, exchange: topology.exchange, routingKey: topology.routingKey },
      ],
      qos: { prefetchCount: prefetch },
      concurrency: prefetch,
      requeue: true,
    },
    async (message) => {
      const body = bytesOf(message);
      const bury = (reason: string): Promise<unknown> =>
        dead.send(letterOf(message, reason, topology.deadLetterQueue), body);
      const end = await deliveries.take({ body, attributes: attributesOf(message) }, bury);
      return end === 'done' ? ConsumerStatus.ACK : ConsumerStatus.REQUEUE;
    },
  );
  subscription.on('ready', () => {
    connected = true;
    note('info', 'Consuming from RabbitMQ', { queue: topology.queue });
  });
  subscription.on('error', (error: unknown) => {
    connected = false;
    note('warn', 'The RabbitMQ consumer failed; restarting it', { code: codeOf(error) });
  });
  connection.on('error', () => {
    connected = false;
  });
  return {
    connected: () => connected,
    close: async () => {
      const handled = deliveries.close();
      const ended = subscription.close().then(() => dead.close());
      await handled;
      await leave(connection, ended);
    },
  };
}

/** The dead letter, with the original headers, so that it can be moved back. */
function letterOf(message: AsyncMessage, reason: string, queue: string): Envelope {
  const { contentType, messageId } = message;
  return {
    routingKey: queue,
    durable: true,
    ...defined({ contentType, messageId }),
    headers: { ...(message.headers as object | undefined), 'x-pullwright-reason': reason },
  };
}

/** Opens a publisher of durable messages with publisher confirms. */
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

/** Closes the connection, and destroys it on a timeout. RabbitMQ then requeues unacknowledged messages. */
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
    note('warn', 'The connection to RabbitMQ failed; reconnecting', { code: codeOf(error) }),
  );
  return connection;
}

/** The body as bytes. The library has already parsed bodies with a JSON content type. */
function bytesOf(message: AsyncMessage): Uint8Array {
  const body: unknown = message.body;
  if (body instanceof Uint8Array) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body ?? null));
}

function attributesOf(message: AsyncMessage): Readonly<Record<string, string>> {
  const type = message.contentType;
  return { ...stringsIn(message.headers), ...(type === undefined ? {} : { 'content-type': type }) };
}
