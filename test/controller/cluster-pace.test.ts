/** A cluster that floods changes has one pace for all its watches, so that other clusters of the process are heard. */
import assert from 'node:assert/strict';
import { ClusterCache } from '../../runtime/controller/cluster-cache.ts';
import type { KubeClient, WatchEvent, WatchOptions } from '../../runtime/kube/client.ts';
import { costOfLine, costOfPage, Pace } from '../../runtime/kube/pace.ts';
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

/** Watches and lists of one cluster. */
const READERS = 26;

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
    ['pages of eight megabytes', costOfPage(8 << 20), 102],
    ['lines of eight megabytes', costOfLine(8 << 20), 118],
    ['light lines, as ever', costOfLine(500), 15_000],
  ] as const) {
    const taken = takenIn10Seconds(cost);
    assert.ok(taken <= most + READERS, `${what}: ${taken}`);
    assert.ok(taken >= most * 0.8, `${what}: ${taken}`);
  }
});

test.run();
