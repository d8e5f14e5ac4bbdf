/** clusterMark(): nobody waits for a server whose answer nobody wants any more. */
import assert from 'node:assert/strict';
import type { Cluster } from '../../runtime/controller/cluster.ts';
import { clusterMark } from '../../runtime/controller/cluster-mark.ts';
import { suite } from '../support/suite.ts';

const test = suite('clusterMark()');
const silent = {
  server: 'https://a.example.com',
  client: { host: 'a', get: () => new Promise<never>(() => undefined) },
} as unknown as Cluster;

/** The code of the error, or that there is none after a turn of the event loop. */
function endOf(asked: Promise<unknown>): Promise<unknown> {
  const ended = asked.then(
    () => 'an answer',
    (error: unknown) => (error as { code?: string }).code,
  );
  return Promise.race([ended, new Promise((resolve) => setImmediate(resolve, 'it waits'))]);
}

test('ends at once where the signal was given before it asked', async () => {
  assert.equal(await endOf(clusterMark(silent, AbortSignal.abort())), 'ClusterSilent');
});

test('ends when the signal is given while it waits', async () => {
  const given = new AbortController();
  const asked = clusterMark(silent, given.signal);
  assert.equal(await endOf(asked), 'it waits');
  given.abort();
  assert.equal(await endOf(asked), 'ClusterSilent');
});

test.run();
