/** Leader election by an injected clock and an API server of a few lines. The real one is in test/reconcile/failover.test.ts. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { ApiError } from '../../runtime/kube/api-error.ts';
import type { KubeClient } from '../../runtime/kube/client.ts';
import { LeaderElection, type LeaseClock } from '../../runtime/kube/lease.ts';
import { test } from '../support/suite.ts';

class Clock implements LeaseClock {
  wall = 1_700_000_000_000;
  mono = 0;
  now = (): number => this.wall;
  monotonic = (): number => this.mono;
  sleep = (ms: number): Promise<void> => {
    this.mono += ms;
    this.wall += ms;
    return Promise.resolve();
  };
}

type LeaseObject = KubeObject & {
  readonly spec: { readonly holderIdentity: string; readonly leaseTransitions: number };
};

/** One Lease with optimistic concurrency. */
function server(): { client: KubeClient; lease: () => LeaseObject; fail: { now: boolean } } {
  let stored: LeaseObject | undefined;
  let version = 0;
  const fail = { now: false };
  const save = (object: KubeObject): KubeObject => {
    version += 1;
    stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } } as LeaseObject;
    return stored;
  };
  const conflict = (): never => {
    throw new ApiError('Cannot update', { code: 'Conflict', status: 409, causes: [], retryPolicy: 'retry' });
  };
  const client = {
    get: () => (fail.now ? Promise.reject(new Error('down')) : Promise.resolve(stored)),
    create: (object: KubeObject) => Promise.resolve(stored === undefined ? save(object) : conflict()),
    replace: (object: KubeObject) =>
      Promise.resolve(
        object.metadata.resourceVersion === stored?.metadata.resourceVersion ? save(object) : conflict(),
      ),
  } as unknown as KubeClient;
  return { client, lease: () => stored ?? assert.fail(), fail };
}

function candidate(client: KubeClient, identity: string, clock: Clock): LeaderElection {
  return new LeaderElection({ client, namespace: 'ns', name: 'lease', identity, clock, random: () => 0 });
}

const forever = new AbortController().signal;

/** A Lease, its first candidate, which leads, and another one. */
async function led(): Promise<
  ReturnType<typeof server> & { clock: Clock; leader: LeaderElection; second: LeaderElection }
> {
  const [clock, api] = [new Clock(), server()];
  const leader = candidate(api.client, 'first', clock);
  assert.equal(await leader.acquire(forever), true);
  return { ...api, clock, leader, second: candidate(api.client, 'second', clock) };
}

/** Tries once. */
async function tries(election: LeaderElection): Promise<boolean> {
  const stop = new AbortController();
  const leads = election.acquire(stop.signal);
  stop.abort();
  return leads;
}

test('the first candidate leads, the second does not while the first renews', async () => {
  const { lease, leader, second } = await led();
  assert.equal(leader.isLeader(), true);
  assert.equal(await tries(second), false);
  assert.equal(lease().spec.holderIdentity, 'first');
});

test('a leader that is frozen longer than its renewal knows at once that it must not write', async () => {
  const { clock, leader } = await led();
  clock.mono += 9_999;
  assert.equal(leader.isLeader(), true);
  clock.mono += 1;
  assert.equal(leader.isLeader(), false);
});

test('a lease that does not change for its duration is taken, by the clock of the candidate', async () => {
  const { clock, lease, second } = await led();
  const before = clock.mono;
  assert.equal(await second.acquire(forever), true);
  assert.ok(clock.mono - before >= 15_000, 'not before the lease has run out');
  assert.equal(lease().spec.leaseTransitions, 1);
});

test('a renewal that is in flight when the lease is released neither holds it nor takes it again', async () => {
  const { client, lease, leader } = await led();
  const late = leader.acquire(forever);
  const read = client.get.bind(client);
  // One that arrives after the release has looked and before it writes, and one whose answer is late.
  client.get = async (ref) => {
    client.get = read;
    const found = await read(ref);
    await client.replace(found ?? assert.fail(), 'renewal');
    return found;
  };
  await leader.release();
  await late;
  assert.equal(lease().spec.holderIdentity, '');
  assert.equal(leader.isLeader(), false);
});

test('the wall clock may jump without anybody losing or taking the lease', async () => {
  const { clock, leader, second } = await led();
  clock.wall += 86_400_000;
  assert.equal(leader.isLeader(), true);
  assert.equal(await tries(second), false);
});

test('released, it is free for the next without waiting', async () => {
  const { clock, leader, second } = await led();
  await leader.release();
  const before = clock.mono;
  assert.equal(await second.acquire(forever), true);
  assert.equal(clock.mono, before);
});

test('a leader that cannot reach the server gives up when its renewal is overdue', async () => {
  const { clock, fail, leader } = await led();
  fail.now = true;
  await leader.keep(forever);
  assert.equal(leader.isLeader(), false);
  assert.ok(clock.mono >= 10_000 && clock.mono < 15_000, 'before anybody else can take it');
});

test('a Lease that another holder has acquired meanwhile is not released', async () => {
  const { client, lease, leader } = await led();
  await client.replace({ ...lease(), spec: { ...lease().spec, holderIdentity: 'second' } }, 'test');
  await leader.release();
  assert.equal(lease().spec.holderIdentity, 'second');
});

test('a renewal counts from before it was sent', async () => {
  const { client } = server();
  const clock = new Clock();
  const leader = candidate(client, 'first', clock);
  const read = client.get.bind(client);
  client.get = (ref) => {
    // Frozen between the look and the write.
    clock.mono += 9000;
    return read(ref);
  };
  assert.equal(await leader.acquire(forever), true);
  assert.equal(leader.isLeader(), true);
  clock.mono += 1000;
  assert.equal(leader.isLeader(), false, 'others may have counted from then');
});
