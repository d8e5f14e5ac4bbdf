/** `mirrors --what-if FILE --in-use`: what a change of mirror sets does to the images of a cluster. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type InProcessRun, runInProcess } from '../support/in-process.ts';
import { meta, pullSecretObject } from '../support/meta.ts';
import { table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { image, set } from './mirror-objects.ts';

const work = tempFolder();
const DIGEST = `sha256:${'a'.repeat(64)}`;

function cli(...args: readonly string[]): Promise<InProcessRun> {
  return runInProcess(['mirrors', ...args]);
}

const digests = (...entries: readonly object[]): object => set('ImageDigestMirrorSet', 'release', entries);
const tags = (...entries: readonly object[]): object => set('ImageTagMirrorSet', 'release', entries);
const OLD = { source: 'quay.io/ocp', mirrors: ['m.example.com/ocp'] };
const secret = (namespace: string, name: string): object =>
  pullSecretObject({ name, namespace }, { auths: { 'm.example.com': { auth: btoa('a:b') } } });
const deployment = (name: string, from: string): object => ({
  ...meta('apps/v1 Deployment', { name, namespace: 'web' }),
  spec: { template: { spec: { containers: [{ name: 'c', image: from }] } } },
});
const CLUSTER: readonly object[] = [
  digests(OLD),
  secret('openshift-config', 'pull-secret'),
  deployment('shop', `quay.io/ocp/shop@${DIGEST}`),
  deployment('till', 'docker.io/library/till:1'),
  deployment('short', 'till:2'),
  {
    ...meta('config.openshift.io/v1 ClusterVersion', { name: 'version' }),
    status: { desired: { image: `quay.io/ocp/release@${DIGEST}` } },
  },
  {
    ...meta('operators.coreos.com/v1alpha1 CatalogSource', {
      name: 'redhat-operators',
      namespace: 'openshift-marketplace',
    }),
    spec: { image: 'registry.redhat.io/redhat/redhat-operator-index:v4.20' },
  },
];

let count = 0;
function put(file: string, ...objects: readonly object[]): string {
  const path = join(work, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, objects.map((one) => JSON.stringify(one)).join('\n---\n'));
  return path;
}

interface Row {
  readonly name: string;
  readonly reason: string;
  readonly change: readonly object[];
  readonly code: number;
  readonly says: readonly RegExp[];
}

const ROWS: readonly Row[] = [
  {
    name: 'the same again',
    reason: 'nothing changes',
    change: [digests(OLD)],
    code: 0,
    says: [
      /^change nodes stay unchanged\n5 images in use: 0 change, 0 lose their last pull source, 0 gain a mirror without/,
    ],
  },
  {
    name: 'another order with a new place for which there is a credential',
    reason: 'release and pods ask elsewhere first',
    change: [digests({ ...OLD, mirrors: ['m.example.com/new', 'm.example.com/ocp'] })],
    code: 0,
    says: [
      /^change nodes reload CRI-O, without a drain/,
      /5 images in use: 2 change/,
      /sources {5}quay\.io\/ocp\/shop@.* {2}\(Deployment\/web\/shop, for node\)\n {12}before: m\.example\.com\/ocp\/shop@.*, quay\.io\/ocp\/shop@.*\n {12}after: {2}m\.example\.com\/new\/shop@/,
      /ClusterVersion\/version/,
    ],
  },
  {
    name: 'a mirror without a credential',
    reason: 'every pull would ask there in vain first',
    change: [digests({ ...OLD, mirrors: ['n.example.com/ocp', 'm.example.com/ocp'] })],
    code: 1,
    says: [
      /2 gain a mirror without a credential/,
      /credential {2}quay\.io\/ocp\/shop@/,
      /no credential: n\.example\.com\/ocp\/shop@/,
    ],
  },
  {
    name: 'a tag loses its last pull source',
    reason: 'the set serves digests only, and forbids the source',
    change: [
      digests(OLD, {
        source: 'docker.io/library',
        mirrors: ['m.example.com/hub'],
        mirrorSourcePolicy: 'NeverContactSource',
      }),
    ],
    code: 1,
    says: [
      /1 loses its last pull source/,
      /lost {8}docker\.io\/library\/till:1 {2}\(Deployment\/web\/till, for node\)\n.*\n {12}after: {2}none/,
    ],
  },
  {
    name: 'mirrors for tags drain',
    reason: 'catalogs are named by tag',
    change: [tags({ source: 'registry.redhat.io', mirrors: ['m.example.com/rh'] })],
    code: 0,
    says: [
      /^change every node drains and reloads CRI-O/,
      /sources {5}registry\.redhat\.io\/redhat\/redhat-operator-index:v4\.20 {2}\(CatalogSource\//,
    ],
  },
  {
    name: 'a short name is followed to every registry that nodes search',
    reason: 'a change of the search list, or of the mirrors of one of them, changes where it comes from',
    change: [image({ containerRuntimeSearchRegistries: ['m.example.com', 'docker.io'] })],
    code: 0,
    says: [
      /5 images in use: 1 changes, 0 lose/,
      /sources {5}till:2 {2}\(Deployment\/web\/short, for node\)\n {12}before: registry\.access\.redhat\.com\/till:2, docker\.io\/library\/till:2\n {12}after: {2}m\.example\.com\/till:2, docker\.io\/library\/till:2/,
    ],
  },
  {
    name: 'what the operator refuses',
    reason: 'nodes keep what they have',
    change: [digests({ source: 'quay.io/ocp', mirrors: ['https://m.example.com'] })],
    code: 1,
    says: [/would reject this: nodes keep their configuration\n5 images in use: 0 change/],
  },
];

table(test, ROWS, async ({ change, code, says }) => {
  const at = (count += 1);
  const from = put(`${at}/cluster/all.json`, ...CLUSTER);
  const file = put(`${at}/change.json`, ...change);
  const ran = await cli('--from', from, '--what-if', file, '--in-use');
  assert.equal(ran.code, code, ran.stdout + ran.stderr);
  for (const text of says) assert.match(ran.stdout, text);
});

test('of a hosted cluster: mirror sets change its control plane, its HostedCluster its nodes', async () => {
  const hosted = (mirrors: readonly string[]): object => ({
    ...meta('hypershift.openshift.io/v1beta1 HostedCluster', { name: 'prod', namespace: 'clusters' }),
    spec: {
      pullSecret: { name: 'own' },
      release: { image: `quay.io/ocp/release@${DIGEST}` },
      imageContentSources: [{ source: 'quay.io/ocp', mirrors }],
    },
  });
  put('h/management/all.json', digests(OLD), hosted(['m.example.com/ocp']), secret('clusters', 'own'));
  put('h/hosted/clusters/prod/all.json', deployment('guest', `quay.io/ocp/guest@${DIGEST}`));
  const asked = async (
    change: object,
  ): Promise<{
    change: { summary: string };
    inUse: { images: number; changed: { image: string; for: string[] }[] };
  }> => {
    const file = put('h-change.json', change);
    const args = [
      '--from',
      join(work, 'h'),
      '--cluster',
      'clusters/prod',
      '--what-if',
      file,
      '--in-use',
      '--output',
      'json',
    ];
    return JSON.parse((await cli(...args)).stdout);
  };
  const sets = await asked(digests({ ...OLD, mirrors: ['m.example.com/new'] }));
  assert.equal(sets.change.summary, 'nodes stay unchanged');
  assert.equal(sets.inUse.images, 2);
  assert.deepEqual(
    sets.inUse.changed.map(({ image: one, for: planes }) => [one, planes]),
    [[`quay.io/ocp/release@${DIGEST}`, ['control-plane-operator', 'ignition-server']]],
  );
  const own = await asked(hosted(['m.example.com/new']));
  assert.deepEqual(
    own.inUse.changed.map(({ image: one, for: planes }) => [one.split('@')[0], planes]),
    [
      ['quay.io/ocp/guest', ['node']],
      ['quay.io/ocp/release', ['node']],
    ],
  );
});

test('a change that cannot be read, or has no mirror set, is no change without effect', async () => {
  for (const [text, says] of [
    ['x: [', /change\.yaml:\d+: not valid YAML/],
    ['{ apiVersion: v1, kind: ConfigMap, metadata: { name: a } }', /change\.yaml": it has no mirror set/],
  ] as const) {
    const file = join(work, 'change.yaml');
    writeFileSync(file, text);
    const ran = await cli('--from', file, '--what-if', file, '--in-use');
    assert.equal(ran.code, 1);
    assert.match(ran.stderr, says);
  }
});

test('bad usage', async () => {
  for (const args of [
    ['--in-use'],
    ['quay.io/a/b:1', '--in-use', '--what-if', join(work, 'h-change.json')],
  ]) {
    const ran = await cli(...args);
    assert.equal(ran.code, 2);
    assert.match(ran.stderr, /Cannot use --in-use: expected --what-if FILE, and no image/);
  }
});
