// deadline: 400 s
/** Pub/Sub by Google's client. */
import assert from 'node:assert/strict';
import type { Handled } from '../../runtime/brokers/broker.ts';
import { consumePubSub, publishPubSub } from '../../runtime/brokers/pubsub.ts';
import { pubSubTopology } from '../../runtime/brokers/topology.ts';
import { eventually } from '../control-plane/eventually.ts';
import { suite } from '../support/suite.ts';
import { missingPubSub, startPubSub } from './pubsub-node.ts';

const test = suite('Pub/Sub');
const missing = await missingPubSub();

if (missing !== undefined) test.skip('delivery, redelivery and dead letters', missing);
else {
  test('delivery, redelivery and dead letters', async () => {
    const server = await startPubSub();
    process.env['PUBSUB_EMULATOR_HOST'] = server.host;
    const topology = pubSubTopology({
      project: 'proj',
      topic: 'hyperfleet-clusters',
      subscription: 'pullsecret',
    });
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
}

test.run();
