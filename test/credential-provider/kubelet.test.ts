// deadline: 600 s
// needs: control plane, Go
/**
 * The provider under the kubelet's own code: the rendered configuration is read and validated by it, tokens are requested as a
 * node from an API server that authorizes nodes, and the compiled executable is run by it.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { namespaceAccess, nodeAccess } from '../../runtime/credential-provider/access.ts';
import { eventually } from '../control-plane/eventually.ts';
import { controlPlane } from '../control-plane/live.ts';
import { findPlanted, plantedAuth } from '../support/canary.ts';
import { executable } from '../support/executable.ts';
import { buildGoProgram } from '../support/go-program.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { oracleLookup } from './support/crio-oracle.ts';
import { filesOf } from './support/machine-config-files.ts';
import { authFiles, flagsOf, makeNode, pullSecret } from './support/node-double.ts';

const root = join(import.meta.dirname, '../..');
const NODE = 'worker-0';
const IMAGE = 'docker.io/library/nginx:1';
const SOURCE = 'mirror.example.com/library/nginx';
const CONF = '[[registry]]\nlocation = "docker.io"\n\n[[registry.mirror]]\nlocation = "mirror.example.com"\n';

interface Credential {
  readonly Username: string;
  readonly Password: string;
  readonly ServiceAccount: string;
}

interface Pull {
  readonly image: string;
  readonly namespace: string;
  readonly pod: string;
  readonly uid: string;
}

/** The kubelet's code as a process that answers one pull after the other. */
class Kubelet {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  log = '';

  constructor(command: readonly string[]) {
    const [program = '', ...args] = command;
    this.#child = spawn(program, args, { stdio: 'pipe', env: { PATH: process.env['PATH'] } });
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.log += chunk.toString();
    });
    this.#lines = createInterface({ input: this.#child.stdout as NodeJS.ReadableStream })[
      Symbol.asyncIterator
    ]();
  }

  async credentials({ image, namespace, pod, uid }: Pull): Promise<readonly Credential[]> {
    const asked = { Image: image, Namespace: namespace, Pod: pod, UID: uid, ServiceAccount: 'app' };
    this.#child.stdin?.write(`${JSON.stringify(asked)}\n`);
    const line = await this.#lines.next();
    assert.ok(line.done !== true, `it ended: ${this.log}`);
    return JSON.parse(line.value).Credentials;
  }

  stop(): void {
    this.#child.kill('SIGKILL');
  }
}

/** The file for the kubelet out of the MachineConfig that the reconciler renders for the example cluster. */
async function renderedConfig(folder: string): Promise<string> {
  const ran = await runProcess(
    [process.execPath, 'main.ts', 'reconcile', '--from', 'examples/credential-provider', '--to', folder],
    { cwd: root },
  );
  assert.equal(ran.code, 0, ran.stderr);
  const name = '97-worker-generated-credentialproviderconfig';
  const text = readFileSync(join(folder, 'hosted/_cluster', `machineconfig-${name}.yaml`), 'utf8');
  const [object] = parseAllDocuments(text).map((document) => document.toJS() as KubeObject);
  const file = filesOf(object).get('/etc/kubernetes/credential-providers/ecr-credential-provider.yaml');
  assert.ok(file !== undefined, text);
  return file;
}

/** Roles reach the authorizer a moment after they are stored. */
function until(condition: () => Promise<boolean>): Promise<void> {
  return eventually(async () => assert.ok(await condition(), 'no change'), {
    withinMs: 60_000,
    everyMs: 100,
  });
}
const folder = tempFolder();
const plane = await controlPlane({
  apiServerFlags: ['--authorization-mode=Node', '--enable-admission-plugins=NodeRestriction'],
});
const { port } = new URL(plane.server);
const node = makeNode({
  registriesConf: CONF,
  apiServerEnv: `KUBERNETES_SERVICE_HOST='127.0.0.1'\nKUBERNETES_SERVICE_PORT='${port}'\n`,
  ca: plane.ca,
});
const plugins = join(folder, 'plugins');
mkdirSync(plugins);
symlinkSync(await executable(), join(folder, 'crio-credential-provider'));
const script = (name: string, command: string): void => {
  writeFileSync(join(plugins, name), `#!/bin/sh\n${command}\n`);
  chmodSync(join(plugins, name), 0o755);
};
const runs = join(folder, 'runs');
writeFileSync(runs, '');
script(
  'crio-credential-provider',
  `echo run >>${runs}\nexec ${folder}/crio-credential-provider ${flagsOf(node).join(' ')} "$@"`,
);
script('ecr-credential-provider', 'exit 1');
const config = join(folder, 'config.yaml');
writeFileSync(config, await renderedConfig(join(folder, 'rendered')));
buildGoProgram(join(import.meta.dirname, 'kubelet/main.go'), join(folder, 'kubelet'));
await plane.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } });
const { kubeconfig } = await plane.user({ name: `system:node:${NODE}`, groups: ['system:nodes'] });
const kubelet = new Kubelet([join(folder, 'kubelet'), config, plugins, kubeconfig]);

