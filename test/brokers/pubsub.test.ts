// deadline: 400 s
// needs: Go
/** Pub/Sub by Google's client. */
import assert from 'node:assert/strict';
import type { Handled } from '../../runtime/pull-secret-adapter/broker/broker.ts';
import { pubSubTopology } from '../../runtime/pull-secret-adapter/broker/broker.ts';
import { consumePubSub, publishPubSub } from '../../runtime/pull-secret-adapter/broker/pubsub.ts';
import { eventually } from '../control-plane/eventually.ts';
import { test } from '../support/suite.ts';
import { openLine } from './line.ts';
import { startPubSub } from './pubsub-node.ts';

test('delivery, redelivery and dead letters', async () => {
  const server = await startPubSub();
  process.env['PUBSUB_EMULATOR_HOST'] = server.host;
  const topology = pubSubTopology('proj', 'hyperfleet-clusters', 'pullsecret');
  const notes: string[] = [];
  const options = {
    project: 'proj',
    topology,
    note: (_: string, text: string) => void notes.push(text),
    createIfMissing: true,
  };
  const got: string[] = [];
  const consumer = await consumePubSub(options, (message): Promise<Handled> => {
    const text = Buffer.from(message.body).toString();
    got.push(text);
    if (text === 'bad') return Promise.resolve({ outcome: 'dead', reason: 'no event' });
    return Promise.resolve({
      outcome: text === 'again' && got.filter((one) => one === text).length < 2 ? 'again' : 'done',
    });
  });
  const publisher = await publishPubSub(options);
  for (const body of ['good', 'bad', 'again']) await publisher.publish({ id: body, body });
  await eventually(() => assert.deepEqual(got.toSorted(), ['again', 'again', 'bad', 'good']), {
    withinMs: 30_000,
  });
  await eventually(() => assert.ok(notes.includes('A message was moved to the dead letters')));
  // The dead letter is kept, and can be read by whoever looks for it.
  const { PubSub } = await import('@google-cloud/pubsub');
  const reader = new PubSub({ projectId: 'proj' });
  const buried = Promise.withResolvers<string>();
  const letters = reader.subscription(topology.deadLetterSubscription);
  letters.on('message', (message) => {
    message.ack();
    buried.resolve(message.data.toString());
  });
  assert.equal(await buried.promise, 'bad');
  const [made] = await reader.subscription(topology.subscription).getMetadata();
  assert.equal(Number(made.retryPolicy?.minimumBackoff?.seconds), 10);
  await letters.close();
  await reader.close();
  await publisher.close();
  await consumer.close();
  server.stop();
});

test('a dead connection is not ready, and says so; one that comes back is', async () => {
  const server = await startPubSub();
  const line = await openLine(server.host);
  process.env['PUBSUB_EMULATOR_HOST'] = line.host;
  const topology = pubSubTopology('proj', 't', 's');
  const notes: string[] = [];
  const note = (_: string, text: string, fields: object = {}): void =>
    void notes.push(`${text} ${JSON.stringify(fields)}`);
  await (await publishPubSub({ project: 'proj', topology, note, createIfMissing: true })).close();
  line.cut();
  const got: string[] = [];
  const consumer = await consumePubSub({ project: 'proj', topology, note }, (message) => {
    got.push(Buffer.from(message.body).toString());
    return Promise.resolve({ outcome: 'done' });
  });
  // From the start, and not only after something has failed.
  assert.equal(consumer.connected(), false);
  const within = { withinMs: 60_000 };
  await eventually(() => assert.match(notes.join('\n'), /Pub\/Sub does not answer.*"code":/), within);
  assert.equal(consumer.connected(), false);
  line.repair();
  await eventually(() => assert.equal(consumer.connected(), true), within);
  const publisher = await publishPubSub({ project: 'proj', topology, note });
  await publisher.publish({ id: '1', body: 'one' });
  await eventually(() => assert.deepEqual(got, ['one']), within);
  line.cut();
  await eventually(() => assert.equal(consumer.connected(), false), within);
  line.repair();
  await eventually(() => assert.equal(consumer.connected(), true), within);
  await publisher.publish({ id: '2', body: 'two' });
  // What was not confirmed when the line was cut comes again, before or after.
  await eventually(() => assert.deepEqual([...new Set(got)].sort(), ['one', 'two']), within);
  await publisher.close();
  await consumer.close();
  line.close();
  server.stop();
});

test('a subscription that is not there is not ready', async () => {
  const server = await startPubSub();
  process.env['PUBSUB_EMULATOR_HOST'] = server.host;
  const topology = pubSubTopology('proj', 't', 'none');
  const notes: unknown[] = [];
  const note = (_: string, __: string, fields?: object): void => void notes.push(fields);
  const consumer = await consumePubSub({ project: 'proj', topology, note }, () =>
    Promise.resolve({ outcome: 'done' }),
  );
  await eventually(() => assert.deepEqual(notes.at(0), { code: 5 }), { withinMs: 60_000 });
  assert.equal(consumer.connected(), false);
  await consumer.close();
  server.stop();
});
