/** The command line of the agent: usage, dry runs, probes. Needs no systemd and no root. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { eventually } from '../control-plane/eventually.ts';
import { plantedAuth } from '../support/canary.ts';
import { makeCertificates } from '../support/certificates.ts';
import { executable } from '../support/executable.ts';
import { freePort, listen } from '../support/loopback.ts';
import { RunningAgent, SecretMount } from '../support/node-agent.ts';
import { type ProcessResult, runMain, runProcess } from '../support/process.ts';
import { type Case, table, test } from '../support/suite.ts';
import { until } from '../support/systemd.ts';
import { tempFolder } from '../support/temp-folder.ts';

const root = tempFolder();
const NEW = JSON.stringify({ auths: { 'registry.example.com': { auth: plantedAuth('command') } } });

/** A folder with a secret, and the flags that go with it. */
function place(name: string): { file: string; mount: SecretMount; flags: string[] } {
  const folder = join(root, name);
  const mount = new SecretMount(join(folder, 'original'));
  const file = join(folder, 'config.json');
  const flags = [
    `--original=${mount.file}`,
    `--global=${join(folder, 'none')}`,
    `--file=${file}`,
    '--health-port=off',
  ];
  return { file, mount, flags: [...flags, '--restart=never', '--kubelet-healthz=off'] };
}

/** The same by both runtimes: they must not differ. */
async function both(args: readonly string[]): Promise<ProcessResult> {
  const [onNode, compiled] = await Promise.all([
    runMain(['agent', ...args]),
    runProcess([await executable(), 'agent', ...args]),
  ]);
  assert.deepEqual([compiled.code, compiled.stdout], [onNode.code, onNode.stdout]);
  return compiled;
}

interface Usage extends Case {
  readonly args: readonly string[];
  readonly text: RegExp;
}

table(
  test,
  [
    {
      name: 'unknown flag',
      reason: 'a typo must not be ignored',
      args: ['--restrat=never'],
      text: /--restrat/,
    },
    {
      name: 'unknown mode',
      reason: 'the modes are listed',
      args: ['--restart=maybe'],
      text: /invalid value "maybe" for --restart: must be one of on-change, on-removal, never/,
    },
    {
      name: 'not a time',
      reason: 'the unit is unknown',
      args: ['--restart-window=5min'],
      text: /invalid value "5min" for --restart-window: must be a duration such as 30s or 5m/,
    },
    {
      name: 'a time too long',
      reason: 'nobody waits for a month',
      args: ['--settle=100h'],
      text: /at most 24h/,
    },
    {
      name: 'relative file',
      reason: 'the folder of a daemon is nobody’s wish',
      args: ['--file=config.json'],
      text: /must be an absolute path/,
    },
    {
      name: 'port too high',
      reason: 'ports end at 65535',
      args: ['--health-port=70000'],
      text: /must be a port from 0 to 65535/,
    },
    {
      name: 'dry run of a daemon',
      reason: 'it would never end',
      args: ['--dry-run'],
      text: /--dry-run requires --once/,
    },
    {
      name: 'healthz of another protocol',
      reason: 'only http is asked',
      args: ['--kubelet-healthz=ftp://x'],
      text: /must be off, auto or an http/,
    },
  ] satisfies Usage[],
  async ({ args, text }) => {
    const ran = await both(args);
    assert.equal(ran.code, 2);
    assert.match(ran.stderr, text);
    assert.match(ran.stderr, /Run "pullwright agent --help" for usage\n$/);
  },
);

test('--once --dry-run says what would be done, and touches nothing', async () => {
  const { mount, flags, file } = place('dry');
  mount.swap(NEW);
  const ran = await both(['--once', '--dry-run', '--output=json', ...flags]);
  assert.equal(ran.code, 1);
  assert.deepEqual(JSON.parse(ran.stdout), {
    would: 'write the file',
    restart: false,
    source: 'original',
    entries: 1,
    foreign: 0,
    ready: false,
    reason: 'Writing',
    message: 'The file differs from the desired content',
  });
  assert.deepEqual(readdirSync(join(file, '..')), ['original']);
});

