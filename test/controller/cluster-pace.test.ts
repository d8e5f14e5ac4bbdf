/** A cluster that floods changes has one pace for all its watches, so that other clusters of the process are heard. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { ClusterCache } from '../../runtime/controller/cluster-cache.ts';
import type {
  GetOptions,
  KubeClient,
  ListPage,
  WatchEvent,
  WatchOptions,
} from '../../runtime/kube/client.ts';
import { Informer } from '../../runtime/kube/informer.ts';
import { costOfFailure, costOfLine, costOfPage, Pace } from '../../runtime/kube/pace.ts';
import type { Collection } from '../../runtime/kube/resources.ts';
import { PullwrightError } from '../../runtime/rules/errors.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
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

/** Watches and lists of one cluster. */
const READERS = 26;

const TOO_LARGE = new PullwrightError('Cannot list', { code: 'AnswerTooLarge' });

/** What so many take that each go on as soon as they may. */
function takenIn10Seconds(cost: number): number {
  let [now, taken] = [0, 0];
  const pace = new Pace({}, () => now);
  const due = Array.from({ length: READERS }, () => 0);
  const read = (reader: number): void => {
    for (let next = due[reader] ?? 0; next <= now; due[reader] = next) {
      next += Math.max(1 / 100, pace.taken(cost));
      taken += 1;
    }
  };
  for (; now < 10_000; now += 1) for (const reader of due.keys()) read(reader);
  return taken;
}

test('pages and heavy lines cost what they take to read, whoever of one cluster reads them', () => {
  for (const [what, cost, most] of [
    ['empty pages: 500 at once, and 25 a second', costOfPage(0), 750],
    [
      'pages that go on without having brought much: forty at once, and two a second',
      costOfPage(0, true),
      60,
    ],
    ['pages of two megabytes: as heavy as they are asked for', costOfPage(2 << 20), 288],
    ['pages of two megabytes and a half, as they come', costOfPage(5 << 19), 153],
    ['pages of eight megabytes: two at once, and one every sixteen seconds', costOfPage(8 << 20), 2],
    ['pages that are too large: twenty at once, and one a second', costOfFailure(TOO_LARGE, 9), 28],
    ['objects that are too large: as pages of eight megabytes', costOfFailure(TOO_LARGE), 2],
    ['other failures: as empty pages', costOfFailure(new Error('torn')), 750],
    ['lines of a megabyte: as many as can be stored at once', costOfLine(1 << 20), 937],
    ['lines of eight megabytes: two at once, and one every sixteen seconds', costOfLine(8 << 20), 2],
    ['lines that are heavier than any: one a minute', costOfLine(32 << 20), 1],
    ['light lines, as ever', costOfLine(500), 15_000],
  ] as const) {
    const taken = takenIn10Seconds(cost);
    assert.ok(taken <= most + READERS, `${what}: ${taken}`);
    assert.ok(taken >= most * 0.8, `${what}: ${taken}`);
  }
});

/** Lists that one cluster begins with, and the most that are read of them before others have had their turn. */
const LISTS = 45;

function cacheOf(list: () => Promise<ListPage>): ClusterCache {
  const watch = async function* (): AsyncGenerator<WatchEvent> {};
  const client = { list, watch: () => Promise.resolve(watch()) } as unknown as KubeClient;
  const cache = new ClusterCache(client);
  for (let at = 0; at < LISTS; at += 1) cache.source({ apiVersion: 'v1', kind: `Kind${at}` });
  return cache;
}

for (const [what, answer, most] of [
  [
    'pages of eight megabytes',
    () => Promise.resolve({ items: [], resourceVersion: '1', bytes: 8 << 20, next: 'more' }),
    3,
  ],
  ['answers that are too large, in whatever pages', () => Promise.reject(TOO_LARGE), 3],
] as const)
  test(`many lists of one cluster that each begin with ${what}`, async () => {
    let [asked, open, mostOpen] = [0, 0, 0];
    const cache = cacheOf(async () => {
      asked += 1;
      open += 1;
      mostOpen = Math.max(mostOpen, open);
      await delay(1);
      open -= 1;
      return answer();
    });
    await eventually(() => assert.ok(asked >= most - 1));
    await delay(500);
    cache.close();
    assert.ok(asked <= most, `${asked} pages at once`);
    assert.ok(mostOpen <= 2, `${mostOpen} pages at the same time`);
  });

test('objects that weigh little in a watch, and much when their values are asked for', async () => {
  let asked = 0;
  const metadata = (at: number) => ({ name: 'a', namespace: 'n', uid: 'u', resourceVersion: String(at) });
  const secret = (at: number): KubeObject => ({ apiVersion: 'v1', kind: 'Secret', metadata: metadata(at) });
  const flood = async function* ({ signal }: WatchOptions): AsyncGenerator<WatchEvent> {
    for (let at = 0; !signal.aborted; at += 1) {
      await delay(1);
      yield { type: 'MODIFIED', object: secret(at) };
    }
  };
  const client = {
    list: () => Promise.resolve({ items: [], resourceVersion: '1', bytes: 0 }),
    watch: (_: Collection, options: WatchOptions) => Promise.resolve(flood(options)),
    get: (_: unknown, { weighed }: GetOptions) => {
      asked += 1;
      weighed?.(8 << 20);
      return Promise.resolve(secret(asked));
    },
  } as unknown as KubeClient;
  const informer = new Informer({
    client,
    collection: { apiVersion: 'v1', kind: 'Secret' },
    selector: {},
    wantsWhole: () => true,
    sink: { replace: () => undefined, set: () => undefined, delete: () => undefined, state: () => undefined },
  });
  void informer.run();
  await eventually(() => assert.ok(asked >= 1));
  await delay(500);
  informer.stop();
  assert.ok(asked <= 2, `${asked} objects of eight megabytes at once`);
});

test('lists that hang do not keep the others of their cluster waiting', async () => {
  let asked = 0;
  const cache = cacheOf(() => {
    asked += 1;
    return asked <= 2
      ? new Promise(() => undefined)
      : Promise.resolve({ items: [], resourceVersion: '1', bytes: 0 });
  });
  await eventually(() => assert.ok(asked >= LISTS), { withinMs: 20_000 });
  cache.close();
});

test.run();
