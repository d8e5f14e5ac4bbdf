// deadline: 400 s
/** Pub/Sub by Google's client against the server of Google's Go module, built once and cached by Go. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Handled } from '../../runtime/brokers/broker.ts';
import { consumePubSub, publishPubSub } from '../../runtime/brokers/pubsub.ts';
import { pubSubTopology } from '../../runtime/brokers/topology.ts';
import { eventually } from '../control-plane/eventually.ts';
import { runProcess } from '../support/process.ts';
import { suite } from '../support/suite.ts';

const test = suite('Pub/Sub');
const go = await runProcess(['go', 'version']).catch(() => undefined);

if (go?.code !== 0) test.skip('delivery, redelivery and dead letters', 'Go is not installed');
else {
  test('delivery, redelivery and dead letters', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pullwright-pubsub-'));
    const program = join(folder, 'server');
    const source = new URL('./pubsub-server', import.meta.url).pathname;
    const built = await runProcess(['go', 'build', '-o', program, '.'], { cwd: source, deadlineMs: 360_000 });
    assert.equal(built.code, 0, built.stderr);
    const server = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] });
    const [address] = (await once(server.stdout, 'data')) as [Buffer];
    process.env['PUBSUB_EMULATOR_HOST'] = address.toString().trim();
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
    await publisher.close();
    await consumer.close();
    server.kill();
    rmSync(folder, { recursive: true });
  });
}

test.run();
