// deadline: 240 s
/** The compiled executable under its kubelet name, started as a kubelet starts it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { executable } from '../support/executable.ts';
import { type ProcessResult, runProcess } from '../support/process.ts';
import { suite } from '../support/suite.ts';
import { type ApiDouble, type ApiState, startApi } from './support/api-double.ts';
import { kubeletTakes } from './support/kubelet-response.ts';
import {
  authFiles,
  flagsOf,
  makeNode,
  type NodeDouble,
  pullSecret,
  requestFor,
  tokenFor,
} from './support/node-double.ts';

const test = suite('crio-credential-provider');
const IMAGE = 'docker.io/library/nginx';
const CONF = '[[registry]]\nlocation = "docker.io"\n\n[[registry.mirror]]\nlocation = "mirror.example.com"\n';
const MEMBER = { auth: Buffer.from('user:password').toString('base64') };
const folder = mkdtempSync(join(tmpdir(), 'provider-bin-'));
const program = join(folder, 'crio-credential-provider');
symlinkSync(await executable(), program);

interface Place {
  readonly api: ApiDouble;
  readonly node: NodeDouble;
}

async function place(state: Partial<ApiState> = {}): Promise<Place> {
  const secrets = [pullSecret('mirror', { 'mirror.example.com': MEMBER })];
  const api = await startApi({ secrets, ...state });
  const apiServerEnv = `KUBERNETES_SERVICE_HOST='127.0.0.1'\nKUBERNETES_SERVICE_PORT='${api.port}'\n`;
  return { api, node: makeNode({ registriesConf: CONF, apiServerEnv, ca: api.ca, authDirMode: 0o700 }) };
}

async function leave({ api, node }: Place): Promise<void> {
  node.remove();
  await api.close();
}

function call(node: NodeDouble, namespace: string, env: NodeJS.ProcessEnv = {}): Promise<ProcessResult> {
  return runProcess([program, ...flagsOf(node)], {
    stdin: requestFor(IMAGE, tokenFor(namespace)),
    env,
    cwd: '/',
  });
}

test('answers, with the environment of a service', async () => {
  const here = await place();
  const ran = await call(here.node, 'team-a');
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(kubeletTakes(ran.stdout)?.keys, 1);
  assert.equal(Object.keys(authFiles(here.node)).length, 1);
  await leave(here);
});

test('verifies the server whatever the environment says', async () => {
  const here = await place();
  const other = await startApi(
    { secrets: [] },
    { certificates: (await import('../support/certificates.ts')).makeCertificates() },
  );
  const node = makeNode({
    registriesConf: CONF,
    ca: other.ca,
    apiServerEnv: `KUBERNETES_SERVICE_HOST=127.0.0.1\nKUBERNETES_SERVICE_PORT=${here.api.port}\n`,
  });
  const ran = await call(node, 'team-a', { NODE_TLS_REJECT_UNAUTHORIZED: '0' });
  assert.equal(ran.code, 1);
  assert.match(ran.stderr, /certificate of the API server does not come from the CA/);
  assert.equal(here.api.requests.length, 0);
  node.remove();
  await other.close();
  await leave(here);
});

test('loopback is not sent to a proxy', async () => {
  const here = await place();
  const seen: string[] = [];
  const proxy = createServer((socket) => {
    seen.push('connection');
    socket.destroy();
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const address = proxy.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  const ran = await call(here.node, 'team-a', { HTTPS_PROXY: url, https_proxy: url });
  assert.equal(ran.code, 0, ran.stderr);
  assert.deepEqual(seen, []);
  proxy.close();
  await leave(here);
});

test('closed descriptors end it with a code, not a hang', async () => {
  const here = await place();
  for (const closed of ['<&-', '2>&-', '<&- >&- 2>&-']) {
    const line = `exec "$0" ${flagsOf(here.node).join(' ')} ${closed}`;
    const ran = await runProcess(['/bin/sh', '-c', line, program], {
      stdin: requestFor(IMAGE, tokenFor('team-a')),
      env: {},
      deadlineMs: 20_000,
    });
    assert.equal(ran.timedOut, false, closed);
    assert.equal(ran.code, closed === '2>&-' ? 0 : 1, `${closed}: ${ran.stderr}`);
  }
  await leave(here);
});

test('version, and flags that do not exist', async () => {
  const version = await runProcess([program, '--version'], { env: {} });
  assert.match(version.stdout, /^Version: \d+\.\d+\.\d+\n$/);
  const json = await runProcess([program, '--version-json'], { env: {} });
  assert.equal(typeof JSON.parse(json.stdout).version, 'string');
  const wrong = await runProcess([program, '--no-such-flag=1'], { env: {}, stdin: '' });
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /Unknown flag "--no-such-flag"/);
});

test('fifty at once for one image leave one whole file', async () => {
  const here = await place();
  const ran = await Promise.all(Array.from({ length: 50 }, () => call(here.node, 'team-a')));
  assert.deepEqual(
    [...new Set(ran.map(({ code }) => code))],
    [0],
    ran.find(({ code }) => code !== 0)?.stderr,
  );
  const files = authFiles(here.node);
  assert.equal(Object.keys(files).length, 1);
  assert.deepEqual(JSON.parse(Object.values(files)[0]?.text ?? '').auths, { 'mirror.example.com': MEMBER });
  await leave(here);
});

test('killed at any instant: no partial file, and nothing of another namespace', async () => {
  const mine = (namespace: string) => ({
    ...pullSecret('mirror', {
      'mirror.example.com': { auth: Buffer.from(`${namespace}:${namespace}`).toString('base64') },
    }),
    metadata: { name: 'mirror', namespace },
  });
  const here = await place({ secrets: ['team-a', 'team-b'].map(mine) });
  for (let round = 0; round < 40; round += 1) {
    const namespace = round % 2 === 0 ? 'team-a' : 'team-b';
    const child = spawn(program, flagsOf(here.node), { env: {}, stdio: ['pipe', 'ignore', 'ignore'] });
    child.stdin.on('error', () => undefined);
    child.stdin.end(requestFor(IMAGE, tokenFor(namespace)));
    // Spread over the length of a run.
    const timer = setTimeout(() => child.kill('SIGKILL'), round / 2);
    await new Promise((resolve) => child.once('exit', resolve));
    clearTimeout(timer);
    for (const name of readdirSync(here.node.options.authDir).filter((one) => !one.startsWith('.'))) {
      const text = readFileSync(join(here.node.options.authDir, name), 'utf8');
      const owner = name.startsWith('team-a') ? 'team-a' : 'team-b';
      const auth = Buffer.from(`${owner}:${owner}`).toString('base64');
      assert.deepEqual(JSON.parse(text).auths, { 'mirror.example.com': { auth } });
    }
  }
  await leave(here);
});

test.lastly('the folder is removed', () => rmSync(folder, { recursive: true }));
test.run();
