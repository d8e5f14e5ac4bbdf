/** What people may write into a fleet, and what they are told when it is wrong. */
import assert from 'node:assert/strict';
import { parseFleet, readFleet } from '../../charts/fleet.ts';
import { FleetError } from '../../charts/fleet-problems.ts';
import { plantedAuth, plantedPassword } from '../support/canary.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('parseFleet()');
const IMAGE = 'image: registry.example.com/pullwright:0.1.0\n';

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

interface Bad extends Case {
  readonly text: string;
  readonly wanted: readonly RegExp[];
}

const cluster = (fields: string): string => `${IMAGE}clusters:\n  - { name: a, ${fields} }\n`;
const section = (fields: string): string => cluster(`systems: { global-pull-secret: { ${fields} } }`);

const BAD: readonly Bad[] = [
  {
    name: 'an empty file',
    reason: 'the first thing a newcomer does',
    text: '',
    wanted: [/^the file is empty$/],
  },
  {
    name: 'only a comment',
    reason: 'no document either',
    text: '# later\n',
    wanted: [/^the file is empty$/],
  },
  { name: 'a list', reason: 'wrong top', text: '- a\n', wanted: [/f:1:1 wanted a map, got a list/] },
  {
    name: 'tabs',
    reason: 'YAML forbids them as indentation',
    text: `${IMAGE}clusters:\n\t- name: a\n`,
    wanted: [/f:3:1 a tab as indentation, wanted spaces/],
  },
  {
    name: 'a key twice',
    reason: 'the second would win in silence',
    text: `${IMAGE}clusters: [{ name: a }]\nclusters: [{ name: b }]\n`,
    wanted: [/f:3:1 this key stands twice/],
  },
  {
    name: 'two documents',
    reason: 'the second would be lost',
    text: `${IMAGE}clusters: [{ name: a }]\n---\na: 1\n`,
    wanted: [/f:\d+:\d+ the file holds 2 documents, wanted one/],
  },
  {
    name: 'an alias bomb',
    reason: 'billion laughs',
    text: `a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n`,
    wanted: [/aliases/],
  },
  {
    name: 'no cluster',
    reason: 'nothing to render is a mistake',
    text: `${IMAGE}clusters: []\n`,
    wanted: [/clusters: wanted at least one cluster/],
  },
  {
    name: 'no image',
    reason: 'required',
    text: 'clusters: [{ name: a }]\n',
    wanted: [/image: missing, wanted a text/],
  },
  {
    name: 'an image without tag',
    reason: 'pods would differ',
    text: 'image: registry.example.com/p\nclusters: [{ name: a }]\n',
    wanted: [/tag or digest/],
  },
  {
    name: 'a pull secret twice, and one that is no name',
    reason: 'a pod would be refused',
    text: `${IMAGE}imagePullSecrets: [a, a]\nclusters: [{ name: a, imagePullSecrets: [A_b] }]\n`,
    wanted: [
      /imagePullSecrets: names one Secret twice, wanted each once/,
      /clusters\[0\].imagePullSecrets\[0\]: .*lower-case letters/,
    ],
  },
  {
    name: 'folders in each other',
    reason: 'one would be stale for the other',
    text: `${IMAGE}clusters: [{ name: a, path: x }, { name: b, path: x/y }]\n`,
    wanted: [/"x\/y" is inside the folder of clusters\[0\]/],
  },
  {
    name: 'one folder twice',
    reason: 'they would overwrite each other',
    text: `${IMAGE}clusters: [{ name: a, path: x }, { name: b, path: x }]\n`,
    wanted: [/"x" is also the path of clusters\[0\]/],
  },
  {
    name: 'the output itself for one of two',
    reason: 'its stale files would be the other cluster',
    text: `${IMAGE}clusters: [{ name: a, path: . }, { name: b }]\n`,
    wanted: [/only a fleet of one cluster/],
  },
  {
    name: 'hosted without management',
    reason: 'nobody would reconcile it',
    text: cluster('kind: hosted'),
    wanted: [/management: missing, wanted the cluster that runs its control plane/],
  },
  {
    name: 'management of a stand-alone cluster',
    reason: 'has no meaning',
    text: cluster('management: b'),
    wanted: [/management: only for kind "hosted"/],
  },
  {
    name: 'upstream shape in git',
    reason: 'its hash is not known there',
    text: section('agent: { shape: upstream }'),
    wanted: [/agent\.shape: .*wanted delivery "reconciler"/],
  },
  {
    name: 'an SELinux type for a privileged container',
    reason: 'would do nothing',
    text: section('agent: { seLinuxType: x }'),
    wanted: [/seLinuxType: only with security "restricted"/],
  },
  {
    name: 'two sources',
    reason: 'two writers of one Secret',
    text: section('source: { sops: {}, externalSecret: { store: a, key: b } }'),
    wanted: [/source: wanted exactly one of externalSecret, sealedSecret, sops/],
  },
  {
    name: 'no source',
    reason: 'an empty map says nothing',
    text: section('source: {}'),
    wanted: [/wanted exactly one of/],
  },
  {
    name: 'a plain value as sealed',
    reason: 'somebody will paste it',
    text: section(
      `source: { sealedSecret: { encrypted: ${Buffer.from(`{"auths":{"a":{"auth":"${plantedAuth('sealed')}"}}}`).toString('base64')} } }`,
    ),
    wanted: [/this is no sealed value/],
  },
  {
    name: 'a credential as a field',
    reason: 'a fleet is in git',
    text: section(`auths: { a: { password: ${plantedPassword('inline')} } }`),
    wanted: [/auths: a credential may not stand in a fleet/],
  },
  {
    name: 'a credential in place of a key',
    reason: 'the text of it must not be shown',
    text: section(`source: { externalSecret: { store: ${plantedPassword('store')}, key: 1 } }`),
    wanted: [/store: .*got a text of \d+ characters/, /key: wanted a text/],
  },
  {
    name: 'a password in the repository',
    reason: 'a fleet is in git',
    text: `${IMAGE}gitops: { tool: flux, repository: 'https://u:${plantedPassword('url')}@git.example.com/x' }\nclusters: [{ name: a }]\n`,
    wanted: [/repository: a password may not stand in a fleet/],
  },
];

table(test, BAD, ({ text, wanted }) => {
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
    'f:3:55 defaults.systems.global-pull-secret.enforce: wanted one of "warn", "deny", "off", got "dney": did you mean "deny"?',
  ]);
});

test('a line of a megabyte is read', () => {
  assert.match(
    problemsOf(`${IMAGE}clusters: [{ name: ${'a'.repeat(1 << 20)} }]\n`)[0] ?? '',
    /name: .*got a text of 1048576 characters/,
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

test.run();
