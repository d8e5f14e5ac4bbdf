/** Replicas and shards of a reconciler: what is refused, and what each shard has of its own. */
import assert from 'node:assert/strict';
import { renderCluster } from '../../charts/app.ts';
import { readFleet } from '../../charts/fleet.ts';
import { FleetError, pathText } from '../../charts/fleet-problems.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { runMain } from '../support/process.ts';
import { test } from '../support/suite.ts';

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

for (const [value, says] of NUMBERS)
  test(`replicas: ${JSON.stringify(value)} (${typeof value})`, () => {
    assert.deepEqual(problemsOf(management({ replicas: value })), [`${PATH}.replicas: ${says(5)}`]);
    assert.deepEqual(
      problemsOf({}, { replicas: value }),
      [`defaults.reconciler.replicas: ${says(5)}`],
      'of the defaults',
    );
  });

const ONLY = 'only for kind "management": a shard is a part of its hosted clusters';
const LONG = 'a'.repeat(41);
const NAME = 'expected lower-case letters, digits and "-", at most 40';

for (const [reason, cluster, defaults, says] of [
  ['none', management({ shards: [] }), undefined, []],
  ['the same twice is one', management({ shards: ['eu', 'eu'] }), undefined, []],
  ['no name of a Lease', management({ shards: ['EU'] }), undefined, [`${PATH}.shards[0]: ${NAME}, got "EU"`]],
  ['too long', management({ shards: [LONG] }), undefined, [`${PATH}.shards[0]: ${NAME}, got "${LONG}"`]],
  ['a number of shards', management({ shards: 3 }), undefined, [`${PATH}.shards: expected a list, got 3`]],
  ['of a stand-alone cluster', { reconciler: { shards: ['eu'] } }, undefined, [`${PATH}.shards: ${ONLY}`]],
  ['defaults are for the clusters that they concern', {}, { shards: ['eu'] }, []],
] as const)
  test(`shards: ${reason}`, () => assert.deepEqual(problemsOf(cluster, defaults), says));

test('each shard has a Deployment, a Lease and an account, and each account the rights of the systems', () => {
  const fleet = readFleet({
    image: 'registry.example.com/pullwright:0.1.0',
    clusters: [
      {
        name: 'hub',
        kind: 'management',
        discovery: true,
        monitoring: true,
        reconciler: { shards: ['eu', 'us'], kubeconfigSecret: 'pullwright-kubeconfig' },
        systems: { 'registry-overrides': {} },
      },
    ],
  });
  const [hub] = fleet.clusters;
  const { objects } = renderCluster(fleet, hub ?? assert.fail()) as unknown as {
    objects: readonly TestObject[];
  };
  const names = ['pullwright-reconciler', 'pullwright-reconciler-eu', 'pullwright-reconciler-us'];
  const every = (kind: string) => objects.filter((object) => object.kind === kind);
  const perShard = [
    'Deployment',
    'ServiceAccount',
    'PodDisruptionBudget',
    'NetworkPolicy',
    'Service',
    'ServiceMonitor',
  ];
  for (const kind of perShard) {
    const found = every(kind).map(({ metadata }) => metadata.name);
    assert.deepEqual(
      found.filter((name) => name.startsWith('pullwright-reconciler')),
      names,
      kind,
    );
  }
  const pods = every('Deployment').map(({ spec }) => spec.template.spec);
  assert.deepEqual(
    pods.map(({ serviceAccountName }) => serviceAccountName),
    names,
  );
  const shardArgs = pods.map(({ containers }) =>
    containers[0].args.filter((arg: string) => arg.startsWith('--shard')),
  );
  assert.deepEqual(shardArgs, [[], ['--shard=eu'], ['--shard=us']]);
  for (const { metadata, subjects } of every('ClusterRoleBinding'))
    assert.deepEqual(
      subjects.map(({ name }: { name: string }) => name),
      names,
      metadata.name,
    );
  for (const { metadata, rules } of every('Role'))
    if (metadata.name.endsWith('-lease')) {
      const own = metadata.name.replace(/-lease$/, '');
      const named = rules.flatMap(({ resourceNames = [] }) => resourceNames);
      assert.deepEqual([...new Set(named)], [own, `lease-${own}`]);
    }
  const bounds = every('ValidatingAdmissionPolicy').map(({ metadata }) => metadata.name);
  for (const bound of bounds.filter((name) => name.startsWith('pullwright-reconciler-eu-')))
    assert.ok(
      bounds.includes(bound.replace('-eu-', '-us-')) && bounds.includes(bound.replace('-eu-', '-')),
      bound,
    );
});

test('--shard selects hosted clusters, and so goes with --discover', async () => {
  const { code, stderr } = await runMain(['reconcile', '--kubeconfig=none', '--shard=eu']);
  assert.equal(code, 2);
  assert.match(stderr, /^--shard requires --discover: it selects hosted clusters\n/);
});