test('--once writes, and a second time finds nothing to do', async () => {
  const { mount, flags, file } = place('once');
  mount.swap(NEW);
  for (let round = 0; round < 2; round += 1) {
    const ran = await runProcess([await executable(), 'agent', '--once', ...flags]);
    assert.deepEqual([ran.code, ran.stdout.includes('InSync')], [0, true], ran.stderr);
    assert.equal(ran.stderr.includes('File written'), round === 0);
    assert.equal(readFileSync(file, 'utf8'), NEW);
  }
  assert.equal(
    (await both(['--once', '--dry-run', '--output=yaml', ...flags])).stdout.split('\n')[0],
    'would: do nothing',
  );
});

test('probes: ready when in sync, not ready with the reason when not, metrics without a value of a secret', async () => {
  const { mount, flags } = place('probes');
  const port = 19_000 + (process.pid % 10_000);
  mount.swap('{');
  const agent = new RunningAgent([await executable(), 'agent', ...flags, `--health-port=${port}`]);
  const get = async (path: string): Promise<readonly [number, string]> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    return [response.status, await response.text()];
  };
  try {
    await until('the source is refused', () => agent.reason() === 'SourceInvalid');
    await until('it listens', () =>
      get('/healthz').then(
        () => true,
        () => false,
      ),
    );
    const [status, text] = await get('/readyz');
    assert.equal(status, 503);
    assert.match(text, /^SourceInvalid: Cannot use original pull secret ".*": .*it is not JSON/);
    mount.swap(NEW);
    await until('it is ready', async () => (await get('/readyz'))[0] === 200);
    assert.deepEqual(await get('/healthz'), [200, 'ok\n']);
    assert.equal((await get('/nothing'))[0], 404);
    const [, metrics] = await get('/metrics');
    for (const line of [
      'pullwright_agent_in_sync 1',
      'pullwright_agent_writes_total 1',
      'pullwright_agent_breaker_open 0',
    ])
      assert.ok(metrics.split('\n').includes(line), `${line}\n${metrics}`);
    assert.equal((await agent.stop()).code, 0);
  } finally {
    await agent.kill();
  }
});

test('a port that is taken keeps no credential from the node', async () => {
  const { mount, flags, file } = place('port');
  mount.swap(NEW);
  const other = createServer();
  const port = await listen(other);
  const agent = new RunningAgent([await executable(), 'agent', ...flags, `--health-port=${port}`]);
  await until('in sync', () => agent.reason() === 'InSync');
  await until('a line says so', () => /Cannot listen on 127\.0\.0\.1:\d+: EADDRINUSE/.test(agent.text()));
  assert.equal(readFileSync(file, 'utf8'), NEW);
  other.close();
  assert.equal((await agent.stop()).code, 0);
});

function pageOf(port: number, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: '/metrics', ca, agent: false }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      response.on('end', () => resolve(text));
    }).on('error', reject);
  });
}

test('metrics are served with TLS', async () => {
  const { mount, flags } = place('tls');
  mount.swap(NEW);
  const tls = join(root, 'tls-files');
  mkdirSync(tls);
  const { ca, cert, key } = makeCertificates();
  writeFileSync(join(tls, 'tls.crt'), cert);
  writeFileSync(join(tls, 'tls.key'), key);
  const port = await freePort();
  const agent = new RunningAgent([
    await executable(),
    'agent',
    ...flags,
    '--metrics-address=127.0.0.1',
    `--metrics-port=${port}`,
    `--metrics-tls-dir=${tls}`,
  ]);
  await until('in sync', () => agent.reason() === 'InSync');
  const page = await eventually(() => pageOf(port, ca));
  assert.match(page, /^pullwright_agent_in_sync 1$/m);
  assert.equal((await agent.stop()).code, 0);
});

test('nothing of the folder is world-readable', async () => {
  const { mount, flags, file } = place('modes');
  mount.swap(NEW);
  await runProcess([await executable(), 'agent', '--once', ...flags]);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(statSync(join(file, '../.pullwright')).mode & 0o777, 0o700);
  assert.equal(statSync(join(file, '../.pullwright/journal.json')).mode & 0o777, 0o600);
  assert.ok(!existsSync(join(file, '../.pullwright/saved.json')));
});
