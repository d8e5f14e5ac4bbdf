/** JSON patches of objects that are not ours: no more where somebody changes them back. */
import assert from 'node:assert/strict';
import { commitAction } from '../../runtime/engine/apply.ts';
import { type Cluster, FightBreaker } from '../../runtime/engine/cluster.ts';
import type { Action, ReconcileError, Ref } from '../../runtime/engine/contract.ts';
import { ObjectStore } from '../../runtime/engine/store.ts';
import { test } from '../support/suite.ts';

const ref: Ref = {
  role: 'hosted',
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'MutatingWebhookConfiguration',
  name: 'injection',
};
const { role: _role, name, ...kind } = ref;

/** The list as it is wanted, whatever version it was read in. */
const replace = (version: number, wanted: readonly string[] = ['ours']): Action => ({
  action: 'json-patch',
  ref,
  operations: [
    { op: 'test', path: '/metadata/resourceVersion', value: String(version) },
    { op: 'replace', path: '/webhooks', value: wanted },
  ],
});

interface Scene {
  now: number;
  fails: boolean;
  sent: number;
  last: readonly object[];
  run(action: Action): Promise<readonly ReconcileError[]>;
}

function scene(): Scene {
  const store = new ObjectStore();
  const managedFields = [{ manager: 'argocd-controller', operation: 'Update' as const }];
  store.set({ ...kind, metadata: { name, managedFields } });
  const one: Scene = {
    now: 0,
    fails: false,
    sent: 0,
    last: [],
    run: async (action) => {
      const author = { reconciler: 'pull-secret-injection', key: { scope: 'local', name: 'webhook' } };
      const done = await commitAction(action, author, cluster);
      return done.verb === 'failed' ? [done.problem] : [];
    },
  };
  const cluster = {
    assertMayWrite: () => undefined,
    fights: new FightBreaker(() => one.now),
    cache: { store, observe: () => undefined },
    client: {
      jsonPatch: (_ref: unknown, operations: readonly object[]) => {
        one.sent += 1;
        one.last = operations;
        return one.fails ? Promise.reject(new Error('the test failed')) : Promise.resolve({});
      },
    },
  } as unknown as Cluster;
  return one;
}

test('a list that is set back each time is left after the fifth time, and who sets it back is named', async () => {
  const one = scene();
  for (let round = 0; round < 5; round += 1) {
    one.now += 1000;
    assert.deepEqual(await one.run(replace(round)), []);
  }
  const [problem] = await one.run(replace(5));
  assert.deepEqual([problem?.code, problem?.retryPolicy], ['ManagedElsewhere', 'terminal']);
  assert.match(problem?.message ?? '', /changed back again and again, by "argocd-controller"/);
  assert.match(problem?.hint ?? '', /stop the other, or no longer ask for this here/);
  assert.equal(one.sent, 5);
  assert.deepEqual(
    await one.run(replace(6, ['ours', 'more'])),
    [],
    'another list is no answer to the last one',
  );
  one.now += 1_000_000;
  assert.deepEqual(await one.run(replace(7)), [], 'tried again later');
});

test('an object that somebody changed in between is a conflict, and not a patch that is wrong', async () => {
  const one = scene();
  await one.run(replace(3));
  assert.deepEqual(one.last[0], { op: 'replace', path: '/metadata/resourceVersion', value: '3' });
});

test('a patch that does not get through counts for nothing', async () => {
  const one = scene();
  one.fails = true;
  for (let round = 0; round < 20; round += 1) await one.run(replace(round));
  one.fails = false;
  assert.deepEqual(await one.run(replace(20)), []);
  assert.equal(one.sent, 21);
});
