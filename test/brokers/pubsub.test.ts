// deadline: 400 s
// needs: Go
/** Pub/Sub by Google's client. */
import assert from 'node:assert/strict';
import type { Handled } from '../../runtime/pull-secret-adapter/broker/broker.ts';
import { pubSubTopology } from '../../runtime/pull-secret-adapter/broker/broker.ts';
import { consumePubSub, publishPubSub } from '../../runtime/pull-secret-adapter/broker/pubsub.ts';
import { eventually } from '../control-plane/eventually.ts';
import { test } from '../support/suite.ts';
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
  await eventually(() => assert.deepEqual(got.toSorted(), ['again', 'again', 'bad', 'good']));
  await eventually(() => assert.ok(notes.includes('Moved a message to the dead letters')));
  // The dead letter is stored, and can be read.
  const { PubSub } = await import('@google-cloud/pubsub');
  const reader = new PubSub({ projectId: 'proj' });
  const buried = Promise.withResolvers<string>();
  const letters = reader.subscription(topology.deadLetterSubscription);
  letters.on('message', (message) => {
    message.ack();
    buried.resolve(`${message.data.toString()}: ${message.attributes['x-pullwright-reason']}`);
  });
  assert.equal(await buried.promise, 'bad: no event');
  const [made] = await reader.subscription(topology.subscription).getMetadata();
  assert.equal(Number(made.retryPolicy?.minimumBackoff?.seconds), 10);
  await letters.close();
  await reader.close();
  await publisher.close();
  await consumer.close();
  server.stop();
});

test('a subscription that is not there is not ready', async () => {
  const server = await startPubSub();
  process.env['PUBSUB_EMULATOR_HOST'] = server.host;
  const topology = pubSubTopology('proj', 't', 'none');
  const notes: string[] = [];
  const note = (_: string, text: string, fields: object = {}): void =>
    void notes.push(`${text} ${JSON.stringify(fields)}`);
  const consumer = await consumePubSub({ project: 'proj', topology, note }, () =>
    Promise.resolve({ outcome: 'done' }),
  );
  await eventually(() => assert.match(notes.join('\n'), /Pub\/Sub is unreachable.*"code":5/));
  assert.equal(consumer.connected(), false);
  await consumer.close();
  server.stop();
});
