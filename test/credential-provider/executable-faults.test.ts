// deadline: 300 s
/** The compiled executable on a node with unexpected folders, files or tokens. */
import assert from 'node:assert/strict';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type ProcessResult, runProcess } from '../support/process.ts';
import { type Cases, cases, test } from '../support/suite.ts';
import { CONF, call, IMAGE, leave, MEMBER, place, program } from './support/compiled-run.ts';
import { authFiles, flagsOf, type NodeDouble, requestFor, tokenFor } from './support/node-double.ts';

const NAME = 'team-a-7e59ad64326bc321517fb6fc6586de5ee149178394d9edfa2a877176cdf6fad5.json';

type FolderCase = [prepare: (authDir: string) => void, code: number, says?: RegExp];

const folders: Cases<FolderCase> = [
  ['missing, with its parent', 'made for root alone', () => undefined, 0],
  ['open to all', 'CRI-O makes it so', (dir) => mkdirSync(dir, { recursive: true, mode: 0o755 }), 0],
  [
    'link to a folder',
    'root made it, and CRI-O follows it',
    (dir) => {
      mkdirSync(`${dir}-real`, { recursive: true, mode: 0o755 });
      symlinkSync(`${dir}-real`, dir);
    },
    0,
  ],
  [
    'link to nothing',
    'nothing is made where it points',
    (dir) => {
      mkdirSync(join(dir, '..'), { recursive: true });
      symlinkSync('/nonexistent/auth', dir);
    },
    1,
    /unable to create auth file: Cannot write/,
  ],
  [
    'a file',
    'it is left as it is',
    (dir) => {
      mkdirSync(join(dir, '..'), { recursive: true });
      writeFileSync(dir, 'mine');
    },
    1,
    /unable to create auth file: Cannot write/,
  ],
];
cases<FolderCase>(test, folders, async (prepare, code, says) => {
  const here = await place();
  const authDir = join(here.node.folder, 'etc/crio/auth');
  prepare(authDir);
  const ran = await call(here.node, 'team-a', { flags: [`--auth-dir=${authDir}`] });
  assert.equal(ran.code, code, ran.stderr);
  if (says !== undefined) assert.match(ran.stderr, says);
  if (code === 0) {
    assert.equal(statSync(authDir).mode & 0o777, 0o700);
    const path = join(authDir, NAME);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.deepEqual(JSON.parse(readFileSync(path, 'utf8')).auths, { 'mirror.example.com': MEMBER });
  }
  await leave(here);
});

test('a link in place of the auth file is replaced, and what it points to is left alone', async () => {
  const here = await place();
  const target = join(here.node.folder, 'target');
  const path = join(here.node.options.authDir, NAME);
  writeFileSync(target, 'precious');
  symlinkSync(target, path);
  assert.equal(readlinkSync(path), target);
  const ran = await call(here.node, 'team-a');
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(readFileSync(target, 'utf8'), 'precious');
  assert.deepEqual(JSON.parse(readFileSync(path, 'utf8')).auths, { 'mirror.example.com': MEMBER });
  await leave(here);
});

test('a limit of file sizes leaves no part of a file, and the one that was there as it was', async () => {
  const here = await place();
  const path = join(here.node.options.authDir, NAME);
  const old = '{"auths":{"mirror.example.com":{"auth":"b2xkOm9sZA=="}}}';
  writeFileSync(path, old, { mode: 0o600 });
  const ran = await runProcess(['prlimit', '--fsize=20', program, ...flagsOf(here.node)], {
    stdin: requestFor(IMAGE, tokenFor('team-a')),
    env: { PATH: process.env['PATH'] },
    cwd: '/',
  });
  assert.equal(ran.code, 1, ran.stderr);
  assert.match(ran.stderr, /unable to create auth file: .*EFBIG/);
  assert.equal(ran.stdout, '');
  assert.deepEqual(readdirSync(here.node.options.authDir, { recursive: true }), ['failed', NAME]);
  assert.equal(readFileSync(path, 'utf8'), old);
  await leave(here);
});

/** One run in a mount namespace that `mount` has prepared; prints the names in the folder afterwards. */
function inNamespace(node: NodeDouble, mount: string): Promise<ProcessResult> {
  const script = `${mount}\n"$0" "$@"\ncode=$?\nls -A "$DIR" >&2\nexit $code`;
  return runProcess(['unshare', '--mount', '/bin/sh', '-c', script, program, ...flagsOf(node)], {
    stdin: requestFor(IMAGE, tokenFor('team-a')),
    env: { PATH: process.env['PATH'], DIR: node.options.authDir },
    cwd: '/',
  });
}

