/** ClusterGuard: by what clusters are told apart, what is said, and what is remembered. */
import assert from 'node:assert/strict';
import type { Cluster } from '../../runtime/controller/cluster.ts';
import { ClusterGuard, ClusterTaken } from '../../runtime/controller/cluster-guard.ts';
import type { Remembered } from '../../runtime/controller/cluster-ownership.ts';
import type { ClaimMemory } from '../../runtime/controller/cluster-ownership-memory.ts';
import type { SharedClaims } from '../../runtime/controller/shared-claims.ts';
import { apiErrorOf } from '../../runtime/kube/api-error.ts';
import { createLogger } from '../../runtime/telemetry/logger.ts';
import { suite } from '../support/suite.ts';

const test = suite('ClusterGuard');

/** A cluster whose namespace has this UID; without one, it may not be read. */
function clusterWith(uid: string | undefined, server = 'https://a.example.com', leads = true): Cluster {
  const metadata = { name: 'kube-system', uid };
  const refusal = apiErrorOf({ verb: 'get', subject: 'Namespace/kube-system', status: 403, body: {} });
  const get = (): Promise<unknown> =>
    uid === undefined
      ? Promise.reject(refusal)
      : Promise.resolve({ apiVersion: 'v1', kind: 'Namespace', metadata });
  return { server, mayWrite: leads, client: { host: 'a', get } } as unknown as Cluster;
}

interface Scene {
  readonly guard: ClusterGuard;
  readonly log: readonly string[];
  readonly written: readonly Remembered[];
}

async function scene(
  management: Cluster,
  remembered: Remembered = {},
  hold?: SharedClaims['hold'],
): Promise<Scene> {
  const log: string[] = [];
  const written: Remembered[] = [];
  const memory: ClaimMemory = {
    read: () => Promise.resolve(remembered),
    write: (record) => {
      written.push(record);
      return Promise.resolve();
    },
  };
  const logger = createLogger({ write: (line) => log.push(line), level: () => 'info' });
  const claims = { hold } as SharedClaims;
  const sharing = hold === undefined ? undefined : { claims, isThere: () => true };
  const guard = new ClusterGuard({ management, memory, log: logger, sharing });
  for (const name of ['clusters/a', 'clusters/b']) guard.claims.enter(name);
  await guard.prepare();
  return { guard, log, written };
}

async function claim(guard: ClusterGuard, name: string, cluster: Cluster, isClone = false): Promise<string> {
  const mark = await guard.markOf(name, cluster, { isClone });
  await guard.take(name, mark, `Secret/${name}`);
  guard.claims.open(name, mark);
  return mark;
}

test('names both, what leads there, and what to do', async () => {
  const { guard } = await scene(clusterWith('u-hub'));
  await claim(guard, 'clusters/a', clusterWith('u-1'));
  await assert.rejects(
    claim(guard, 'clusters/b', clusterWith('u-1', 'https://other.example.com')),
    (error) => {
      assert.ok(error instanceof ClusterTaken);
      assert.equal(
        error.message,
        'Cannot look after hosted cluster "clusters/b": the kubeconfig in "Secret/clusters/b" leads to the cluster of "clusters/a", which has it first (kube-system has uid u-1)',
      );
      assert.match(error.hint ?? '', /pullwright\.dev\/clone/);
      assert.deepEqual([error.code, error.holder], ['SameCluster', 'clusters/a']);
      return true;
    },
  );
});

test('the management cluster is nobody’s', async () => {
  const { guard } = await scene(clusterWith('u-hub'));
  await assert.rejects(
    claim(guard, 'clusters/a', clusterWith('u-hub')),
    /leads to the management cluster itself/,
  );
});

test('a clone has a mark of its own, also one of the management cluster', async () => {
  const { guard } = await scene(clusterWith('u-hub'));
  await claim(guard, 'clusters/a', clusterWith('u-1'));
  assert.equal(await claim(guard, 'clusters/b', clusterWith('u-1'), true), 'u-1.clusters.b');
  await claim(guard, 'clusters/b', clusterWith('u-hub'), true);
});

test('without the right to read it the address is the mark, said once per change', async () => {
  const { guard, log } = await scene(clusterWith(undefined, 'https://hub'));
  await claim(guard, 'clusters/a', clusterWith(undefined, 'https://one'));
  await claim(guard, 'clusters/a', clusterWith(undefined, 'https://one'));
  await claim(guard, 'clusters/b', clusterWith('u-2', 'https://two'));
  assert.equal(log.filter((line) => line.includes('known by its address alone')).length, 2);
  await assert.rejects(claim(guard, 'clusters/b', clusterWith(undefined, 'https://one')), /"clusters\/a"/);
  await assert.rejects(claim(guard, 'clusters/b', clusterWith(undefined, 'https://hub')), /management/);
});

test('what another process remembered goes first', async () => {
  const { guard } = await scene(clusterWith('u-hub'), { 'u-1': 'clusters/a' });
  await assert.rejects(claim(guard, 'clusters/b', clusterWith('u-1')), /"clusters\/a"/);
  assert.equal(await claim(guard, 'clusters/a', clusterWith('u-1')), 'u-1');
});

test('it is remembered once per change, by the one that leads', async () => {
  const { guard, written } = await scene(clusterWith('u-hub'));
  await claim(guard, 'clusters/a', clusterWith('u-1'));
  await guard.save();
  await guard.save();
  assert.deepEqual(written, [{ 'u-1': 'clusters/a' }]);
  const standby = await scene(clusterWith('u-hub', 'https://hub', false));
  await claim(standby.guard, 'clusters/a', clusterWith('u-1'));
  await standby.guard.save();
  assert.deepEqual(standby.written, []);
});

/** Holders by mark, as replicas share them; each answer comes after all questions of the same instant were put. */
function heldBy(data: Record<string, string>): SharedClaims['hold'] {
  return async (name, mark) => {
    await Promise.resolve();
    data[mark] ??= name;
    return data[mark];
  };
}

for (const order of [
  ['clusters/a', 'clusters/b'],
  ['clusters/b', 'clusters/a'],
])
  test(`two names of one cluster are never refused for each other: ${order.join(', then ')}`, async () => {
    for (const held of [{}, { 'u-1': 'clusters/a' }, { 'u-1': 'clusters/b' }]) {
      const { guard } = await scene(clusterWith('u-hub'), {}, heldBy(held));
      const looks = await Promise.allSettled(order.map((name) => claim(guard, name, clusterWith('u-1'))));
      const refusals = looks.flatMap((look) => (look.status === 'rejected' ? [look.reason as unknown] : []));
      assert.equal(refusals.length, 1, 'one of them has it');
      const [refusal] = refusals;
      assert.ok(refusal instanceof ClusterTaken);
      assert.deepEqual(guard.claims.opened(), { 'u-1': refusal.holder }, 'who is named has it');
    }
  });

test('where the shared memory was lost, who writes there goes on', async () => {
  const held: Record<string, string> = {};
  const { guard } = await scene(clusterWith('u-hub'), {}, heldBy(held));
  await claim(guard, 'clusters/a', clusterWith('u-1'));
  delete held['u-1'];
  await assert.rejects(claim(guard, 'clusters/b', clusterWith('u-1')), /"clusters\/a"/);
  assert.deepEqual([held, guard.claims.opened()], [{}, { 'u-1': 'clusters/a' }]);
});

test.run();
