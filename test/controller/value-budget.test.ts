/** What is kept of which Secret by a wide read: values that are wanted, within a budget; and that whoever reads one by name has all of it. */
import assert from 'node:assert/strict';
import { ClusterCache } from '../../runtime/controller/cluster-cache.ts';
import type { Selection } from '../../runtime/controller/source.ts';
import { type BudgetLimits, isLightened, ValueBudget } from '../../runtime/controller/value-budget.ts';
import type { KubeClient, ListOptions, ListPage, WatchEvent } from '../../runtime/kube/client.ts';
import type { Collection } from '../../runtime/kube/resources.ts';
import { isDigest, sameValue } from '../../runtime/kube/value-digest.ts';
import { compose } from '../../runtime/pull-secret-injection/reconciler/compose.ts';
import type { KubeObject, SecretObject } from '../../runtime/rules/kubernetes/object.ts';
import { redact } from '../../runtime/rules/redacted.ts';
import { eventually } from '../control-plane/eventually.ts';
import { suite, table } from '../support/suite.ts';

const test = suite('what is kept of Secrets');
const LIMITS: BudgetLimits = { namespace: 1000, total: 2500, share: 10 };
const KEY = '.dockerconfigjson';

function secret(place: string, size: number, metadata: Partial<KubeObject['metadata']> = {}): SecretObject {
  const [namespace = '', name = ''] = place.split('/');
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace, uid: place, resourceVersion: '1', ...metadata },
    type: 'kubernetes.io/dockerconfigjson',
    data: { [KEY]: redact('A'.repeat(size)) },
  };
}

function isKept(object: KubeObject): boolean {
  const value = (object as SecretObject).data?.[KEY];
  return value !== undefined && !isDigest(value);
}

function budgetFor(...places: readonly string[]): ValueBudget {
  const budget = new ValueBudget('on-demand', LIMITS);
  budget.want({}, new Set(places));
  return budget;
}

table(
  test,
  [
    { name: 'one that fits', reason: 'the usual', weigh: ['a/1:900'], kept: ['a/1'] },
    {
      name: 'more than a namespace may have',
      reason: 'only that namespace is concerned',
      weigh: ['a/1:900', 'a/2:200', 'b/1:900'],
      kept: ['a/1', 'b/1'],
    },
    {
      name: 'small ones beside a heavy one',
      reason: 'what still fits is kept',
      weigh: ['a/1:2000', 'a/2:900', 'a/3:100'],
      kept: ['a/2', 'a/3'],
    },
    {
      name: 'more than all may have',
      reason: 'each namespace keeps its share all the same',
      weigh: ['a/1:1000', 'b/1:1000', 'c/1:1000', 'c/2:10', 'd/1:8'],
      kept: ['a/1', 'b/1', 'c/2', 'd/1'],
    },
    {
      name: 'one that becomes light',
      reason: 'it takes the place of the earlier one',
      weigh: ['a/1:2000', 'a/1:10', 'a/2:990'],
      kept: ['a/1', 'a/2'],
    },
    {
      name: 'one that becomes heavy',
      reason: 'its weight of before is free again',
      weigh: ['a/1:900', 'a/1:2000', 'a/2:900'],
      kept: ['a/2'],
    },
    { name: 'nothing in it', reason: 'weighs nothing', weigh: ['a/1:0'], kept: ['a/1'] },
  ],
  ({ weigh, kept }) => {
    const pairs = weigh.map((one) => one.split(':'));
    const budget = budgetFor(...pairs.map(([place = '']) => place));
    const found = new Map<string, boolean>();
    for (const [place = '', size] of pairs) {
      found.set(place, isKept(budget.keep(secret(place, Number(size)))));
    }
    assert.deepEqual(
      [...found].filter(([, is]) => is).map(([place]) => place),
      kept,
    );
  },
);

test('what is deleted gives its room back', () => {
  const budget = budgetFor('a/1', 'a/2');
  budget.keep(secret('a/1', 900));
  budget.forget(secret('a/1', 900));
  assert.equal(budget.total, 0);
  assert.ok(isKept(budget.keep(secret('a/2', 900))));
});

test('of what is not ours only what is said to us is kept, and long annotations weigh', () => {
  const budget = budgetFor('a/1', 'b/1');
  const annotations = { 'pullwright.dev/grant-namespaces': 'b', 'example.com/note': 'x'.repeat(5000) };
  const labels = { 'example.com/team': 'a', 'pullwright.dev/mark': 'b' };
  const kept = budget.keep(secret('a/1', 10, { annotations, labels, managedFields: [{ manager: 'm' }] }));
  assert.deepEqual(kept.metadata.annotations, { 'pullwright.dev/grant-namespaces': 'b' });
  assert.deepEqual(kept.metadata.labels, { 'pullwright.dev/mark': 'b' });
  assert.equal(kept.metadata.managedFields, undefined);
  assert.ok(isKept(kept));
  const long = { 'pullwright.dev/grant-namespaces': 'b'.repeat(5000) };
  assert.ok(!isKept(budget.keep(secret('b/1', 10, { annotations: long }))));
});

