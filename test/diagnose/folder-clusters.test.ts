/** Messages of every command about a folder: the selected one of several clusters, and ignored mirrors. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type InProcessRun, runInProcess } from '../support/in-process.ts';
import { meta } from '../support/meta.ts';
import { table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { idms } from './mirror-objects.ts';

const work = tempFolder();

const pod = (image: string): object => ({
  ...meta('v1 Pod', { name: 'shop', namespace: 'web' }),
  spec: { containers: [{ name: 'shop', image }] },
});
const DIGEST = `sha256:${'a'.repeat(64)}`;
const ACCOUNT = meta('v1 ServiceAccount', { name: 'default', namespace: 'web' });

function folderOf(files: Readonly<Record<string, readonly object[]>>): string {
  const folder = mkdtempSync(join(work, 'case-'));
  for (const [name, objects] of Object.entries(files)) {
    const file = join(folder, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, objects.map((object) => JSON.stringify(object)).join('\n---\n'));
  }
  return folder;
}

function cli(...args: readonly string[]): Promise<InProcessRun> {
  return runInProcess([...args]);
}

const image = `quay.invalid/a/x@${DIGEST}`;
const fleet = folderOf({
  'clusters/east/all.yaml': [idms('release', 'quay.invalid/a', 'east.invalid/a'), pod(image), ACCOUNT],
  'clusters/west/all.yaml': [idms('release', 'quay.invalid/a', 'west.invalid/a'), pod(image), ACCOUNT],
});
const tests = join(work, 'expected.yaml');
writeFileSync(
  tests,
  JSON.stringify({ from: [fleet], tests: [{ name: 'none', image, namespace: 'web', expect: 'anonymous' }] }),
);

const ASKING = [
  {
    name: 'explain',
    reason: 'places differ',
    args: ['explain', '--pod', 'shop', '-n', 'web', '--from', fleet],
  },
  { name: 'doctor', reason: 'so does the chain', args: ['doctor', 'shop', '-n', 'web', '--from', fleet] },
  { name: 'verify', reason: 'and what is asked', args: ['verify', image, '-n', 'web', '--from', fleet] },
  { name: 'test', reason: 'and what holds', args: ['test', tests] },
];

table(test, ASKING, async ({ args }) => {
  const asked = await cli(...args);
  assert.equal(asked.code, 2, asked.stderr);
  assert.match(asked.stderr, /choose one with --cluster: clusters\/east, clusters\/west/);
  assert.doesNotMatch(asked.stderr, /is duplicated/);
});

test('explain, doctor and test take the cluster that is chosen, and say nothing of the other', async () => {
  const [explained, examined, tested] = await Promise.all([
    cli('explain', '--pod', 'shop', '-n', 'web', '--from', fleet, '--cluster', 'clusters/west'),
    cli('doctor', 'shop', '-n', 'web', '--from', fleet, '--cluster', 'clusters/west'),
    cli('test', tests, '--cluster', 'clusters/west'),
  ]);
  assert.match(explained.stdout, /west\.invalid\/a\/x/);
  assert.doesNotMatch(explained.stdout + explained.stderr, /east\.invalid|is duplicated/);
  assert.equal(examined.code, 0, examined.stdout + examined.stderr);
  assert.equal(tested.code, 0, tested.stdout + tested.stderr);
});

test('objects of the same name in two folders are of two clusters, without any mirror set', async () => {
  const folder = folderOf({ 'a/pod.yaml': [pod('a.invalid/x:1')], 'b/pod.yaml': [pod('b.invalid/x:1')] });
  const asked = await cli('explain', '--pod', 'shop', '-n', 'web', '--from', folder);
  assert.match(asked.stderr, /choose one with --cluster: a, b/);
});

test('an object that one cluster has twice is still told', async () => {
  const folder = folderOf({ 'a/one.yaml': [pod('a.invalid/x:1')], 'a/two.yaml': [pod('b.invalid/x:1')] });
  const ran = await cli('explain', '--pod', 'shop', '-n', 'web', '--from', folder);
  assert.match(ran.stderr, /a\/two\.yaml:1: Pod\/web\/shop is duplicated: first at a\/one\.yaml:1/);
  assert.match(ran.stdout, /a\.invalid\/x:1/);
});

const inspectedTree = (name: string, uid: string) => {
  const at = { ...pod('a.invalid/x:1'), metadata: { name: 'shop', namespace: 'web', uid } };
  return {
    [`${name}/namespaces/web/core/pods.yaml`]: [at],
    [`${name}/namespaces/web/pods/shop/shop.yaml`]: [at],
    [`${name}/cluster-scoped-resources/config.openshift.io/images/cluster.yaml`]: [
      meta('config.openshift.io/v1 Image', { name: 'cluster' }),
    ],
  };
};

test('a tree of oc adm inspect is one cluster, and several are one each', async () => {
  const one = folderOf(inspectedTree('must-gather/quay', '1'));
  const ran = await cli('explain', '--pod', 'shop', '-n', 'web', '--from', one);
  assert.match(ran.stdout, /a\.invalid\/x:1/);
  assert.equal(ran.stderr, '');
  const two = folderOf({ ...inspectedTree('a', '1'), ...inspectedTree('a/guest', '2') });
  const asked = await cli('explain', '--pod', 'shop', '-n', 'web', '--from', two);
  assert.match(asked.stderr, /2 are given; choose one with --cluster: a, a\/guest\n/);
});

test('an object with two UIDs is of two clusters, in any of the folders and files', async () => {
  const of = (uid: string) => meta('v1 Namespace', { name: 'kube-system', uid });
  const folder = folderOf({ 'a.json': [of('1')], 'b.json': [of('2')], 'c.json': [of('1')] });
  const from = (...names: readonly string[]) =>
    cli('doctor', '--all', '-A', ...names.flatMap((name) => ['--from', `${folder}${name}`]));
  for (const asked of await Promise.all([from(''), from('/a.json', '/b.json')]))
    assert.match(asked.stderr, /choose one with --cluster: \S*a\.json, \S*b\.json/);
  assert.doesNotMatch((await from('/a.json', '/c.json')).stderr, /--cluster/);
});

test('a patch of Kustomize is no object, and is named', async () => {
  for (const patches of [{ patches: [{ path: 'patch.yaml' }] }, { patchesStrategicMerge: ['patch.yaml'] }]) {
    const kustomization = { ...meta('kustomize.config.k8s.io/v1beta1 Kustomization', {}), ...patches };
    const folder = folderOf({
      'prod/kustomization.yaml': [kustomization],
      'prod/patch.yaml': [pod('quay.invalid/patched:1')],
      'prod/web.yaml': [pod('quay.invalid/web:1')],
    });
    const { stdout, stderr } = await cli('explain', '--pod', 'shop', '-n', 'web', '--from', folder);
    assert.match(stdout, /^quay\.invalid\/web:1/);
    assert.match(stderr, /prod\/patch\.yaml:1: is a patch of Kustomize, not an object: .*kubectl kustomize/);
  }
});

test('mirrors and verify do not take a workload for an image', async () => {
  for (const args of [['pods/shop'], ['pod', 'shop']])
    for (const command of ['mirrors', 'verify']) {
      const ran = await cli(command, ...args, '--from', fleet);
      assert.match(ran.stderr, /^Cannot read image "pods?\/shop": it names a workload/);
    }
});

test('report and doctor omit a pod that has ended, and name the one cluster alike', async () => {
  const account = { ...ACCOUNT, imagePullSecrets: [{ name: 'gone' }] };
  const of = (name: string, phase: string) => ({
    ...meta('v1 Pod', { name, namespace: 'web' }),
    spec: { imagePullSecrets: [{ name: 'gone' }], containers: [{ name: 'a', image: 'quay.invalid/a:1' }] },
    status: {
      phase,
      containerStatuses: [{ name: 'a', state: { waiting: { reason: 'ImagePullBackOff', message: '' } } }],
    },
  });
  const folder = folderOf({ 'all.json': [account, of('live', 'Pending'), of('evicted', 'Failed')] });
  for (const args of [['report'], ['doctor', '--all', '-A']]) {
    const ran = await cli(...args, '--from', folder);
    assert.match(ran.stdout, /\(1 in local, 1 pod\)/);
    assert.doesNotMatch(ran.stdout, /evicted/);
  }
});

test('a hosted cluster follows its HostedCluster, and gets no ImageTagMirrorSet to apply', async () => {
  const hosted = {
    ...meta('hypershift.openshift.io/v1beta1 HostedCluster', { name: 'prod', namespace: 'clusters' }),
    spec: { imageContentSources: [{ source: 'quay.invalid/a', mirrors: ['hosted.invalid/a'] }] },
  };
  const folder = folderOf({
    'management/all.yaml': [hosted, idms('release', 'quay.invalid/a', 'management.invalid/a')],
    'hosted/clusters/prod/all.yaml': [pod('quay.invalid/a/x:1'), ACCOUNT],
  });
  const asked = await cli('explain', '--pod', 'shop', '-n', 'web', '--from', folder);
  assert.match(asked.stderr, /choose one with --cluster: management, clusters\/prod/);
  const at = ['--from', folder, '--cluster', 'clusters/prod'];
  const ran = await cli('explain', '--pod', 'shop', '-n', 'web', ...at);
  const text = ran.stdout.replace(/\s+/g, ' ');
  assert.match(text, /mirror "hosted\.invalid\/a" .* serves digests only/);
  assert.doesNotMatch(text, /ImageTagMirrorSet|management\.invalid/);
});

test('a kubeconfig is of one cluster', async () => {
  const ran = await cli('explain', image, '--cluster', 'clusters/west');
  assert.equal(ran.code, 2);
  assert.match(ran.stderr, /--cluster chooses among the clusters of --from/);
});

// The textbook fault of a disconnected cluster, as each command shows it: a tag, and mirrors that serve digests only.

const tagged = 'quay.invalid/a/x:1';
const message = 'pinging container registry quay.invalid: dial tcp: lookup quay.invalid: no such host';
const waiting = { reason: 'ImagePullBackOff', message };
const disconnected = folderOf({
  'all.yaml': [
    idms('release', 'quay.invalid/a', 'm.invalid/a'),
    ACCOUNT,
    {
      ...pod(tagged),
      status: { containerStatuses: [{ name: 'shop', image: tagged, state: { waiting } }] },
    },
  ],
});
const PASSED =
  /is named by tag, and mirror "m\.invalid\/a" \(ImageDigestMirrorSet\/release\) serves digests only/;

for (const { args, code = 0, says } of [
  {
    args: ['explain', '--pod', 'shop', '-n', 'web'],
    code: 1,
    says: [PASSED, /---\napiVersion: config\.openshift\.io\/v1\nkind: ImageTagMirrorSet\n/],
  },
  { args: ['doctor', 'shop', '-n', 'web'], code: 1, says: [PASSED, /kind: ImageTagMirrorSet/] },
  { args: ['mirrors', tagged, '--for', 'node', '-o', 'json'], says: [/"code": ?"MirrorsServeDigestsOnly"/] },
  { args: ['verify', '--all-in-use', '--timeout', '2'], code: 1, says: [PASSED] },
])
  test(`${args[0]} names the mirror and not DNS`, async () => {
    const ran = await cli(...args, '--from', disconnected);
    assert.equal(ran.code, code, ran.stdout + ran.stderr);
    for (const pattern of says) assert.match(`${ran.stdout}\n${ran.stdout.replace(/\s+/g, ' ')}`, pattern);
  });
