/** `reconcile --from`, run as a user runs it: a process, its output, its exit code, the files it leaves. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { plantedAuth, plantedPassword } from '../support/canary.ts';
import { pullSecretObject } from '../support/meta.ts';
import { type ProcessResult, runMain, runProcess } from '../support/process.ts';
import { type Case, table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const root = new URL('../..', import.meta.url).pathname;
const work = tempFolder();

async function reconcile(args: readonly string[], stdin?: string): Promise<ProcessResult> {
  const ran = await runMain(['reconcile', ...args], {
    cwd: work,
    ...(stdin === undefined ? {} : { stdin }),
  });
  // Into this file's own output, where the runner looks for planted secrets.
  process.stdout.write(ran.stdout + ran.stderr);
  return ran;
}

function pullSecret(name: string, namespace: string, auths: object): string {
  return `${JSON.stringify(pullSecretObject({ name, namespace }, { auths }))}\n---\n`;
}

const PLATFORM = pullSecret('pull-secret', 'openshift-config', {
  'quay.io': { auth: plantedAuth('platform') },
});
const TENANT = pullSecret('additional-pull-secret', 'kube-system', {
  'team.example': { auth: plantedAuth('team') },
});

function folder(name: string, files: Readonly<Record<string, string>>): string {
  const dir = join(work, name);
  mkdirSync(dir, { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(dir, file), text);
  return dir;
}

test('a stand-alone cluster: both roles are one folder', async () => {
  const ran = await reconcile(['--from', folder('alone', { 'all.yaml': PLATFORM + TENANT })]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /^scope local$/m);
  assert.match(
    ran.stdout,
    /created {4}Secret\/kube-system\/global-pull-secret\n.*pull secret for quay\.io, team\.example/,
  );
});

test('standard input', async () => {
  const ran = await reconcile(['--from', '-'], PLATFORM + TENANT);
  assert.match(ran.stdout, /created {4}Secret\/kube-system\/global-pull-secret/);
});

test('JSON and YAML hold the same report', async () => {
  const dir = folder('formats', { 'all.yaml': PLATFORM + TENANT });
  const json = await reconcile(['--from', dir, '--output', 'json']);
  const [report, ...others] = JSON.parse(json.stdout) as {
    counts: { created: number };
    verdicts: { subject: string; verdict: string }[];
  }[];
  assert.ok(report !== undefined && others.length === 0);
  assert.deepEqual(
    report.verdicts.map((one) => `${one.subject} ${one.verdict}`),
    ['team.example Accepted'],
  );
  assert.ok(report.counts.created > 5);
  const yaml = await reconcile(['--from', dir, '--output', 'yaml']);
  assert.match(yaml.stdout, /^ {4}- subject: team\.example$/m);
});

test('--to refuses an empty path, and a key that anybody can guess', async () => {
  const dir = folder('to-refused', { 'all.yaml': PLATFORM + TENANT });
  const key = join(work, 'empty-key');
  writeFileSync(key, '');
  for (const [args, says] of [
    [['--to', ''], /invalid value "" for --to: must be a path/],
    [
      ['--to', join(work, 'refused'), '--digest-key-file', key],
      /as the key of digests: expected at least 16/,
    ],
  ] as const) {
    const ran = await reconcile(['--from', dir, ...args]);
    assert.equal(ran.code, 2);
    assert.match(ran.stderr, says);
  }
});

test('--to writes files that can be compared, with keyed digests in place of values', async () => {
  const dir = folder('to-in', { 'all.yaml': PLATFORM + TENANT });
  const key = join(work, 'key');
  writeFileSync(key, plantedPassword('digest-key'));
  const to = join(work, 'to');
  const args = ['--from', dir, '--to', to, '--digest-key-file', key];
  assert.equal((await reconcile(args)).code, 0);
  const file = join(to, 'hosted/kube-system/secret-global-pull-secret.yaml');
  const first = readFileSync(file, 'utf8');
  assert.match(first, /\.dockerconfigjson: hmac-sha256:[0-9a-f]{32}\n/);
  assert.doesNotMatch(first, /uid|managedFields/);
  writeFileSync(join(to, 'notes.txt'), 'mine');
  assert.equal((await reconcile(args)).code, 0);
  assert.equal(readFileSync(file, 'utf8'), first);
  // Deleting the tenant's secret deletes its file; files of others stay.
  writeFileSync(join(dir, 'all.yaml'), PLATFORM);
  await reconcile(args);
  assert.ok(!readdirSync(join(to, 'hosted/kube-system')).includes('secret-global-pull-secret.yaml'));
  assert.equal(readFileSync(join(to, 'notes.txt'), 'utf8'), 'mine');
});

test('--with-secrets writes values that only the owner can read', async () => {
  const to = join(work, 'values');
  await reconcile([
    '--from',
    folder('values-in', { 'all.yaml': PLATFORM + TENANT }),
    '--to',
    to,
    '--with-secrets',
  ]);
  const file = join(to, 'hosted/kube-system/secret-global-pull-secret.yaml');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const value = /\.dockerconfigjson: (\S+)/.exec(readFileSync(file, 'utf8'))?.[1] ?? '';
  assert.ok(Buffer.from(value, 'base64').toString().includes('team.example'));
});

test('--with-secrets refuses a git work tree', async () => {
  mkdirSync(join(work, 'repo/.git'), { recursive: true });
  const ran = await reconcile([
    '--from',
    folder('repo-in', { 'all.yaml': PLATFORM + TENANT }),
    '--to',
    join(work, 'repo/out'),
    '--with-secrets',
  ]);
  assert.equal(ran.code, 1);
  assert.match(ran.stderr, /is inside the git work tree/);
  assert.deepEqual(readdirSync(join(work, 'repo')), ['.git']);
});

test("--to does not take the place of somebody else's file", async () => {
  const to = folder('theirs/hosted/kube-system', { 'secret-global-pull-secret.yaml': 'mine' });
  const from = folder('theirs-in', { 'all.yaml': PLATFORM + TENANT });
  const ran = await reconcile(['--from', from, '--to', join(work, 'theirs')]);
  assert.equal(ran.code, 1);
  assert.match(ran.stderr, /has files that were not rendered: .*choose another folder/s);
  assert.deepEqual(readdirSync(to), ['secret-global-pull-secret.yaml']);
});

test('--dry-run with --to writes nothing', async () => {
  await reconcile([
    '--from',
    folder('dry-in', { 'all.yaml': PLATFORM }),
    '--to',
    join(work, 'dry-out'),
    '--dry-run',
  ]);
  assert.ok(!readdirSync(work).includes('dry-out'));
});

interface BadRow extends Case {
  readonly args: () => readonly string[];
  readonly code: number;
  readonly says: RegExp;
}

const bad: readonly BadRow[] = [
  {
    name: 'a folder that is not there',
    reason: 'a typo',
    args: () => ['--from', 'nowhere'],
    code: 1,
    says: /^Cannot read "nowhere": not found$/m,
  },
  {
    name: 'a document that is not YAML',
    reason: 'all places at once, and nothing is judged',
    args: () => [
      '--from',
      folder('bad', { 'a.yaml': 'kind: Secret\n\tx: 1\n', 'b.yaml': 'kind: Secret\nmetadata: [\n' }),
    ],
    code: 1,
    says: /a\.yaml:2: not valid YAML[\s\S]*b\.yaml:\d+: not valid YAML[\s\S]*2 documents cannot be read/,
  },
  {
    name: 'a management folder without hosted clusters',
    reason: 'the folders are swapped',
    args: () => [
      '--from',
      folder('h', { 'a.yaml': PLATFORM }),
      '--management',
      folder('m', { 'a.yaml': PLATFORM }),
    ],
    code: 2,
    says: /contains no HostedControlPlane and no HostedCluster/,
  },
  {
    name: 'an output that is none',
    reason: 'wrong usage',
    args: () => ['--from', '.', '--output', 'xml'],
    code: 2,
    says: /invalid value "xml" for --output: must be one of text, json, yaml/,
  },
  { name: 'an unknown flag', reason: 'wrong usage', args: () => ['--form', '.'], code: 2, says: /--form/ },
  {
    name: '--with-secrets without --to',
    reason: 'values go to files, never to the terminal',
    args: () => ['--from', '.', '--with-secrets'],
    code: 2,
    says: /--with-secrets requires --to/,
  },
  {
    name: 'a configuration with mistakes',
    reason: 'all at once',
    args: () => [
      '--from',
      '.',
      '--config',
      join(
        folder('cfg', { 'c.yaml': 'colour: red\nsystems: { no-such: {}, global-pull-secret: 7 }\n' }),
        'c.yaml',
      ),
    ],
    code: 2,
    says: /systems\.global-pull-secret: invalid value 7: must be an object; systems\.no-such: unknown field; .*; colour: unknown field/,
  },
];

table(test, bad, async (row) => {
  const ran = await reconcile(row.args());
  assert.equal(ran.code, row.code, ran.stderr);
  assert.match(ran.stderr, row.says);
  assert.doesNotMatch(ran.stderr, /at .*\.ts:\d+/, 'no stack trace at a user');
  assert.equal(ran.stdout, '');
});

if (process.getuid?.() === 0) {
  test('a file that may not be read is named (as another user)', async () => {
    const dir = folder('locked', { 'a.yaml': PLATFORM });
    chmodSync(work, 0o755);
    chmodSync(join(dir, 'a.yaml'), 0o000);
    const ran = await runProcess([
      'setpriv',
      '--reuid=65534',
      '--clear-groups',
      process.execPath,
      join(root, 'main.ts'),
      'reconcile',
      '--from',
      dir,
    ]);
    assert.equal(ran.code, 1);
    assert.match(ran.stderr, /Cannot read ".*a\.yaml": permission denied/);
  });
} else {
  test('a file that may not be read is named', async () => {
    const dir = folder('locked', { 'a.yaml': PLATFORM });
    chmodSync(join(dir, 'a.yaml'), 0o000);
    assert.match((await reconcile(['--from', dir])).stderr, /permission denied/);
  });
}
