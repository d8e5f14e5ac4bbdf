/** Cached values of Secrets from a wide watch: only needed ones; a read by name returns the whole Secret. */
import assert from 'node:assert/strict';
import type { KubeObject, SecretObject } from '../../runtime/core/kubernetes/object.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { ClusterCache, isLightened, OnDemandValues, type Selection } from '../../runtime/engine/cache.ts';
import type { KubeClient, ListOptions, ListPage, WatchOptions } from '../../runtime/kube/client.ts';
import type { Collection } from '../../runtime/kube/resources.ts';
import { compose } from '../../runtime/pull-secret-injection/reconciler/sources.ts';
import { eventually } from '../control-plane/eventually.ts';
import { openWatch } from '../kube/scripted-server.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';

const KEY = '.dockerconfigjson';

function secret(place: string, size: number, metadata: Partial<KubeObject['metadata']> = {}): SecretObject {
  const [namespace = '', name = ''] = place.split('/');
  return {
    ...meta('v1 Secret', { name, namespace, uid: place, resourceVersion: '1', ...metadata }),
    type: 'kubernetes.io/dockerconfigjson',
    data: { [KEY]: redact('A'.repeat(size)) },
  };
}

function isKept(object: KubeObject): boolean {
  return (object as SecretObject).data?.[KEY] !== undefined;
}

test('of what is not ours only what is said to us is kept', () => {
  const values = new OnDemandValues();
  values.want({}, new Set(['a/1']));
  const annotations = { 'pullwright.dev/adopt': 'true', 'example.com/note': 'x'.repeat(5000) };
  const labels = { 'example.com/team': 'a', 'pullwright.dev/mark': 'b' };
  const kept = values.keep(secret('a/1', 10, { annotations, labels, managedFields: [{ manager: 'm' }] }));
  assert.deepEqual(kept.metadata.annotations, { 'pullwright.dev/adopt': 'true' });
  assert.deepEqual(kept.metadata.labels, { 'pullwright.dev/mark': 'b' });
  assert.equal(kept.metadata.managedFields, undefined);
  assert.ok(isKept(kept));
});

test('an unneeded value is not cached, and a value is dropped when its last user releases it', () => {
  const values = new OnDemandValues();
  assert.equal((values.keep(secret('a/1', 10)) as SecretObject).data, undefined);
  const [one, other] = [{}, {}];
  for (const who of [one, other]) values.want(who, new Set(['a/1']));
  const kept = values.keep(secret('a/1', 10));
  assert.ok(isKept(kept));
  values.want(one, new Set());
  assert.ok(!values.isIdle(kept));
  values.want(other, new Set());
  assert.ok(values.isIdle(kept));
  assert.ok(!isKept(values.keep(kept)));
});

const HEAVY = 5 * 2 ** 20;
const WIDE: Selection = {
  apiVersion: 'v1',
  kind: 'Secret',
  values: 'on-demand',
  fieldSelector: 'type=kubernetes.io/dockerconfigjson',
};
const NAMED: Selection = { apiVersion: 'v1', kind: 'Secret', namespace: 'a', name: '1' };

function stored({ store }: ClusterCache): SecretObject {
  const object = store.get({ apiVersion: 'v1', kind: 'Secret', namespace: 'a', name: '1' });
  assert.ok(object !== undefined);
  return object as SecretObject;
}

/** A cluster with one Secret of five megabytes; lists by name wait until they are let. */
function cacheOf(named: Promise<void>): ClusterCache {
  const client = {
    list: async (collection: Collection): Promise<ListPage> => {
      if (collection.namespace !== undefined) await named;
      return { items: [secret('a/1', HEAVY)], resourceVersion: '1', bytes: HEAVY };
    },
    watch: async (_: unknown, { signal }: WatchOptions) => openWatch(signal),
  };
  return new ClusterCache(client as unknown as KubeClient);
}

