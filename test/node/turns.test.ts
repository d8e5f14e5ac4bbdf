/** The restart queue of a fleet: its table, and the budget for any number of nodes. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import type { KubeClient } from '../../runtime/kube/client.ts';
import { bookTurn, RESTART_MS, restartBudget, restartWindowMs } from '../../runtime/node/checkpoint.ts';
import type { Clock } from '../../runtime/node/clock.ts';
import { BookedTurns } from '../../runtime/node/restart-leases.ts';
import { randomFrom } from '../support/random.ts';
import { type Cases, cases, test } from '../support/suite.ts';

const WINDOWS: readonly (readonly [nodes: number, atOnce: number, ms: number])[] = [
  [1, 1, 0],
  [2, 1, 6000],
  [10, 1, 54_000],
  [11, 2, 30_000],
  [20, 2, 57_000],
  [100, 10, 59_400],
  [1000, 100, 59_940],
];
for (const [nodes, atOnce, ms] of WINDOWS)
  test(`${nodes} nodes: ${atOnce} at once, the last after ${ms} ms`, () => {
    assert.equal(restartBudget(nodes), atOnce);
    assert.equal(restartWindowMs(nodes), ms);
  });

const NOW = 1_700_000_000_000;
const DAY = 86_400_000;
const BOOKED: readonly (readonly [
  name: string,
  next: number | undefined,
  nodes: number,
  at: number,
  own?: number,
])[] = [
  ['nobody has asked yet: at once', undefined, 100, NOW],
  ['the last turn is long past: at once', NOW - DAY, 100, NOW],
  ['others are first: their turns are kept', NOW + 5000, 100, NOW + 5000],
  ['another node is restarting: the next turn is waited for', NOW + 4000, 2, NOW + 4000],
  ['twice in a row, nobody in between: its own restart is over', NOW + 4000, 1, NOW, NOW - 2000],
  ['the same in a fleet', NOW + 500, 100, NOW, NOW - 100],
  ['its own turn has not come, as after a kill: it is kept', NOW + 9000, 2, NOW + 9000, NOW + 3000],
  ['booked by a clock that is a day ahead: not believed', NOW + DAY, 100, NOW],
];
for (const [name, next, nodes, at, own] of BOOKED)
  test(name, () => {
    const turn = bookTurn({ now: NOW, next, nodes, own });
    assert.equal(turn.at, at);
    assert.ok(turn.next > turn.at);
  });

test('1 to 1000 nodes that ask in any order: the budget holds at every instant, and the last is done in time', () => {
  const random = randomFrom(20_261_122);
  for (let nodes = 1; nodes <= 1000; nodes += 1) {
    const asks = Array.from({ length: nodes }, () => NOW + Math.floor(random() * nodes * 20)).sort(
      (a, b) => a - b,
    );
    let next: number | undefined;
    const begins = asks.map((now) => {
      const turn = bookTurn({ now, next, nodes });
      next = turn.next;
      return turn.at;
    });
    const budget = restartBudget(nodes);
    for (const [index, at] of begins.entries()) {
      // Restarts that began within the last RESTART_MS are still running.
      const before = begins[index - budget];
      if (before !== undefined) assert.ok(at - before >= RESTART_MS, `${nodes} nodes, turn ${index}`);
    }
    assert.ok((begins.at(-1) ?? 0) - NOW <= 80_000, `${nodes} nodes take ${(begins.at(-1) ?? 0) - NOW} ms`);
    if (nodes <= 100) assert.ok((begins.at(-1) ?? 0) - NOW <= 65_000);
  }
});

test('nodes that ask again and again: never more of them restart at once than the budget', () => {
  const random = randomFrom(20_261_123);
  for (const nodes of [1, 2, 10, 35, 100]) {
    const begun = new Map<number, number>();
    let again = 0;
    let [now, next, last, own]: [number, number | undefined, number, number] = [NOW, undefined, -1, 0];
    for (let asks = 0; asks < 2000; asks += 1) {
      now += Math.floor((random() * 8000) / restartBudget(nodes));
      const node = random() < 0.5 ? last : Math.floor(random() * nodes);
      // A node books again when its restart is complete, usually well before RESTART_MS.
      const begin = begun.get(node);
      if (node < 0 || (begin !== undefined && begin + RESTART_MS / 20 > now)) continue;
      const turn = bookTurn({ now, next, nodes, own: node === last ? own : undefined });
      if (next !== undefined && turn.at < next) again += 1;
      const busy = [...begun].filter(
        ([other, at]) => other !== node && at <= turn.at && turn.at - at < RESTART_MS,
      );
      assert.ok(
        busy.length < restartBudget(nodes),
        `${nodes} nodes, ask ${asks}: ${busy.length} restart already`,
      );
      begun.set(node, turn.at);
      [next, last, own] = [turn.next, node, turn.at];
    }
    assert.ok(again > 10, `${nodes} nodes: ${again} asks were not kept waiting`);
  }
});

// A node books its slot while its clock is set: the wait depends on the booking, not on the jump.

const LEASE = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  namespace: 'kube-system',
  name: 'turns',
};
const DAEMON_SET = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'kube-system', name: 'syncer' };

type Row = [nextInMs: number, jumpMs: number, requestMs: number, waitsMs: number];

const ROWS: Cases<Row> = [
  ['free', 'nobody waits', 0, 0, 0, 0],
  ['others first', 'their turns', 4000, 0, 0, 4000],
  ['a slow request', 'the turn is an instant, not a time from the answer on', 4000, 0, 1500, 2500],
  [
    'set back by a day',
    'it would wait for a day, with the credential in the file and the unit not restarted',
    4000,
    -DAY,
    10,
    3990,
  ],
  ['set forward by a day', 'it would not wait, and restart beside others', 4000, DAY, 10, 3990],
];

cases<Row>(test, ROWS, async (nextInMs, jumpMs, requestMs, waitsMs) => {
  const time = { now: NOW, monotonic: 0 };
  const slept: number[] = [];
  const clock: Clock = {
    now: () => time.now,
    monotonic: () => time.monotonic,
    sleep: (ms) => {
      slept.push(ms);
      return Promise.resolve(true);
    },
  };
  const lease: KubeObject = {
    apiVersion: LEASE.apiVersion,
    kind: 'Lease',
    metadata: { namespace: LEASE.namespace, name: LEASE.name },
    spec: { renewTime: new Date(NOW + nextInMs).toISOString() },
  };
  const client: Pick<KubeClient, 'get' | 'replace' | 'close'> = {
    get: (ref) =>
      Promise.resolve(
        ref.kind === 'Lease' ? lease : { ...lease, kind: 'DaemonSet', status: { desiredNumberScheduled: 2 } },
      ),
    replace: (object) => {
      time.now += jumpMs + requestMs;
      time.monotonic += requestMs;
      return Promise.resolve(object);
    },
    close: () => undefined,
  };
  const { promise, resolve } = Promise.withResolvers<void>();
  const turns = new BookedTurns({
    client: () => Promise.resolve(client as KubeClient),
    lease: LEASE,
    daemonSet: DAEMON_SET,
    nodeName: 'node-1',
    fallbackMs: 60_000,
    clock,
    granted: resolve,
    onError: (error) => assert.fail(error.message),
  });
  const { signal } = new AbortController();
  assert.equal(turns.granted(signal), false);
  await promise;
  assert.equal(turns.granted(signal), true);
  assert.equal(slept.at(-1), waitsMs);
});
