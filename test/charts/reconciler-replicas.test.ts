/** Numbers of replicas and shards of a reconciler that cannot be meant: what is said, once, and where. */
import assert from 'node:assert/strict';
import { readFleet } from '../../charts/fleet.ts';
import { FleetError, pathText } from '../../charts/fleet-problems.ts';
import { runProcess } from '../support/process.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('reconciler.replicas and reconciler.shards');

const PATH = 'clusters[0].reconciler';
const management = (reconciler: object): object => ({ name: 'hub', kind: 'management', reconciler });

/** The problems of a fleet with one cluster. */
function problemsOf(cluster: object, reconciler?: object): readonly string[] {
  try {
    readFleet({
      image: 'registry.example.com/pullwright:0.1.0',
      ...(reconciler === undefined ? {} : { defaults: { reconciler } }),
      clusters: [{ name: 'a', systems: {}, ...cluster }],
    });
    return [];
  } catch (error) {
    assert.ok(error instanceof FleetError, String(error));
    return error.problems.map(({ path, text }) => `${pathText(path)}: ${text}`);
  }
}

const NUMBERS: readonly (readonly [value: unknown, says: (most: number) => string])[] = [
  [0, () => 'expected at least 1, got 0'],
  [-1, () => 'expected at least 1, got -1'],
  [1.5, () => 'expected a whole number, got 1.5'],
  ['3', () => 'expected a number, got "3"'],
  [10 ** 9, (most) => `expected at most ${most}, got 1000000000`],
  [true, () => 'expected a number, got true'],
  [null, () => 'expected a number, got nothing'],
  [[3], () => 'expected a number, got a list'],
  [Number.NaN, () => 'expected a number, got NaN'],
  [Number.POSITIVE_INFINITY, () => 'expected a number, got Infinity'],
];

for (const [field, most] of [
  ['replicas', 5],
  ['shards', 32],
] as const)
  for (const [value, says] of NUMBERS)
    test(`${field}: ${JSON.stringify(value)} (${typeof value})`, () => {
      assert.deepEqual(problemsOf(management({ [field]: value })), [`${PATH}.${field}: ${says(most)}`]);
      assert.deepEqual(
        problemsOf({}, { [field]: value }),
        [`defaults.reconciler.${field}: ${says(most)}`],
        'of the defaults',
      );
    });

interface Row extends Case {
  readonly cluster: object;
  readonly defaults?: object;
  readonly says: readonly string[];
}

const FEWER = (shards: number, replicas: number): string =>
  `invalid value ${shards}: must be at least ${replicas}, the number of replicas, so that each has one; or 1, so that one replica looks after all`;
const ALONE = (kind: string): string =>
  `only for kind "management": a ${kind} cluster is one, and one replica leads it`;

table<Row>(
  test,
  [
    {
      name: 'as many shards as replicas',
      reason: 'each has one',
      cluster: management({ replicas: 3, shards: 3 }),
      says: [],
    },
    {
      name: 'one shard',
      reason: 'one replica leads, the others stand by',
      cluster: management({ replicas: 5, shards: 1 }),
      says: [],
    },
    {
      name: 'fewer shards than replicas',
      reason: 'a replica would never have one',
      cluster: management({ replicas: 3, shards: 2 }),
      says: [`${PATH}.shards: ${FEWER(2, 3)}`],
    },
    {
      name: 'fewer shards than the replicas of the defaults',
      reason: 'the cluster says the shards',
      cluster: management({ shards: 3 }),
      defaults: { replicas: 5 },
      says: [`${PATH}.shards: ${FEWER(3, 5)}`],
    },
    {
      name: 'fewer shards than replicas, both in the defaults',
      reason: 'it is said where it stands',
      cluster: management({}),
      defaults: { replicas: 3, shards: 2 },
      says: [`defaults.reconciler.shards: ${FEWER(2, 3)}`],
    },
    {
      name: 'shards of a stand-alone cluster',
      reason: 'there is nothing to divide',
      cluster: { reconciler: { shards: 6 } },
      says: [`${PATH}.shards: ${ALONE('standalone')}`],
    },
    {
      name: 'one shard of a stand-alone cluster',
      reason: 'the field means nothing there',
      cluster: { reconciler: { shards: 1 } },
      says: [`${PATH}.shards: ${ALONE('standalone')}`],
    },
    {
      name: 'shards in the defaults, and a stand-alone cluster',
      reason: 'defaults are for the clusters that they concern',
      cluster: {},
      defaults: { shards: 6 },
      says: [],
    },
  ],
  ({ cluster, defaults, says }) => assert.deepEqual(problemsOf(cluster, defaults), says),
);

test('--shards says the same of what is no number of shards, and of what cannot be divided', async () => {
  const main = new URL('../../main.ts', import.meta.url).pathname;
  const said = (...flags: readonly string[]) =>
    runProcess([process.execPath, main, 'reconcile', '--kubeconfig', 'none', ...flags]);
  const bad = ['0', '-1', '1.5', 'three', '1000000000', ''];
  const ran = await Promise.all(bad.map((value) => said(`--shards=${value}`, '--discover')));
  for (const [at, { code, stderr }] of ran.entries()) {
    assert.equal(code, 2);
    const expected = `invalid value "${bad[at]}" for --shards: must be a whole number from 1 to 32`;
    assert.equal(stderr.split('\n')[0], expected);
  }
  assert.match(
    (await said('--shards=3')).stderr,
    /^--shards goes with --discover: one cluster alone cannot be divided among replicas\n/,
  );
  assert.match(
    (await said('--shards=3', '--discover')).stderr,
    /^--shards goes with --lease-namespace: a Lease says whose each shard is\n/,
  );
});

test.run();
