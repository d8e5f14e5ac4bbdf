/** Which replica is to have which shard: fair, stable, and nothing moves that need not. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { shardRows } from '../../runtime/rules/kubernetes/hosted-clusters.ts';
import { assignShards, shardLeases, shardOf } from '../../runtime/rules/kubernetes/shards.ts';
import { suite } from '../support/suite.ts';

const test = suite('shards');
/** `-`: nobody has it. */
const holders = (text: string): readonly (string | undefined)[] =>
  text.split('').map((one) => (one === '-' ? undefined : one));
const text = (assigned: readonly (string | undefined)[]): string =>
  assigned.map((one) => one ?? '-').join('');

const CASES: readonly {
  readonly name: string;
  readonly now: string;
  readonly replicas: string;
  readonly wanted: string;
  readonly reason: string;
}[] = [
  { name: 'the first replica', now: '------', replicas: 'a', wanted: 'aaaaaa', reason: 'all is its own' },
  {
    name: 'three at once',
    now: '------',
    replicas: 'cab',
    wanted: 'aabbcc',
    reason: 'the order of names decides',
  },
  { name: 'a second one comes', now: 'aaaaaa', replicas: 'ab', wanted: 'aaabbb', reason: 'half of it moves' },
  { name: 'at rest', now: 'abcabc', replicas: 'abc', wanted: 'abcabc', reason: 'nothing moves' },
  { name: 'one was killed', now: 'ab-ab-', replicas: 'ab', wanted: 'abaabb', reason: 'only its shards move' },
  {
    name: 'one is gone, its Leases are not',
    now: 'abcabc',
    replicas: 'ab',
    wanted: 'abaabb',
    reason: 'as if nobody had them',
  },
  {
    name: 'one more than the others',
    now: 'bba',
    replicas: 'ab',
    wanted: 'bba',
    reason: 'who has it keeps it',
  },
  {
    name: 'one too many',
    now: 'aabba',
    replicas: 'abc',
    wanted: 'aabbc',
    reason: 'the last of the surplus moves',
  },
  { name: 'no replica', now: 'a--', replicas: '', wanted: '---', reason: 'nobody is to have it' },
  { name: 'more replicas than shards', now: '--', replicas: 'abc', wanted: 'ab', reason: 'one waits' },
  {
    name: 'a replica that is named twice',
    now: '----',
    replicas: 'aab',
    wanted: 'aabb',
    reason: 'it is one',
  },
];

for (const { name, now, replicas, wanted, reason } of CASES)
  test(`assignShards(): ${name}`, () =>
    assert.equal(text(assignShards(holders(now), replicas.split(''))), wanted, reason));

const anyHolders = fc.array(fc.constantFrom('a', 'b', 'c', 'd', undefined), { minLength: 1, maxLength: 32 });
const anyReplicas = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { minLength: 1 });

test('assignShards() is fair, whole, settles at once, and takes from nobody who has not too many', () => {
  fc.assert(
    fc.property(anyHolders, anyReplicas, (now, replicas) => {
      const assigned = assignShards(now, replicas);
      const counts = replicas.map((replica) => assigned.filter((one) => one === replica).length);
      assert.ok(Math.max(...counts) - Math.min(...counts) <= 1, 'fair');
      assert.equal(
        counts.reduce((sum, count) => sum + count, 0),
        now.length,
        'whole',
      );
      assert.deepEqual(assignShards(assigned, replicas.toReversed()), assigned, 'settled');
      const lost = (replica: string): number =>
        now.filter((one, shard) => one === replica && assigned[shard] !== replica).length;
      for (const [at, replica] of replicas.entries()) {
        const had = now.filter((one) => one === replica).length;
        assert.equal(lost(replica), Math.max(0, had - (counts[at] ?? 0)), 'only what is too many');
      }
    }),
  );
});

test('shardOf() spreads names, and is not moved by what it was before', () => {
  const names = Array.from({ length: 1000 }, (_, at) => `clusters/hosted-${at}`);
  const counts = Array.from(
    { length: 8 },
    (_, shard) => names.filter((name) => shardOf(name, 8) === shard).length,
  );
  assert.ok(Math.min(...counts) > 80 && Math.max(...counts) < 170, counts.join());
  // Another version that divides otherwise would work on a cluster beside this one.
  assert.deepEqual(
    ['clusters/a', 'clusters/b', 'x/y'].map((name) => shardOf(name, 32)),
    [12, 13, 7],
  );
});

test('the Leases are known by their number: rights go by names', () => {
  assert.deepEqual(shardLeases(2), [
    'pullwright-reconciler-shard-0',
    'pullwright-reconciler-shard-1',
    'pullwright-reconciler-replica-0',
    'pullwright-reconciler-replica-1',
  ]);
});

const NOW = new Date('2026-01-01T00:02:00Z');
const deploymentOf = (...args: readonly unknown[]) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'pullwright-reconciler', namespace: 'pullwright-system' },
  spec: { template: { spec: { containers: [{ args }] } } },
});
const leaseOf = (shard: number, spec: object) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: `pullwright-reconciler-shard-${shard}`, namespace: 'pullwright-system' },
  spec,
});

test("shardRows() says whose each shard is, and which is nobody's", () => {
  const fresh = {
    holderIdentity: 'pod-a_1',
    renewTime: '2026-01-01T00:01:58.000000Z',
    leaseDurationSeconds: 15,
  };
  const leases = [
    leaseOf(0, fresh),
    leaseOf(1, { ...fresh, holderIdentity: '' }),
    leaseOf(2, { ...fresh, renewTime: '2026-01-01T00:00:44.000000Z' }),
  ];
  const rows = shardRows(deploymentOf('--discover', '--shards=4'), leases, NOW);
  assert.deepEqual(
    rows.map(({ state, reason, message }) => `${state} ${reason} ${message.split(':')[0]}`),
    [
      'Ready ShardOwned replica pod-a',
      'Attention ShardWithoutOwner no replica has it',
      'Attention ShardWithoutOwner replica pod-a had it, and renewed it last at 2026-01-01T00',
      'Attention ShardWithoutOwner no replica has it',
    ],
  );
  // Of a dump it is not known when it was taken.
  assert.equal(shardRows(deploymentOf('--shards=4'), leases, undefined)[2]?.state, 'Ready');
  assert.equal(shardRows(deploymentOf('--shards=4'), [], undefined)[0]?.state, 'Unknown');
  assert.equal(shardRows(deploymentOf('--shards=4'), [], NOW)[0]?.state, 'Attention');
});

test('shardRows() has no row where one replica looks after all, whatever the Deployment holds', () => {
  for (const args of [[], ['--shards=1'], ['--shards=x'], [4, null], ['--shards=0'], ['--shards=']])
    assert.deepEqual(shardRows(deploymentOf(...args), [], NOW), []);
  assert.equal(shardRows(deploymentOf('--shards=99'), [], NOW).length, 32, 'never more than there can be');
  assert.deepEqual(shardRows({ ...deploymentOf(), spec: { template: 'x' } }, [], NOW), []);
});

test.run();
