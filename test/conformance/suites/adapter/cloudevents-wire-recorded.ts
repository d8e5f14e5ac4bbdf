/* oxlint-disable complexity -- one branch for each table of the case file */
import { isDeepStrictEqual } from 'node:util';
import {
  DELIVERY_ATTEMPTS,
  MESSAGE_ID_HEADER,
  pubSubTopology,
  rabbitMqTopology,
} from '../../../../runtime/pull-secret-adapter/broker/broker.ts';
import { encodeCloudEvent, parseCloudEvent } from '../../../../runtime/pull-secret-adapter/cloud-event.ts';
import type { ConformanceCase, ConformanceSuite } from '../../suite.ts';

interface Message {
  readonly attributes: Record<string, string> | null;
  readonly data: string;
  readonly handler:
    | string
    | {
        readonly ID: string;
        readonly Type: string;
        readonly Source: string;
        readonly Data: string;
        readonly Time: string;
      };
}

interface File {
  readonly go_sdk_json: readonly string[];
  readonly pubsub_messages: readonly {
    attributes: Record<string, string>;
    data: string;
    ordering_key: string;
  }[];
  readonly subscriber_accepts: Readonly<Record<string, Message>>;
  readonly subscriptions: readonly { name: string; topic: string; dead_letter: string }[];
}

type Input =
  | { kind: 'round trip'; text: string }
  | { kind: 'publish'; text: string }
  | { kind: 'accept'; attributes: Record<string, string>; data: string }
  | { kind: 'subscription'; name: string; topic: string }
  | { kind: 'amqp' };

export const suite: ConformanceSuite<Input> = {
  cases(document) {
    const file = document as File;
    const found: ConformanceCase<Input>[] = [];
    for (const text of file.go_sdk_json)
      found.push({
        name: `round trip ${text.slice(0, 140)}`,
        input: { kind: 'round trip', text },
        expected: text,
      });
    for (const one of file.pubsub_messages)
      found.push({ name: 'publish', input: { kind: 'publish', text: one.data }, expected: one });
    for (const [name, one] of Object.entries(file.subscriber_accepts)) {
      const input: Input = { kind: 'accept', attributes: one.attributes ?? {}, data: one.data };
      found.push({
        name,
        input,
        expected:
          typeof one.handler === 'string'
            ? 'not delivered'
            : { ...one.handler, Data: JSON.parse(one.handler.Data) as unknown },
      });
    }
    for (const one of file.subscriptions) {
      const expected = one.dead_letter;
      found.push({
        name: one.name,
        input: { kind: 'subscription', name: one.name, topic: one.topic },
        expected,
      });
    }
    if ('amqp' in file) {
      found.push({
        name: 'amqp names',
        input: { kind: 'amqp' },
        expected: {
          exchange: 'topic',
          queue: 'topic-sub',
          key: '',
          header: '_watermill_message_uuid',
        },
      });
    }
    return found;
  },
  answer(input) {
    if (input.kind === 'amqp') {
      const names = rabbitMqTopology({ topic: 'topic', subscription: 'sub' });
      return {
        exchange: names.exchange,
        queue: names.queue,
        key: names.routingKey,
        header: MESSAGE_ID_HEADER,
      };
    }
    if (input.kind === 'subscription') {
      const [, project = '', , subscription = ''] = input.name.split('/');
      const names = pubSubTopology(project, input.topic.split('/').at(-1) ?? '', subscription);
      if (names.subscription !== input.name || names.topic !== input.topic) return names;
      return `dead_letter_topic:"${names.deadLetterTopic}"  max_delivery_attempts:${DELIVERY_ATTEMPTS}`;
    }
    const attributes = input.kind === 'accept' ? input.attributes : {};
    const text = input.kind === 'accept' ? input.data : input.text;
    const read = parseCloudEvent({ body: new TextEncoder().encode(text), attributes });
    if (!read.ok) return 'not delivered';
    if (input.kind === 'round trip') return encodeCloudEvent(read.event);
    if (input.kind === 'publish') {
      return {
        attributes: { [MESSAGE_ID_HEADER]: read.event.id },
        data: encodeCloudEvent(read.event),
        ordering_key: '',
      };
    }
    const { id, type, source, time, data } = read.event;
    return { ID: id, Type: type, Source: source, Data: data, Time: time ?? '0001-01-01T00:00:00Z' };
  },
  accepts: (actual, expected) => isDeepStrictEqual(actual, expected),
  mutation: { file: 'runtime/pull-secret-adapter/cloud-event.ts', replace: '0\\.3', by: '0\\.4' },
};
