/** A node that books its turn while its clock is set: how long it waits is decided by what it asked, not by the jump. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import type { KubeClient } from '../../runtime/kube/client.ts';
import type { Clock } from '../../runtime/node/clock.ts';
import { BookedTurns } from '../../runtime/node/restart-leases.ts';
import { type Case, table, test } from '../support/suite.ts';

const NOW = 1_700_000_000_000;
const DAY = 86_400_000;
const LEASE = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  namespace: 'kube-system',
  name: 'turns',
};
const DAEMON_SET = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'kube-system', name: 'syncer' };

interface Row extends Case {
  /** From now to the turn that others left free; in milliseconds. */
  readonly nextInMs: number;
  /** How the clock is set while the booking is on its way to the API server. */
  readonly jumpMs: number;
  readonly requestMs: number;
  readonly waitsMs: number;
}

const ROWS: readonly Row[] = [
  { name: 'free', reason: 'nobody waits', nextInMs: 0, jumpMs: 0, requestMs: 0, waitsMs: 0 },
  { name: 'others first', reason: 'their turns', nextInMs: 4000, jumpMs: 0, requestMs: 0, waitsMs: 4000 },
  {
    name: 'a slow request',
    reason: 'the turn is an instant, not a time from the answer on',
    nextInMs: 4000,
    jumpMs: 0,
    requestMs: 1500,
    waitsMs: 2500,
  },
  {
    name: 'set back by a day',
    reason: 'it would wait for a day, with the credential in the file and the unit not restarted',
    nextInMs: 4000,
    jumpMs: -DAY,
    requestMs: 10,
    waitsMs: 3990,
  },
  {
    name: 'set forward by a day',
    reason: 'it would not wait, and restart beside others',
    nextInMs: 4000,
    jumpMs: DAY,
    requestMs: 10,
    waitsMs: 3990,
  },
];

table(test, ROWS, async ({ nextInMs, jumpMs, requestMs, waitsMs }) => {
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