for (const order of ['the wide read first', 'the named read first'] as const) {
  test(`who reads a Secret by name has all of it: ${order}`, async () => {
    const gate = Promise.withResolvers<void>();
    const cache = cacheOf(gate.promise);
    const seen = (): SecretObject => stored(cache);
    const first = order === 'the wide read first';
    const one = cache.source(first ? WIDE : NAMED);
    if (!first) gate.resolve();
    await eventually(() => assert.equal(one.status.is, 'synced'));
    assert.equal(isLightened(seen()), first);
    const other = cache.source(first ? NAMED : WIDE);
    gate.resolve();
    await eventually(() => assert.equal(other.status.is, 'synced'));
    assert.ok(isKept(seen()));
    assert.ok(!isLightened(seen()));
    // The answer to a write goes the same way.
    cache.observe(secret('a/1', HEAVY, { resourceVersion: '2' }));
    assert.ok(isKept(seen()));
    cache.close();
  });
}

test('a wide read alone keeps the name', async () => {
  const cache = cacheOf(Promise.resolve());
  const source = cache.source(WIDE);
  await eventually(() => assert.equal(source.status.is, 'synced'));
  assert.ok(!isKept(stored(cache)));
  cache.observe(secret('a/1', HEAVY, { resourceVersion: '2' }));
  assert.equal(stored(cache).metadata.resourceVersion, '2');
  assert.ok(!isKept(stored(cache)));
  cache.close();
});

/** A cluster with one Secret that lists only metadata, and the names of its GET requests. */
function metadataCluster(
  size: number,
  refused = 0,
): { readonly cache: ClusterCache; readonly asked: string[] } {
  const asked: string[] = [];
  const client = {
    list: async (_: Collection, { metadataOnly }: ListOptions): Promise<ListPage> => {
      assert.equal(metadataOnly, true);
      const { data: _data, type: _type, ...metadata } = secret('a/1', 0);
      return { items: [metadata], resourceVersion: '1', bytes: 100 };
    },
    get: async ({ name }: { readonly name: string }) => {
      asked.push(name);
      if (asked.length <= refused) throw new Error('not now');
      return secret('a/1', size);
    },
    watch: async (_: unknown, { signal }: WatchOptions) => openWatch(signal),
  };
  const timing = { backOff: { firstMs: 1, maxMs: 5 } };
  return { cache: new ClusterCache(client as unknown as KubeClient, timing), asked };
}

test('a value that could not be read is asked for again', async () => {
  const { cache, asked } = metadataCluster(100, 2);
  const source = cache.source(WIDE);
  await eventually(() => assert.equal(source.status.is, 'synced'));
  await source.want?.({}, new Set(['a/1']));
  const place = { source: { namespace: 'a', name: '1' }, object: stored(cache) };
  assert.equal(compose([place], 'FirstWins').bad[0]?.reason, 'SourceUnread', 'not that it is empty');
  await eventually(() => assert.ok(isKept(stored(cache))));
  assert.equal(asked.length, 3);
  cache.close();
});

test('a value that is needed is read by name, once, and let go when it is not needed any more', async () => {
  const { cache, asked } = metadataCluster(100_000);
  const source = cache.source(WIDE);
  await eventually(() => assert.equal(source.status.is, 'synced'));
  assert.equal(stored(cache).type, 'kubernetes.io/dockerconfigjson', 'what the server has judged');
  assert.deepEqual([stored(cache).data, asked], [undefined, []], 'nobody wants it yet');
  const who = {};
  const told: string[] = [];
  source.subscribe(({ metadata }) => told.push(metadata.name));
  await source.want?.(who, new Set(['a/1']));
  assert.deepEqual([isKept(stored(cache)), asked.length], [true, 1]);
  assert.deepEqual(told, ['1']);
  await source.want?.(who, new Set(['a/1', 'b/1']));
  assert.equal(asked.length, 1, 'nothing has changed');
  await source.want?.(who, new Set());
  assert.equal(stored(cache).data, undefined);
  cache.close();
});