test('what nobody wants is not kept, and is wanted no more when the last one lets go', () => {
  const budget = new ValueBudget('on-demand', LIMITS);
  assert.equal((budget.keep(secret('a/1', 10)) as SecretObject).data, undefined);
  const [one, other] = [{}, {}];
  for (const who of [one, other]) budget.want(who, new Set(['a/1']));
  const kept = budget.keep(secret('a/1', 10));
  assert.ok(isKept(kept));
  budget.want(one, new Set());
  assert.ok(!budget.isIdle(kept));
  budget.want(other, new Set());
  assert.ok(budget.isIdle(kept));
  assert.ok(!isKept(budget.keep(kept)));
  assert.equal(budget.total, 0);
});

test('of a copy of ours everything is kept but its value, which can still be compared', () => {
  const budget = new ValueBudget('digest', LIMITS);
  const copy = secret('a/1', 5000, { labels: { team: 'a' }, managedFields: [{ manager: 'm' }] });
  const kept = budget.keep(copy) as SecretObject;
  assert.deepEqual(kept.metadata, copy.metadata);
  assert.ok(!isKept(kept));
  const [has, was, other] = [kept, copy, secret('a/1', 5001)].map((one) => one.data?.[KEY] ?? redact(''));
  assert.ok(has !== undefined && was !== undefined && other !== undefined);
  assert.ok(sameValue(has, was));
  assert.ok(sameValue(was, has));
  assert.ok(!sameValue(has, other));
  assert.ok(!budget.wants(kept), 'a digest is all that is asked of a copy');
});

test('of a copy that somebody filled with keys a hundred are known', () => {
  const data = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`key-${at}`, redact('AA==')]));
  const kept = new ValueBudget('digest').keep({ ...secret('a/1', 1), data }) as SecretObject;
  assert.equal(Object.keys(kept.data ?? {}).length, 100);
});

test('what is wanted and does not fit is there without its value, which is the same as no other', () => {
  const kept = budgetFor('a/1').keep(secret('a/1', 5000)) as SecretObject;
  const value = kept.data?.[KEY];
  assert.ok(value !== undefined && isDigest(value));
});

const HEAVY = 5 * 2 ** 20;
const WIDE: Selection = {
  apiVersion: 'v1',
  kind: 'Secret',
  values: 'on-demand',
  fieldSelector: 'type=kubernetes.io/dockerconfigjson',
};
const NAMED: Selection = { apiVersion: 'v1', kind: 'Secret', namespace: 'a', name: '1' };

/** A watch on which nothing ever comes. */
async function* quiet(signal: AbortSignal): AsyncGenerator<WatchEvent> {
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  yield { type: 'BOOKMARK', resourceVersion: '1' };
}

/** A cluster with one Secret of five megabytes; lists by name wait until they are let. */
function cacheOf(named: Promise<void>): ClusterCache {
  const client = {
    list: async (collection: Collection, { lean }: Required<ListOptions>): Promise<ListPage> => {
      if (collection.namespace !== undefined) await named;
      return { items: [lean(secret('a/1', HEAVY), 0)], resourceVersion: '1', bytes: HEAVY };
    },
    watch: async (_: unknown, { signal }: { readonly signal: AbortSignal }) => quiet(signal),
  };
  return new ClusterCache(client as unknown as KubeClient);
}

for (const order of ['the wide read first', 'the named read first'] as const) {
  test(`who reads a Secret by name has all of it: ${order}`, async () => {
    const gate = Promise.withResolvers<void>();
    const cache = cacheOf(gate.promise);
    const seen = (): KubeObject | undefined =>
      cache.store.get({ apiVersion: 'v1', kind: 'Secret', namespace: 'a', name: '1' });
    const first = order === 'the wide read first';
    const one = cache.source(first ? WIDE : NAMED);
    if (!first) gate.resolve();
    await eventually(() => assert.equal(one.status.is, 'synced'));
    assert.equal(isLightened(seen() as KubeObject), first);
    const other = cache.source(first ? NAMED : WIDE);
    gate.resolve();
    await eventually(() => assert.equal(other.status.is, 'synced'));
    assert.ok(isKept(seen() as KubeObject));
    assert.ok(!isLightened(seen() as KubeObject));
    // The answer to a write goes the same way.
    cache.observe(secret('a/1', HEAVY, { resourceVersion: '2' }));
    assert.ok(isKept(seen() as KubeObject));
    cache.close();
  });
}

