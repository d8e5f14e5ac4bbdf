// deadline: 240 s
// needs: RabbitMQ
/** RabbitMQ: every exchange type, what becomes of a message, dead letters, and a broker that is killed. */
import assert from 'node:assert/strict';
import { Connection } from 'rabbitmq-client';
import { redact } from '../../runtime/core/redacted.ts';
import type { Handled } from '../../runtime/pull-secret-adapter/broker/broker.ts';
import { rabbitMqTopology } from '../../runtime/pull-secret-adapter/broker/broker.ts';
import {
  consumeRabbitMq,
  publishRabbitMq,
  type RabbitMqOptions,
} from '../../runtime/pull-secret-adapter/broker/rabbitmq.ts';
import type { WireMessage } from '../../runtime/pull-secret-adapter/cloud-event.ts';
import { eventually } from '../control-plane/eventually.ts';
import { findPlanted, plantedPassword } from '../support/canary.ts';
import { test } from '../support/suite.ts';
import { startRabbitMq } from './rabbitmq-node.ts';

const text = ({ body }: WireMessage): string => Buffer.from(body).toString();

const rabbit = await startRabbitMq();
const probe = new Connection({ url: rabbit.url, retryHigh: 1000 });
probe.on('error', () => undefined);
const notes: string[] = [];

const options = (topic: string, exchangeType: 'fanout' | 'topic' | 'direct' = 'topic'): RabbitMqOptions => ({
  url: redact(rabbit.url),
  topology: rabbitMqTopology({ topic, subscription: 'sub' }, topic, exchangeType),
  note: (level, message, fields) => notes.push(`${level} ${message} ${JSON.stringify(fields)}`),
});

for (const type of ['fanout', 'topic', 'direct'] as const)
  test(`an event that is published into a ${type} exchange arrives, with its id`, async () => {
    const got: WireMessage[] = [];
    const consumer = consumeRabbitMq(options(type, type), (message) => {
      got.push(message);
      return Promise.resolve({ outcome: 'done' });
    });
    await eventually(() => assert.ok(consumer.connected()));
    const publisher = publishRabbitMq(options(type, type));
    await publisher.publish({ id: 'event-1', body: '{"specversion":"1.0"}' });
    await eventually(() => assert.equal(got.length, 1));
    assert.deepEqual(
      [text(got[0] as WireMessage), got[0]?.attributes['_watermill_message_uuid']],
      ['{"specversion":"1.0"}', 'event-1'],
    );
    await publisher.close();
    await consumer.close();
    assert.equal((await probe.queueDeclare({ queue: `${type}-sub`, passive: true })).messageCount, 0);
  });

test('what is given back comes again; what is dead keeps its body, its headers and its type', async () => {
  let times = 0;
  const consumer = consumeRabbitMq(options('dead'), (): Promise<Handled> => {
    times += 1;
    return Promise.resolve(times < 3 ? { outcome: 'again' } : { outcome: 'dead', reason: 'no event' });
  });
  await eventually(() => assert.ok(consumer.connected()));
  const publisher = probe.createPublisher({ confirm: true });
  const body = Buffer.from('{ not JSON');
  await publisher.send(
    { routingKey: 'dead-sub', contentType: 'application/json', headers: { 'ce-type': 'x.cluster.y' } },
    body,
  );
  const letter = await eventually(async () => {
    const found = await probe.basicGet({ queue: 'dead-sub-dlq', noAck: true });
    assert.ok(found !== undefined);
    return found;
  });
  assert.equal(times, 3);
  assert.deepEqual(
    [letter.body, letter.contentType, letter.headers],
    [body, 'application/json', { 'ce-type': 'x.cluster.y', 'x-pullwright-reason': 'no event' }],
  );
  await publisher.close();
  await consumer.close();
});

test('dead letters that cannot be written: the message stays, without a storm', async () => {
  await probe.queueDeclare({ queue: 'odd-sub-dlq', durable: true, arguments: { 'x-max-length': 1 } });
  let times = 0;
  const consumer = consumeRabbitMq(options('odd'), (): Promise<Handled> => {
    times += 1;
    return Promise.resolve({ outcome: 'dead', reason: 'no event' });
  });
  await eventually(() => assert.ok(consumer.connected()));
  const publisher = probe.createPublisher({ confirm: true });
  await publisher.send('odd-sub', Buffer.from('x'));
  await eventually(() => assert.match(notes.join('\n'), /Cannot move a message to the dead letters/));
  await consumer.close();
  assert.ok(times <= 2, `${times} deliveries`);
  await eventually(async () => {
    assert.equal((await probe.queueDeclare({ queue: 'odd-sub', passive: true })).messageCount, 1);
  });
  await publisher.close();
});

test('a broker that is killed loses nothing that it has confirmed, and is found again', async () => {
  const got = new Set<string>();
  let taken = 0;
  const broker = Promise.withResolvers<void>();
  const consumer = consumeRabbitMq(options('killed'), async (message) => {
    taken += 1;
    // The consumed message is still in progress when the broker stops.
    await broker.promise;
    got.add(text(message));
    return { outcome: 'done' };
  });
  await eventually(() => assert.ok(consumer.connected()));
  const publisher = publishRabbitMq(options('killed'));
  const sent = Array.from({ length: 500 }, (_, index) => `event-${index}`);
  await Promise.all(sent.map((body) => publisher.publish({ id: body, body })));
  await eventually(() => assert.ok(taken > 0));
  await rabbit.restart();
  broker.resolve();
  await eventually(() => assert.equal(got.size, 500));
  await eventually(() => assert.ok(consumer.connected()));
  await publisher.publish({ id: 'after', body: 'after' });
  await eventually(() => assert.ok(got.has('after')));
  await publisher.close();
  await consumer.close();
});

test('a refused password is said without the password', async () => {
  const url = rabbit.url.replace('guest:guest', `guest:${plantedPassword('broker')}`);
  const consumer = consumeRabbitMq({ ...options('refused'), url: redact(url) }, () =>
    Promise.resolve({ outcome: 'done' }),
  );
  await eventually(() => assert.match(notes.join('\n'), /connection to RabbitMQ failed.*ACCESS_REFUSED/));
  assert.equal(consumer.connected(), false);
  assert.equal(findPlanted(notes.join('\n')), undefined);
  await consumer.close();
});

test.lastly('the broker stops', async () => {
  await probe.close();
  await rabbit.stop();
});
