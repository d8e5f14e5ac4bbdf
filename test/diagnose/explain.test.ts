/** `pullwright explain` over folders, as its users run it. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { imagesOf } from '../../runtime/diagnose/model/pull.ts';
import { plantedAuth } from '../support/canary.ts';
import { runInProcess } from '../support/in-process.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

const explain = (...args: readonly string[]) => runInProcess(['explain', ...args, '--from', folder]);

function secret(namespace: string, name: string, keys: readonly string[], user: string): string {
  const auths = Object.fromEntries(keys.map((key) => [key, { auth: plantedAuth('explain', user) }]));
  const data = Buffer.from(JSON.stringify({ auths })).toString('base64');
  return `apiVersion: v1\nkind: Secret\nmetadata:\n  name: ${name}\n  namespace: ${namespace}\ntype: kubernetes.io/dockerconfigjson\ndata:\n  .dockerconfigjson: ${data}\n`;
}

writeFileSync(
  join(folder, 'secrets.yaml'),
  [
    secret('shop', 'pull', ['quay.io/shop'], 'shop'),
    secret('kube-system', 'original-pull-secret', ['quay.io', 'm.io'], 'platform'),
    secret('kube-system', 'additional-pull-secret', ['https://quay.io', 'r.io'], 'tenant'),
  ].join('---\n'),
);
writeFileSync(
  join(folder, 'web.yaml'),
  `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  template:
    spec:
      serviceAccountName: web
      containers: [{name: a, image: quay.io/shop/web:1}, {name: b, image: nginx}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: shop}
imagePullSecrets: [{name: pull}]
---
apiVersion: config.openshift.io/v1
kind: ImageTagMirrorSet
metadata: {name: m}
spec:
  imageTagMirrors: [{source: quay.io/shop, mirrors: [m.io/shop]}]
---
apiVersion: v1
kind: Node
metadata: {name: n1}
`,
);

interface Answer {
  readonly kubelet: { readonly tried: readonly { readonly username: string; readonly origin?: string }[] };
  readonly places: readonly {
    readonly reference: string;
    readonly crio: { readonly what: string; readonly username?: string };
  }[];
  readonly files: Readonly<Record<string, string>>;
}

const asked = async (...args: readonly string[]): Promise<Answer> => {
  const [answer, ...others] = JSON.parse((await explain(...args, '--output', 'json')).stdout) as Answer[];
  assert.ok(answer !== undefined && others.length === 0);
  return answer;
};

test('-c: only the image of one container, and an error that lists the containers', async () => {
  const of = (...args: readonly string[]) => explain('deploy/web', '-n', 'shop', '-f', folder, ...args);
  assert.match((await of('-c', 'b')).stdout, /^docker\.io\/library\/nginx/);
  assert.doesNotMatch((await of('-c', 'b')).stdout, /quay\.io\/shop\/web:1/);
  assert.match((await of('-c', 'x')).stderr, /^Cannot find container "x": must be one of a, b\n/);
  const both = await explain('nginx', '--pod', 'deploy/web', '-c', 'b', '-f', folder);
  assert.match(both.stderr, /^Cannot explain: --container and an image are mutually exclusive\n/);
});

test('a workload: the secrets of its ServiceAccount, the merge of the node, the mirror', async () => {
  const answer = await asked('quay.io/shop/web:1', '-n', 'shop', '--pod', 'deploy/web');
  assert.deepEqual(
    answer.kubelet.tried.map((one) => one.username),
    ['shop', 'platform'],
  );
  assert.equal(answer.kubelet.tried[1]?.origin, 'Secret/kube-system/original-pull-secret');
  assert.deepEqual(
    answer.places.map(({ reference, crio }) => `${reference} ${crio.username ?? crio.what}`),
    ['m.io/shop/web:1 platform', 'quay.io/shop/web:1 kubelet'],
  );
  assert.equal(answer.files['Secret/shop/pull'], `${folder}/secrets.yaml:1`);
});

test('without an image, every image of the pod', async () => {
  const ran = await explain('-n', 'shop', '--pod', 'deploy/web');
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /^quay\.io\/shop\/web:1\n[\s\S]*\n\ndocker\.io\/library\/nginx:latest\n/);
  assert.match(ran.stdout, /additional-pull-secret is shadowed/);
});

test('a node without the label has what it booted with', async () => {
  const answer = await asked('r.io/a', '--node', 'n1');
  assert.deepEqual(answer.kubelet.tried, []);
  assert.deepEqual(
    (await asked('r.io/a')).kubelet.tried.map((one) => one.username),
    ['tenant'],
  );
});

test('a pod that runs on a node without the label has what that node booted with', async () => {
  const file = join(folder, 'pod.yaml');
  writeFileSync(
    file,
    'apiVersion: v1\nkind: Pod\nmetadata: {name: there, namespace: shop}\nspec: {nodeName: n1, imagePullSecrets: [], containers: [{name: a, image: r.io/a}]}\n',
  );
  const answer = await asked('--pod', 'there', '-n', 'shop');
  assert.deepEqual(answer.kubelet.tried, []);
  rmSync(file);
});

test('each image of a pod keeps its own error beside the first one of the pod', async () => {
  const images = ['a.example/x:1', 'b.example/x:1'];
  const dump = join(folder, 'blocked.json');
  const items = [
    {
      ...meta('apps/v1 Deployment', { name: 'two', namespace: 'blocked' }),
      spec: { template: { spec: { containers: images.map((image, at) => ({ name: `c${at}`, image })) } } },
    },
    {
      ...meta('config.openshift.io/v1 Image', { name: 'cluster' }),
      spec: { registrySources: { blockedRegistries: ['a.example', 'b.example'] } },
    },
  ];
  writeFileSync(dump, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  const asked = ['--pod', 'deploy/two', '-n', 'blocked', '-o', 'json', '--from', dump];
  const ran = await runInProcess(['explain', ...asked]);
  rmSync(dump);
  const answers = JSON.parse(ran.stdout) as readonly { readonly findings: readonly { message: string }[] }[];
  for (const [at, image] of images.entries())
    assert.ok(
      answers[at]?.findings.some(({ message }) => message.startsWith(`no usable pull source for "${image}"`)),
      ran.stdout,
    );
});

test('a failing pod: the runtime of its node, and where a missing Secret is instead', async () => {
  const file = join(folder, 'failing.yaml');
  writeFileSync(
    file,
    `${secret('tools', 'elsewhere', ['gone.example'], 'tools')}---
apiVersion: v1
kind: Node
metadata: {name: n2}
status: {nodeInfo: {containerRuntimeVersion: 'containerd://2.0.5'}}
---
apiVersion: v1
kind: Pod
metadata: {name: failing, namespace: shop}
spec:
  nodeName: n2
  imagePullSecrets: [{name: elsewhere}]
  containers: [{name: a, image: 'gone.example/a:1'}]
status:
  phase: Pending
  containerStatuses:
  - name: a
    image: gone.example/a:1
    state: {waiting: {reason: ErrImagePull, message: 'dial tcp 192.0.2.1:443: i/o timeout'}}
`,
  );
  const ran = await explain('pod/failing', '-n', 'shop');
  rmSync(file);
  assert.match(ran.stdout, /✕ containerd/);
  assert.doesNotMatch(ran.stdout, /CRI-O  the places/);
  assert.match(ran.stdout, /does not exist: namespace "tools" has one/);
});

test('a workload in the place of an image is the workload', async () => {
  const ran = await explain('deploy/web', '-n', 'shop');
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /^quay\.io\/shop\/web:1\n/);
  const two = await explain('deploy/web', 'quay.io/a', '-n', 'shop');
  assert.equal(two.code, 2);
  const bad = await explain('--pod', 'foo/bar/baz');
  assert.match(bad.stderr, /Cannot read --pod "foo\/bar\/baz"/);
  assert.match(two.stderr, /it names a workload .*; the image is docker\.io\/deploy\/web/);
});

test('where the credential provider serves the image, mirrors get what the namespace has', async () => {
  const file = join(folder, 'provider.yaml');
  writeFileSync(
    file,
    'apiVersion: config.openshift.io/v1\nkind: CRIOCredentialProviderConfig\nmetadata: {name: cluster}\nspec: {matchImages: [quay.io/shop]}\n---\n' +
      secret('shop', 'mirror', ['m.io/shop'], 'mirror-of-shop'),
  );
  const answer = await asked('quay.io/shop/web:1', '-n', 'shop', '--pod', 'deploy/web');
  assert.deepEqual(
    answer.places.map(({ crio }) => crio.username ?? crio.what),
    ['mirror-of-shop', 'kubelet'],
  );
  rmSync(file);
});

test('a copy of the file of the node stands in for the secrets', async () => {
  const file = join(folder, 'config.json');
  writeFileSync(file, '{"auths":{"r.io":{"auth":"bWU6cHc="}}}');
  const answer = await asked('r.io/a', '--node-config', file);
  assert.deepEqual(
    answer.kubelet.tried.map((one) => one.username),
    ['me'],
  );
  rmSync(file);
});

test('objects of odd shapes are skipped', async () => {
  const file = join(folder, 'odd.yaml');
  const head = (kind: string, name: string) => `kind: ${kind}\nmetadata: {name: ${name}, namespace: odd}\n`;
  const odd = [
    `apiVersion: v1\n${head('Pod', 'a')}spec: null\n`,
    `apiVersion: v1\n${head('Pod', 'b')}spec: {imagePullSecrets: 7, containers: [null, {image: 3}, {image: nginx}]}\n`,
    `apiVersion: v1\n${head('ServiceAccount', 'default')}imagePullSecrets: [null, {name: x}, 3]\n`,
    `apiVersion: v1\n${head('Secret', 'x')}type: kubernetes.io/dockerconfigjson\ndata: null\n`,
    `apiVersion: batch/v1\n${head('CronJob', 'c')}spec: {jobTemplate: [1]}\n`,
  ];
  writeFileSync(file, odd.join('---\n'));
  const ran = await explain('-n', 'odd', '--pod', 'b');
  assert.match(ran.stdout, /^docker\.io\/library\/nginx:latest/, ran.stderr);
  assert.match(ran.stdout, /Secret x, listed by ServiceAccount\/odd\/default: ignored/);
  for (const pod of ['a', 'cronjob/c'])
    assert.equal((await explain('nginx', '-n', 'odd', '--pod', pod)).code, 0);
  rmSync(file);
});

test('wrong use says what is wanted', async () => {
  for (const [args, says] of [
    [[], /an image or --pod is required/],
    [['r.io//x'], /Cannot read image/],
    [['nginx', '--pod', 'service/x'], /expected a name, or a kind/],
    [['nginx', '--output', 'xml'], /must be one of text, wide, name, json, yaml$/m],
  ] as const) {
    const ran = await explain(...args);
    assert.equal(ran.code, 2, ran.stdout);
    assert.match(ran.stderr, says);
  }
  const missing = await explain('nginx', '--pod', 'gone');
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /Cannot find Pod "default\/gone".*-n/);
});

test('gives every image that the kubelet pulls, each once', () => {
  const spec = {
    initContainers: [{ image: 'init' }, { image: 'both' }],
    containers: [{ image: 'both' }, { image: 'main' }, {}],
    ephemeralContainers: [{ image: 'debug' }],
    volumes: [{ name: 'a', image: { reference: 'quay.io/data/model:1' } }, { name: 'b', emptyDir: {} }, null],
  };
  assert.deepEqual(imagesOf(spec), ['init', 'both', 'quay.io/data/model:1', 'main', 'debug']);
  assert.deepEqual(imagesOf({ volumes: 'odd', containers: 7 }), []);
  assert.deepEqual(imagesOf(undefined), []);
});
