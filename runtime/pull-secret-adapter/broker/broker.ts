/** Broker interfaces, health checks and names. Clients reconnect silently, so a dead connection is detected only by requests. */
import { setTimeout as sleep } from 'node:timers/promises';
import { withDeadline } from '../../core/parallel.ts';
import { recordOf } from '../../core/record.ts';
import type { WireMessage } from '../cloud-event.ts';

// Timeouts of broker requests: a hanging connection reports no error.

/** Timeout for the confirmation of an event. An unconfirmed event is published again, so it may be delivered twice. */
export const PUBLISH_MS = 30_000;
/** Timeout for closing a connection after all messages are handled. A pod has 30 seconds to shut down. */
export const GOODBYE_MS = 5000;

/**
 * Returns the result of `work`, or rejects with code `ETIMEDOUT`. Does not cancel the work, but ignores its later result.
 */
export function within<T>(ms: number, work: Promise<T>): Promise<T> {
  return withDeadline(work, ms, () => Object.assign(new Error('request timed out'), { code: 'ETIMEDOUT' }));
}

/** Interval and timeout of the checks. */
const CHECK_MS = 10_000;

/**
 * Checks the broker now and periodically, and logs changes.
 *
 * @param ask resolves when the broker responds; rejects with the error otherwise
 * @param usable logged when the broker becomes usable; `unusable` when it no longer is
 */
export function checkPeriodically(
  ask: () => Promise<void>,
  note: BrokerNote,
  usable: { readonly message: string; readonly fields: Readonly<Record<string, string>> },
  unusable: string,
) {
  const over = new AbortController();
  let doubted = new AbortController();
  let alive: boolean | undefined;
  const see = (isAlive: boolean, fault?: unknown): void => {
    if (over.signal.aborted || alive === isAlive) return;
    alive = isAlive;
    if (isAlive) note('info', usable.message, usable.fields);
    else note('warn', unusable, { code: codeOf(fault) });
  };
  const run = async (): Promise<void> => {
    while (!over.signal.aborted) {
      doubted = new AbortController();
      try {
        await within(CHECK_MS, ask());
        see(true);
      } catch (error) {
        see(false, error);
      }
      const signal = AbortSignal.any([over.signal, doubted.signal]);
      await sleep(CHECK_MS, undefined, { signal }).catch(() => undefined);
    }
  };
  void run();
  return {
    /** Whether the last check succeeded; false before the first one. */
    connected: () => alive === true,
    /** Checks at once, because a request has failed. */
    doubt: () => doubted.abort(),
    stop: () => over.abort(),
  };
}

// Interfaces of a broker for the adapter and Sentinel.

/** `done`: acknowledge. `again`: requeue. `dead`: move to the dead letters, with a reason. */
export type Handled =
  | { readonly outcome: 'done' | 'again' }
  | { readonly outcome: 'dead'; readonly reason: string };

/** Never throws; returns `again` to retry later. */
export type Handler = (message: WireMessage) => Promise<Handled>;

export interface Consumer {
  /** Whether messages are being consumed. */
  connected(): boolean;
  /** Stops consuming, waits for messages in progress, then closes; does not wait for an unresponsive broker. Never throws. */
  close(): Promise<void>;
}

export interface Publisher {
  /** Resolves when the broker confirms the event; rejects after {@link PUBLISH_MS} without a confirmation. */
  publish(message: { readonly id: string; readonly body: string }): Promise<void>;
  /** Whether the broker accepts events. */
  connected(): boolean;
  /** Never throws. */
  close(): Promise<void>;
}

export type BrokerNote = (
  level: 'info' | 'warn',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;

/**
 * Returns the code or name of an error, if it is a plain word. Everything else may contain a URL with a password, or names of
 * projects and accounts.
 */
export function codeOf(error: unknown): number | string {
  const { code, name } = recordOf(error);
  const known = [code, name].filter((one) => typeof one === 'number' || typeof one === 'string');
  return known.find((one) => /^[\w.-]{1,60}$/.test(`${one}`)) ?? 'unknown';
}

/** Pause before a message that could not be dead-lettered is requeued; it would be redelivered at once otherwise. */
const PAUSE_MS = 5000;

/** Handles the messages of a consumer, and tracks those in progress for shutdown. */
export function deliveriesTo(handler: Handler, note: BrokerNote) {
  const closing = new AbortController();
  const { signal } = closing;
  const running = new Set<Promise<unknown>>();
  type Bury = (reason: string) => Promise<unknown>;
  const settle = async (message: WireMessage, bury: Bury): Promise<'done' | 'again'> => {
    const handled = await handler(message);
    if (handled.outcome !== 'dead') return handled.outcome;
    const { reason } = handled;
    try {
      await within(PUBLISH_MS, bury(reason));
    } catch (error) {
      note('warn', 'Cannot move a message to the dead letters', { reason, code: codeOf(error) });
      await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
      return 'again';
    }
    note('warn', 'Moved a message to the dead letters', { reason, bytes: message.body.length });
    return 'done';
  };
  return {
    isClosed: () => signal.aborted,
    /** Handles a message: `done` to acknowledge it, `again` to requeue it, as always after close. @param bury dead-letters it */
    take: (message: WireMessage, bury: Bury): Promise<'done' | 'again'> => {
      if (signal.aborted) return Promise.resolve('again');
      const work = settle(message, bury).finally(() => running.delete(work));
      running.add(work);
      return work;
    },
    /** Accepts no more messages. Resolves when all accepted ones are handled. */
    close: async (): Promise<void> => {
      closing.abort();
      await Promise.allSettled(running);
    },
  };
}

// Names of queues, exchanges, topics and subscriptions, equal to those of the existing broker library, so that both can share a
// broker. Queues are declared exactly like that library's, because AMQP rejects a declaration with other arguments. So invalid
// messages are published to a dead-letter queue and acknowledged.

/** Attribute or header with the event ID. */
export const MESSAGE_ID_HEADER = '_watermill_message_uuid';

/** @param routingKey for publishing and binding: if they differed, a topic exchange would drop every message */
export function rabbitMqTopology(
  { topic, subscription }: { readonly topic: string; readonly subscription: string },
  exchange: string = topic,
  exchangeType: 'fanout' | 'topic' | 'direct' = 'topic',
  routingKey = '',
) {
  const queue = `${topic}-${subscription}`;
  return { exchange, exchangeType, queue, routingKey, deadLetterQueue: `${queue}-dlq` } as const;
}

export type RabbitMqTopology = ReturnType<typeof rabbitMqTopology>;

/** Full resource names. The dead-letter subscription retains messages until they are read. */
export function pubSubTopology(project: string, topic: string, subscription: string) {
  const [topics, subscriptions] = [`projects/${project}/topics`, `projects/${project}/subscriptions`];
  return {
    topic: `${topics}/${topic}`,
    subscription: `${subscriptions}/${subscription}`,
    deadLetterTopic: `${topics}/${subscription}-dlq`,
    deadLetterSubscription: `${subscriptions}/${subscription}-dlq`,
  } as const;
}

export type PubSubTopology = ReturnType<typeof pubSubTopology>;

/** Deliveries before Pub/Sub dead-letters a message. */
export const DELIVERY_ATTEMPTS = 5;
