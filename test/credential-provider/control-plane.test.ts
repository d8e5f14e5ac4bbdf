// deadline: 240 s
// needs: control plane
/** The provider against a real API server: tokens as the kubelet requests them, the roles that the constructs render. */
import assert from 'node:assert/strict';
import { rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { namespaceAccess, nodeAccess } from '../../runtime/credential-provider/access.ts';
import { controlPlane } from '../control-plane/live.ts';
import { executable } from '../support/executable.ts';
import { meta } from '../support/meta.ts';
import { type ProcessResult, runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { oracleLookup } from './support/crio-oracle.ts';
import {
  authFiles,
  flagsOf,
  makeNode,
  type NodeDouble,
  pullSecret,
  requestFor,
} from './support/node-double.ts';

const IMAGE = 'docker.io/library/nginx';
const SOURCE = 'mirror.example.com/library/nginx';
const CONF = '[[registry]]\nlocation = "docker.io"\n\n[[registry.mirror]]\nlocation = "mirror.example.com"\n';
const AUDIENCE = 'https://kubernetes.default.svc';

const plane = await controlPlane();
const folder = tempFolder();
const program = join(folder, 'crio-credential-provider');
symlinkSync(await executable(), program);
const { port } = new URL(plane.server);
const node = makeNode({
  registriesConf: CONF,
  apiServerEnv: `KUBERNETES_SERVICE_HOST='127.0.0.1'\nKUBERNETES_SERVICE_PORT='${port}'\n`,
  ca: plane.ca,
});

async function team(
  namespace: string,
  pairs: Readonly<Record<string, string>>,
  uses: readonly string[] = [],
): Promise<string> {
  await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  await plane.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'app', namespace } });
  for (const [name, pair] of Object.entries(pairs)) {
    const secret = pullSecret(name, {
      'mirror.example.com': { auth: Buffer.from(pair).toString('base64') },
    });
    await plane.apply({ apiVersion: 'v1', kind: 'Secret', ...secret, metadata: { name, namespace } });
  }
  const spec = {
    serviceAccountName: 'app',
    containers: [{ name: 'web', image: IMAGE }],
    imagePullSecrets: uses.map((name) => ({ name })),
  };
  const pod = await plane.apply({ ...meta('v1 Pod', { name: 'web-0', namespace }), spec });
  const boundObjectRef = {
    apiVersion: 'v1',
    kind: 'Pod',
    name: 'web-0',
    uid: (pod.metadata as { uid?: string }).uid,
  };
  const { status, body } = await plane.client.request(
    'POST',
    `/api/v1/namespaces/${namespace}/serviceaccounts/app/token`,
    {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { audiences: [AUDIENCE], boundObjectRef, expirationSeconds: 3600 },
    },
  );
  assert.equal(status, 201, JSON.stringify(body));
  return body.status.token;
}

function run(token: string, annotations?: Record<string, string>): Promise<ProcessResult> {
  return runProcess([program, ...flagsOf(node)], { stdin: requestFor(IMAGE, token, annotations), env: {} });
}

function credential(at: NodeDouble, namespace: string): string | undefined {
  const [, file] = Object.entries(authFiles(at)).find(([name]) => name.startsWith(namespace)) ?? [];
  return file === undefined ? undefined : oracleLookup(JSON.parse(file.text).auths, SOURCE);
}

test('the default Role lets it list, and order what contradicts as the pod does', async () => {
  const token = await team('ordered', { a: 'u:a', b: 'u:b' }, ['b']);
  for (const object of namespaceAccess({ namespace: 'ordered', serviceAccounts: ['app'] }))
    await plane.apply(object);
  const ran = await run(token);
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(credential(node, 'ordered'), 'u:b');
});

test('a long list, which the server sends in chunks', async () => {
  const names = Array.from({ length: 40 }, (_, index) => `pull-${String(index).padStart(2, '0')}`);
  const token = await team('crowded', Object.fromEntries(names.map((name) => [name, 'u:same'])));
  for (const object of namespaceAccess({ namespace: 'crowded', serviceAccounts: ['app'] }))
    await plane.apply(object);
  const ran = await run(token);
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stderr, /Got 40 secret\(s\)/);
  assert.equal(credential(node, 'crowded'), 'u:same');
});

test('without a Role the line says which, and applying it is enough', async () => {
  const token = await team('roleless', { a: 'u:a' });
  const refused = await run(token);
  assert.equal(refused.code, 1);
  const list = /kubectl apply -f - <<< '(.*)'$/m.exec(refused.stderr)?.[1];
  assert.ok(list !== undefined, refused.stderr);
  for (const object of JSON.parse(list.replace('NAME-OF-THE-PULL-SECRET', 'a')).items)
    await plane.apply(object);
  const ran = await run(token, { 'pullwright.dev/image-pull-secrets': 'a' });
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(credential(node, 'roleless'), 'u:a');
});

test('a Role with get and names needs the annotation and nothing else', async () => {
  const token = await team('named', { a: 'u:a', b: 'u:b' });
  const access = namespaceAccess({
    namespace: 'named',
    serviceAccounts: ['app'],
    secrets: ['b'],
    readReferences: false,
  });
  for (const object of access) await plane.apply(object);
  const ran = await run(token, { 'pullwright.dev/image-pull-secrets': 'b' });
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(credential(node, 'named'), 'u:b');
  // The file of this account waits for its pull: a denial removes no file, and the response keeps the image private.
  const without = await run(token);
  assert.equal(without.code, 0, without.stderr);
  assert.match(without.stderr, /Using the node's auth file: .*secrets is forbidden/);
  assert.equal(Object.keys(JSON.parse(without.stdout).auth).length, 1);
  assert.equal(credential(node, 'named'), 'u:b');
  const [file = ''] = Object.keys(authFiles(node)).filter((name) => name.startsWith('named'));
  rmSync(join(node.options.authDir, file));
  assert.equal((await run(token)).code, 1);
});

test("another namespace's token reads nothing of it", async () => {
  const token = await team('stranger', {});
  await run(token);
  assert.equal(credential(node, 'stranger'), undefined);
});

test('the roles for nodes are taken by the API server', async () => {
  for (const object of nodeAccess()) await plane.apply(object);
});

test.lastly('everything stops', () => node.remove());