const canMount =
  (await runProcess(['unshare', '--mount', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'])).code === 0;
type MountCase = [mount: string, says: RegExp];
const mounts: Cases<MountCase> = [
  [
    'full',
    'no block is left',
    'mount -t tmpfs -o size=4k tmpfs "$DIR" && head -c 4096 /dev/zero > "$DIR/filler"',
    /out of space or inodes/,
  ],
  [
    'without inodes',
    'the folder itself takes the only one',
    'mount -t tmpfs -o nr_inodes=1 tmpfs "$DIR"',
    /out of space or inodes/,
  ],
  [
    'read-only',
    'as after a disk error',
    'mount --bind "$DIR" "$DIR" && mount -o remount,bind,ro "$DIR"',
    /file system is read-only/,
  ],
];
if (!canMount) test.skip('full and read-only folders', 'this user may not mount in a namespace of its own');
else
  cases<MountCase>(test, mounts, async (mount, says) => {
    const here = await place();
    const ran = await inNamespace(here.node, mount);
    assert.equal(ran.code, 1, ran.stderr);
    assert.match(ran.stderr, says);
    assert.equal(ran.stdout, '');
    // Neither the file nor a temporary file remains.
    assert.doesNotMatch(ran.stderr.split('\n').slice(-3).join('\n'), /^\.?team-a-/m);
    await leave(here);
  });

test('10 MB of registries.conf, plain and not', async () => {
  const tables: string[] = [];
  for (let index = 0; tables.length < 80_000; index += 1)
    tables.push(
      `[[registry]]\nlocation = "src-${index}.example.com/project"\n\n[[registry.mirror]]\nlocation = "mirror-${index}.example.com:5000/project"\n`,
    );
  const plain = `${tables.join('\n')}\n${CONF}`;
  assert.ok(plain.length > 10_000_000);
  // A string in single quotes needs the complete parser.
  for (const registriesConf of [plain, `short-name-mode = 'permissive'\n${plain}`]) {
    const here = await place({}, { files: { registriesConf } });
    const ran = await call(here.node, 'team-a');
    assert.equal(ran.code, 0, ran.stderr.slice(-600));
    assert.equal(Object.keys(authFiles(here.node)).length, 1);
    await leave(here);
  }
});

test('a drop-in that is written while it is read gives the old answer or a reason, wherever it ends', async () => {
  const dropin =
    '[[registry]]\nprefix = "docker.io"\nlocation = "docker.io"\n\n[[registry.mirror]]\nlocation = "other.example.com"\n';
  const here = await place();
  const path = join(here.node.folder, 'registries.conf.d/50-team.conf');
  for (let length = 0; length <= dropin.length; length += 9) {
    writeFileSync(path, dropin.slice(0, length));
    rmSync(here.node.options.authDir, { recursive: true, force: true });
    const ran = await call(here.node, 'team-a');
    if (ran.code === 0) continue;
    assert.match(ran.stderr, /50-team\.conf/, `cut at ${length}`);
    assert.doesNotMatch(ran.stderr, /\n\s+at /);
    assert.equal(ran.stdout, '');
  }
  await leave(here);
});

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const claims = (own: unknown): string => `${part({ alg: 'RS256' })}.${part({ 'kubernetes.io': own })}.c2ln`;
type Token = [token: string];
const tokens: Cases<Token> = [
  ['one part', 'no JWT', 'abc'],
  ['two dots', 'three empty parts', '..'],
  ['four parts', 'an encrypted one', 'a.b.c.d'],
  ['claims no base64', 'other bytes', 'a.%%%.c'],
  ['claims no JSON', 'cut off', `a.${part({}).slice(0, 1)}.c`],
  ['claims a list', 'expected an object', `a.${part([])}.c`],
  ['claims null', 'expected an object', `a.${part(null)}.c`],
  ['no claim of Kubernetes', 'of another issuer', `a.${part({ sub: 'x' })}.c`],
  ['claim a text', 'expected an object', claims('team-a')],
  ['no namespace', 'of a node', claims({ node: { name: 'n' } })],
  ['namespace empty', 'would list all of the cluster', claims({ namespace: '' })],
  ['namespace a number', 'expected text', claims({ namespace: 7 })],
  ['namespace in capitals', 'no DNS label', claims({ namespace: 'Team' })],
  ['namespace with a path', 'leaves the folder', claims({ namespace: '../../etc' })],
  ['namespace with a line break', 'a header of its own', claims({ namespace: 'a\r\nb' })],
  ['namespace with a zero', 'ends a path', claims({ namespace: 'a\0' })],
];
cases<Token>(test, tokens, async (token) => {
  const here = await place();
  const ran = await call(here.node, 'team-a', { stdin: requestFor(IMAGE, token) });
  assert.equal(ran.code, 1, ran.stderr);
  assert.match(ran.stderr, /unable to extract namespace/);
  assert.equal(ran.stdout, '');
  assert.equal(here.api.requests.length, 0);
  await leave(here);
});

test('a token with a line break after it cannot add a header', async () => {
  const here = await place();
  const ran = await call(here.node, 'team-a', {
    stdin: requestFor(IMAGE, `${tokenFor('team-a')}\r\nx-forged: 1`),
  });
  assert.equal(ran.code, 1);
  assert.equal(here.api.requests.length, 0);
  assert.ok(!ran.stderr.includes(tokenFor('team-a')));
  await leave(here);
});