async function team(namespace: string, auth: string | undefined): Promise<Pull> {
  await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  await plane.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'app', namespace } });
  if (auth !== undefined) await store(namespace, auth);
  const pod = await plane.apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web-0', namespace },
    spec: { nodeName: NODE, serviceAccountName: 'app', containers: [{ name: 'web', image: IMAGE }] },
  });
  for (const object of namespaceAccess({ namespace, serviceAccounts: ['app'] })) await plane.apply(object);
  const { uid = '' } = pod.metadata as { readonly uid?: string };
  return { image: IMAGE, namespace, pod: 'web-0', uid };
}

async function store(namespace: string, auth: string): Promise<void> {
  const secret = pullSecret('mirror', { 'mirror.example.com': { auth } });
  await plane.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    ...secret,
    metadata: { name: 'mirror', namespace },
  });
}

const forMirror = (namespace: string): string | undefined => {
  const [, file] = Object.entries(authFiles(node)).find(([name]) => name.startsWith(`${namespace}-`)) ?? [];
  return file === undefined ? undefined : oracleLookup(JSON.parse(file.text).auths, SOURCE);
};
const pairOf = (auth: string): string => Buffer.from(auth, 'base64').toString();
const started = (): number => readFileSync(runs, 'utf8').split('\n').length - 1;

test('a node may ask for tokens of the audience only after the rendered ClusterRole', async () => {
  const pull = await team('early', plantedAuth('early'));
  assert.deepEqual(await kubelet.credentials(pull), []);
  assert.equal(started(), 0);
  assert.match(kubelet.log, /is not authorized to request tokens for this audience/);
  for (const object of nodeAccess()) await plane.apply(object);
  await until(async () => (await kubelet.credentials(pull)).length > 0);
  assert.equal(forMirror('early'), pairOf(plantedAuth('early')));
});

test('the auth file holds the credential, the kubelet only who may use the image', async () => {
  const pull = await team('team-a', plantedAuth('team-a'));
  const expected = [{ Username: '', Password: '', ServiceAccount: 'team-a/app' }];
  assert.deepEqual(await kubelet.credentials(pull), expected);
  assert.equal(forMirror('team-a'), pairOf(plantedAuth('team-a')));
});

test('a namespace without a secret gets nothing, and no file', async () => {
  const pull = await team('team-b', undefined);
  assert.deepEqual(await kubelet.credentials(pull), []);
  assert.equal(forMirror('team-b'), undefined);
});

test('a rotated secret is used by the next pull: nothing is cached', async () => {
  const pull = await team('team-c', plantedAuth('old'));
  await kubelet.credentials(pull);
  await store('team-c', plantedAuth('new'));
  await kubelet.credentials(pull);
  assert.equal(forMirror('team-c'), pairOf(plantedAuth('new')));
});

test("what the platform's provider serves, and what nobody configured, does not start it", async () => {
  const pull = await team('team-d', plantedAuth('team-d'));
  const before = started();
  for (const image of ['123456789.dkr.ecr.us-east-1.amazonaws.com/app:1', 'registry.elsewhere.com/app:1'])
    assert.deepEqual(await kubelet.credentials({ ...pull, image }), []);
  assert.equal(started(), before);
});

test('a Role taken away: the pull goes on without, and the log says what to apply', async () => {
  const pull = await team('team-e', plantedAuth('team-e'));
  await plane.remove({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'credential-provider-secret-access-binding', namespace: 'team-e' },
  });
  await until(async () => (await kubelet.credentials(pull)).length === 0);
  assert.match(kubelet.log, /kubectl apply -f - <<< /);
});

test('no credential is in what the kubelet logs', () => {
  assert.equal(findPlanted(kubelet.log), undefined);
});

test.lastly('everything stops', () => {
  kubelet.stop();
  node.remove();
});
