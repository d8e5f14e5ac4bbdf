/**
 * Whether a broker answers, asked again and again: a client that reconnects by itself in silence says nothing of a connection that is
 * dead.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { withDeadline } from '../../core/parallel.ts';
import { recordOf } from '../../core/record.ts';
import type { WireMessage } from '../cloud-event.ts';

// Bounds on what a broker is waited for: a connection that hangs answers nothing, and nothing says that it hangs.

/** An event that has not been confirmed by then counts as not published. It may arrive all the same, and then comes twice. */
export const PUBLISH_MS = 30_000;
/** What a broker is waited for once everything that was being handled has been: a process has half a minute to end. */
export const GOODBYE_MS = 5000;

/**
 * The result of `work`, or a rejection with code `ETIMEDOUT`. The work itself is not cancelled; its later result is ignored.
 */
export function within<T>(ms: number, work: Promise<T>): Promise<T> {
  return withDeadline(work, ms, () => Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' }));
}

export interface Pulse {
  /** False until the first answer. */
  connected(): boolean;
  /** Check at once, because a call has failed. */
  doubt(): void;
  stop(): void;
}

/** Pause between two questions, and for how long an answer is waited for. */
const PULSE_MS = 10_000;

/**
 * Starts checking, at once.
 *
 * @param ask resolves when the broker has answered; rejects with why it cannot be used
 * @param usable said when the broker becomes usable, and `unusable` when it is no longer
 */
export function feelPulse(
  ask: () => Promise<void>,
  note: BrokerNote,
  usable: { readonly message: string; readonly fields: Readonly<Record<string, string>> },
  unusable: string,
): Pulse {
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
        await within(PULSE_MS, ask());
        see(true);
      } catch (error) {
        see(false, error);
      }
      const signal = AbortSignal.any([over.signal, doubted.signal]);
      await sleep(PULSE_MS, undefined, { signal }).catch(() => undefined);
    }
  };
  void run();
  return {
    connected: () => alive === true,
    doubt: () => doubted.abort(),
    stop: () => over.abort(),
  };
}

// What the adapter and Sentinel need of a broker.

/** `done`: off the queue. `again`: to be delivered again. `dead`: to the dead letters, with a reason. */
export type Handled =
  | { readonly outcome: 'done' }
  | { readonly outcome: 'again' }
  | { readonly outcome: 'dead'; readonly reason: string };

/** Never throws; what cannot be done now answers `again`. */
export type Handler = (message: WireMessage) => Promise<Handled>;

export interface Consumer {
  /** Whether messages are being taken right now. */
  connected(): boolean;
  /** Takes no more messages, waits for those being handled, closes; a broker that does not answer is not waited for. Never throws. */
  close(): Promise<void>;
}

export interface Publisher {
  /** Resolves once the broker has it, and rejects after half a minute without an answer. */
  publish(message: { readonly id: string; readonly body: string }): Promise<void>;
  /** Whether the broker takes events right now. */
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
 * The code, or else the name, alone, and only where it is a plain word: the rest may hold the URL with its password, and names of projects
 * and accounts.
 */
export function codeOf(error: unknown): number | string {
  const { code, name } = recordOf(error);
  const known = [code, name].filter((one) => typeof one === 'number' || typeof one === 'string');
  return known.find((one) => /^[\w.-]{1,60}$/.test(`${one}`)) ?? 'unknown';
}

/** Pause before a message that could not be dead-lettered is given back: without it, it would be redelivered at once. */
const PAUSE_MS = 5000;

/** The messages of a consumer on their way, which its end waits for. */
export class Deliveries {
  readonly #handler: Handler;
  readonly #note: BrokerNote;
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  constructor(handler: Handler, note: BrokerNote) {
    this.#handler = handler;
    this.#note = note;
  }

  get closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Whether the message is off the queue, or to be delivered again: so is what comes after the end. @param bury publishes to the dead letters */
  take(message: WireMessage, bury: (reason: string) => Promise<unknown>): Promise<'done' | 'again'> {
    if (this.closed) return Promise.resolve('again');
    const work = this.#settle(message, bury).finally(() => this.#running.delete(work));
    this.#running.add(work);
    return work;
  }

  async #settle(message: WireMessage, bury: (reason: string) => Promise<unknown>): Promise<'done' | 'again'> {
    const handled = await this.#handler(message);
    if (handled.outcome !== 'dead') return handled.outcome;
    const { reason } = handled;
    try {
      await within(PUBLISH_MS, bury(reason));
    } catch (error) {
      this.#note('warn', 'A message could not be moved to the dead letters', { reason, code: codeOf(error) });
      await sleep(PAUSE_MS, undefined, { signal: this.#closing.signal }).catch(() => undefined);
      return 'again';
    }
    this.#note('warn', 'A message was moved to the dead letters', { reason, bytes: message.body.length });
    return 'done';
  }

  /** Takes nothing more. Resolves when everything that was taken has been handled. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#running);
  }
}

// Names of queues, exchanges, topics and subscriptions: those of the existing broker library, so that both can share a broker. Queues are
// declared exactly as that library does, because AMQP refuses a second declaration with other arguments; a message that can never be
// understood is published to the dead letters and then acknowledged.

/** Attribute or header that carries the event's id. */
export const MESSAGE_ID_HEADER = '_watermill_message_uuid';

/** @param routingKey one for publishing and binding: with two, a topic exchange drops every message */
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

/** Full resource names; the subscription of the dead letters keeps them until they are read. */
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

/** Deliveries of Pub/Sub before a message goes to the dead letters. */
export const DELIVERY_ATTEMPTS = 5;
