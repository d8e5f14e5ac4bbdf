/**
 * Names of queues, exchanges, topics and subscriptions: those of the existing broker library, so that both can share a broker.
 *
 * Queues are declared exactly as the existing library does, because AMQP refuses a second declaration with other arguments; a
 * message that can never be understood is published to the dead letters and then acknowledged.
 */

/** Attribute or header that carries the event's id. */
export const MESSAGE_ID_HEADER = '_watermill_message_uuid';

export interface RabbitMqTopology {
  readonly exchange: string;
  readonly exchangeType: 'fanout' | 'topic' | 'direct' | 'headers';
  readonly queue: string;
  readonly routingKey: string;
  /** Where poison messages go. */
  readonly deadLetterExchange: string;
  readonly deadLetterQueue: string;
}

/**
 */
export function rabbitMqTopology(input: {
  readonly topic: string;
  readonly subscription: string;
  readonly exchange?: string;
  readonly exchangeType?: RabbitMqTopology['exchangeType'];
  readonly queue?: string;
  readonly routingKey?: string;
}): RabbitMqTopology {
  const queue = `${input.queue ?? input.topic}-${input.subscription}`;
  return {
    exchange: input.exchange ?? input.topic,
    exchangeType: input.exchangeType ?? 'fanout',
    queue,
    // One key for publishing and binding: with two, a topic exchange drops every message.
    routingKey: input.routingKey ?? '',
    deadLetterExchange: `${queue}-dlx`,
    deadLetterQueue: `${queue}-dlq`,
  };
}

export interface PubSubTopology {
  readonly topic: string;
  readonly subscription: string;
  readonly deadLetterTopic: string;
  /** Keeps the dead letters until somebody has read them. */
  readonly deadLetterSubscription: string;
  readonly maxDeliveryAttempts: number;
}

/** Full resource names. */
export function pubSubTopology(input: {
  readonly project: string;
  readonly topic: string;
  readonly subscription: string;
  readonly maxDeliveryAttempts?: number;
}): PubSubTopology {
  return {
    topic: `projects/${input.project}/topics/${input.topic}`,
    subscription: `projects/${input.project}/subscriptions/${input.subscription}`,
    deadLetterTopic: `projects/${input.project}/topics/${input.subscription}-dlq`,
    deadLetterSubscription: `projects/${input.project}/subscriptions/${input.subscription}-dlq`,
    maxDeliveryAttempts: input.maxDeliveryAttempts ?? 5,
  };
}
