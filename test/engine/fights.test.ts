/** commit(): who undoes our writes is given way to; an API server that refuses them is nobody of the kind. */
import assert from 'node:assert/strict';
import { commit, commitStatus } from '../../runtime/engine/apply.ts';
import type { Author, ChangeSet } from '../../runtime/engine/changes.ts';
import { type Cluster, FightBreaker } from '../../runtime/engine/cluster.ts';
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
  differences: [],
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
  /** What became of the last. */
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
