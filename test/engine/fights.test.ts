/** commit() yields to a writer that reverts our writes; an API server that rejects them is not such a writer. */
import assert from 'node:assert/strict';
import { commit, commitAction, commitStatus } from '../../runtime/engine/apply.ts';
import type { Author, ChangeSet } from '../../runtime/engine/changes.ts';
import { type Cluster, FightBreaker } from '../../runtime/engine/cluster.ts';
import type { Action, ReconcileError, Ref } from '../../runtime/engine/contract.ts';
import { ObjectStore } from '../../runtime/engine/store.ts';
import { apiErrorOf } from '../../runtime/kube/api-error.ts';
import { type Case, table, test } from '../support/suite.ts';

const AUTHOR: Author = { reconciler: 'global-pull-secret', key: { scope: 'local', name: 'global' } };
const metadata = { name: 'a', namespace: 'web', labels: { 'pullwright.dev/owner': AUTHOR.reconciler } };
const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...metadata, uid: 'u' } };
const change: ChangeSet = {
  verb: 'configured',
  ref: { role: 'hosted', apiVersion: 'v1', kind: 'ConfigMap', namespace: 'web', name: 'a' },
  desired: { ...object, data: { key: 'wanted' } },
  before: { ...object, data: { key: 'other' } },
};

/** A cluster that answers each write with the next of these. */
function clusterWith(statuses: readonly number[]): Cluster {
  const left = [...statuses];
  return {
    assertMayWrite: () => undefined,
    fights: new FightBreaker(() => 0),
    cache: { observe: () => undefined },
    client: {
      apply: () => {
        const status = left.shift() ?? 200;
        return status === 200
          ? Promise.resolve(object)
          : Promise.reject(apiErrorOf({ verb: 'apply', subject: 'ConfigMap/web/a', status, body: {} }));
      },
    },
  } as unknown as Cluster;
}

interface Row extends Case {
  readonly statuses: readonly number[];
  /** Result of the last write. */
  readonly last: string;
}

const times = (count: number, status: number): readonly number[] =>
  Array.from({ length: count }, () => status);

table<Row>(
  test,
  [
    { name: 'five that get through', reason: 'people edit', statuses: times(5, 200), last: 'configured' },
    { name: 'a sixth', reason: 'no person does that', statuses: times(6, 200), last: 'ManagedElsewhere' },
    {
      name: 'nine with an ended token, then one with a new one',
      reason: 'nobody has changed anything',
      statuses: [...times(9, 401), 200],
      last: 'configured',
    },
    {
      name: 'nine while a webhook is down',
      reason: 'the last one says so, and not that somebody else is at work',
      statuses: times(9, 500),
      last: 'ServerError',
    },
    {
      name: 'refusals between five that get through',
      reason: 'they count for nothing',
      statuses: [200, 503, 200, 503, 200, 503, 200, 503, 200],
      last: 'configured',
    },
    {
      name: 'refusals between six that get through',
      reason: 'and hide nothing',
      statuses: [200, 503, 200, 503, 200, 503, 200, 503, 200, 503, 200],
      last: 'ManagedElsewhere',
    },
  ],
  async ({ statuses, last }) => {
    const cluster = clusterWith(statuses);
    let became = '';
    for (const _ of statuses) {
      const done = await commit(change, AUTHOR, cluster);
      became = done.verb === 'failed' ? done.problem.code : done.verb;
    }
    assert.equal(became, last);
  },
);
test('a field that is undefined is one that is absent: a status that has no more is not written again', async () => {
  const live = { ...object, status: { conditions: [{ type: 'Ready', status: 'True' }] } };
  const cluster = clusterWith([]);
  Object.assign(cluster.cache, { store: { get: () => live } });
  const said = (conditions: object, summary?: object): Promise<boolean> =>
    commitStatus({ ref: change.ref, status: { conditions, summary } }, AUTHOR, cluster);
  assert.equal(await said([{ type: 'Ready', status: 'True', hint: undefined }]), false);
  assert.equal(await said([{ type: 'Ready', status: 'True' }], {}), true);
});

// JSON patches of objects that we do not own: they stop when another writer reverts them.

const ref: Ref = {
  role: 'hosted',
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'MutatingWebhookConfiguration',
  name: 'injection',
};
const { role: _role, name, ...kind } = ref;

/** Replaces the list with the desired one, for an object read at `version`. */
const replace = (version: number, wanted: readonly string[] = ['ours']): Action => ({
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
  assert.match(problem?.message ?? '', /repeatedly reverted by "argocd-controller"/);
  assert.match(problem?.hint ?? '', /stop the other, or remove the object here/);
  assert.equal(one.sent, 5);
  assert.deepEqual(
    await one.run(replace(6, ['ours', 'more'])),
    [],
    'another list is no answer to the last one',
  );
  one.now += 1_000_000;
  assert.deepEqual(await one.run(replace(7)), [], 'tried again later');
});

test('an object that was changed in between is a conflict, and not an invalid patch', async () => {
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

test('a fight over more objects than 10,000 is found', () => {
  const fights = new FightBreaker(() => 0);
  const round = (): boolean[] =>
    Array.from({ length: 15_000 }, (_, at) => fights.allows(`Secret/shop-${at}/pull`, () => 'same'));
  for (let count = 0; count < 5; count += 1) assert.ok(round().every(Boolean));
  assert.ok(!round().some(Boolean));
});
