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

test('ends at once where the signal was given before it asked', () =>
  assert.rejects(clusterMark(silent, AbortSignal.abort()), { code: 'ClusterSilent' }));

test('ends when the signal is given while it waits', async () => {
  const given = new AbortController();
  const asked = clusterMark(silent, given.signal);
  given.abort();
  await assert.rejects(asked, { code: 'ClusterSilent' });
});

test.run();
