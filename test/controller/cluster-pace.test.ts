/** A cluster that floods changes has one pace for all its watches, so that other clusters of the process are heard. */
import assert from 'node:assert/strict';
import { ClusterCache } from '../../runtime/controller/cluster-cache.ts';
import type { KubeClient, WatchEvent, WatchOptions } from '../../runtime/kube/client.ts';
import type { Collection } from '../../runtime/kube/resources.ts';
import { eventually } from '../control-plane/eventually.ts';
import { suite } from '../support/suite.ts';

const test = suite('pace of a cluster');
const NAMES = ['a', 'b', 'c', 'd'];
const EACH = 8000;

test('four watches of one cluster together get what one of them would', async () => {
  let read = 0;
  const flood = async function* (name: string, { signal }: WatchOptions): AsyncGenerator<WatchEvent> {
    for (let at = 0; at < EACH && !signal.aborted; at += 1) {
      read += 1;
      const metadata = { name, uid: name, resourceVersion: String(at) };
      yield { type: 'MODIFIED', object: { apiVersion: 'v1', kind: 'ConfigMap', metadata } };
    }
  };
  const client = {
    list: () => Promise.resolve({ items: [], resourceVersion: '1', bytes: 0 }),
    watch: ({ namespace = '' }: Collection, options: WatchOptions) =>
      Promise.resolve(flood(namespace, options)),
  } as unknown as KubeClient;
  const cache = new ClusterCache(client);
  for (const namespace of NAMES) cache.source({ apiVersion: 'v1', kind: 'ConfigMap', namespace });
  await eventually(() => assert.ok(read >= 10_000));
  cache.close();
  // 10,000 at once, and 500 for each second that the machine took for them.
  assert.ok(read <= 20_000, `${read} of ${NAMES.length * EACH} changes were read at once`);
});

test.run();
