/** Valid options of a fleet, and the errors for invalid ones. */
import assert from 'node:assert/strict';
import { parseFleet, readFleet } from '../../charts/fleet.ts';
import { FleetError } from '../../charts/fleet-problems.ts';
import { cases, test } from '../support/suite.ts';
import { BAD_FLEETS, IMAGE } from './fleet-rows.ts';

function problemsOf(text: string): readonly string[] {
  try {
    parseFleet(text, 'f');
  } catch (error) {
    assert.ok(error instanceof FleetError, String(error));
    return error.message
      .split('\n')
      .slice(1)
      .map((line) => line.trim());
  }
  return [];
}

test('fills in what a small fleet leaves out', () => {
  const { clusters } = parseFleet(`${IMAGE}clusters: [{ name: prod, systems: { global-pull-secret: } }]`);
  assert.deepEqual(clusters[0]?.context, {
    name: 'prod',
    kind: 'standalone',
    delivery: 'gitops',
    namespace: 'pullwright-system',
    image: 'registry.example.com/pullwright:0.1.0',
    discovery: false,
    hosted: [],
  });
  assert.deepEqual(
    clusters[0]?.sections.map((section) => section.system.name),
    ['global-pull-secret'],
  );
});

test('tells a management cluster which hosted clusters it serves', () => {
  const { clusters } = parseFleet(`${IMAGE}
defaults: { systems: { global-pull-secret: {} } }
clusters:
  - { name: hub, kind: management }
  - { name: a, kind: hosted, management: hub }
  - { name: b, kind: hosted, management: hub, delivery: reconciler, hostedCluster: { namespace: hc, controlPlaneNamespace: cp } }
`);
  assert.deepEqual(
    clusters[0]?.context.hosted.map((one) => [one.hostedCluster, one.controlPlaneNamespace, one.delivery]),
    [
      [{ namespace: 'clusters', name: 'a' }, 'clusters-a', 'gitops'],
      [{ namespace: 'hc', name: 'b' }, 'cp', 'reconciler'],
    ],
  );
});

test('puts a section over the defaults: maps merge, lists and sources are replaced, false switches off', () => {
  const { clusters } = parseFleet(`${IMAGE}
defaults:
  systems:
    global-pull-secret:
      agent: { restart: never, restartWindow: 1m }
      platforms: [AWS, Azure]
      source: { externalSecret: { store: vault, key: a } }
clusters:
  - name: a
    systems: { global-pull-secret: { agent: { restart: on-change }, platforms: [KubeVirt], source: { sops: {} } } }
  - { name: b, systems: { global-pull-secret: false } }
  - { name: c, systems: { global-pull-secret: true } }
`);
  assert.deepEqual(clusters[0]?.sections[0]?.config, {
    agent: { restart: 'on-change', restartWindow: '1m' },
    platforms: ['KubeVirt'],
    source: { sops: {} },
  });
  assert.deepEqual(clusters[1]?.sections, []);
  assert.equal(clusters[2]?.sections.length, 1);
});

test('reports ten mistakes at once, each at its line', () => {
  const found = problemsOf(`image: pullwright
namespac: x
defaults: { systems: { global-pull-secrets: {} } }
clusters:
  - name: Prod
  - { name: a, kind: hostd }
  - { name: b, path: ../x }
  - { name: b, discovery: true }
  - { name: h, kind: hosted, management: hub }
  - 7
`);
  assert.deepEqual(
    found.map((line) => /^f:(\d+):\d+ (\S+): /.exec(line)?.slice(1).join(' ')),
    [
      '1 image',
      '2 namespac',
      '3 defaults.systems.global-pull-secrets',
      '5 clusters[0].name',
      '6 clusters[1].kind',
      '7 clusters[2].path',
      '8 clusters[3].name',
      '8 clusters[3].discovery',
      '9 clusters[4].management',
      '10 clusters[5]',
    ],
  );
});

cases<[text: string, wanted: readonly RegExp[]]>(test, BAD_FLEETS, (text, wanted) => {
  const found = problemsOf(text);
  assert.equal(found.length, wanted.length, found.join('\n'));
  for (const [index, pattern] of wanted.entries()) assert.match(found[index] ?? '', pattern);
});

test('says a mistake in the defaults once, where it stands', () => {
  const found = problemsOf(`${IMAGE}
defaults: { systems: { global-pull-secret: { enforce: dney } } }
clusters: [{ name: a }, { name: b }, { name: c, systems: { global-pull-secret: { agent: {} } } }]
`);
  assert.deepEqual(found, [
    'f:3:55 defaults.systems.global-pull-secret.enforce: expected one of "warn", "deny", "off", got "dney": did you mean "deny"?',
  ]);
});

test('a line of a megabyte is read', () => {
  assert.match(
    problemsOf(`${IMAGE}clusters: [{ name: ${'a'.repeat(1 << 20)} }]\n`)[0] ?? '',
    /name: .*got a string of 1048576 characters/,
  );
});

test('readFleet() names the same mistakes without lines', () => {
  assert.throws(
    () => readFleet({ image: 'registry.example.com/p:1', clusters: [{ name: 'a', kindd: 'hosted' }] }),
    /Cannot read fleet "fleet": 1 problem\n {2}clusters\[0\]\.kindd: unknown field, did you mean "kind"\?/,
  );
});

test('nothing that can be written makes it throw anything else', () => {
  for (const value of [
    null,
    undefined,
    7,
    'x',
    [],
    { clusters: 7 },
    { clusters: [null, [], 'x'] },
    { defaults: { systems: 7 }, clusters: [{ systems: [] }] },
  ])
    assert.throws(() => readFleet(value), FleetError);
});