test('a wide read alone keeps the name', async () => {
  const cache = cacheOf(Promise.resolve());
  const source = cache.source(WIDE);
  await eventually(() => assert.equal(source.status.is, 'synced'));
  const seen = cache.store.get({ apiVersion: 'v1', kind: 'Secret', namespace: 'a', name: '1' });
  assert.ok(seen !== undefined && !isKept(seen));
  cache.observe(secret('a/1', HEAVY, { resourceVersion: '2' }));
  const written = cache.store.get({ apiVersion: 'v1', kind: 'Secret', namespace: 'a', name: '1' });
  assert.equal(written?.metadata.resourceVersion, '2');
  assert.ok(!isKept(written));
  cache.close();
});

test('what was not read is wanted while there is room for it', () => {
  const { data: _data, ...metadata } = secret('a/1', 10);
  const budget = budgetFor('a/1', 'a/2', 'b/1');
  const unread = budget.keep(metadata);
  assert.ok(isLightened(unread) && budget.wants(unread));
  assert.ok(budget.wants(budget.keep(secret('a/1', 10), 900)), 'a long text of it was left out');
  budget.keep(secret('a/2', 900));
  assert.ok(!budget.wants(budget.keep(secret('a/1', 10), 900)), 'the namespace has had its part');
  assert.ok(budget.wants(budget.keep(secret('b/1', 10), 900)));
  assert.ok(!budget.wants(budget.keep(secret('c/1', 10))), 'nobody asked for it');
});

/** A cluster with one Secret, of which a list has the metadata alone, and what was asked for by name. */
function metadataCluster(
  size: number,
  refused = 0,
): { readonly cache: ClusterCache; readonly asked: string[] } {
  const asked: string[] = [];
  const client = {
    list: async (_: Collection, { lean, metadataOnly }: Required<ListOptions>): Promise<ListPage> => {
      assert.equal(metadataOnly, true);
      const { data: _data, type: _type, ...metadata } = secret('a/1', 0);
      return { items: [lean(metadata, 0)], resourceVersion: '1', bytes: 100 };
    },
    get: async ({ name }: { readonly name: string }) => {
      asked.push(name);
      if (asked.length <= refused) throw new Error('not now');
      return secret('a/1', size);
    },
    watch: async (_: unknown, { signal }: { readonly signal: AbortSignal }) => quiet(signal),
  };
  const timing = { backOff: { firstMs: 1, maxMs: 5 } };
  return { cache: new ClusterCache(client as unknown as KubeClient, timing), asked };
}

test('a value that could not be read is asked for again', async () => {
  const { cache, asked } = metadataCluster(100, 2);
  const source = cache.source(WIDE);
  await eventually(() => assert.equal(source.status.is, 'synced'));
  await source.want?.({}, new Set(['a/1']));
  const seen = (): SecretObject =>
    cache.store.get({ apiVersion: 'v1', kind: 'Secret', namespace: 'a', name: '1' }) as SecretObject;
  const place = { source: { namespace: 'a', name: '1' }, object: seen() };
  assert.equal(compose([place], 'FirstWins').bad[0]?.reason, 'SourceUnread', 'not that it is empty');
  await eventually(() => assert.ok(isKept(seen())));
  assert.equal(asked.length, 3);
  cache.close();
});

table(
  test,
  [
    { name: 'one that fits', reason: 'it is read by name', size: 100_000, kept: true, asked: 1 },
    { name: 'too large', reason: 'it is read once, and left', size: HEAVY, kept: false, asked: 1 },
  ],
  async ({ size, kept, asked: times }) => {
    const { cache, asked } = metadataCluster(size);
    const source = cache.source(WIDE);
    await eventually(() => assert.equal(source.status.is, 'synced'));
    const seen = (): SecretObject | undefined =>
      cache.store.get({ apiVersion: 'v1', kind: 'Secret', namespace: 'a', name: '1' }) as SecretObject;
    assert.equal(seen()?.type, 'kubernetes.io/dockerconfigjson', 'what the server has judged');
    assert.deepEqual([seen()?.data, asked], [undefined, []], 'nobody wants it yet');
    const who = {};
    const told: string[] = [];
    source.subscribe(({ metadata }) => told.push(metadata.name));
    await source.want?.(who, new Set(['a/1']));
    assert.deepEqual([isKept(seen() as KubeObject), asked.length], [kept, times]);
    assert.deepEqual(told, ['1'], 'also that it is too large');
    assert.notEqual(seen()?.data, undefined);
    await source.want?.(who, new Set(['a/1', 'b/1']));
    assert.equal(asked.length, times, 'nothing has changed');
    await source.want?.(who, new Set());
    assert.equal(seen()?.data === undefined || !isKept(seen() as KubeObject), true);
    cache.close();
  },
);

test.run();
