// deadline: 300 s
/** The compiled executable on a node whose folders, files or tokens are not as they should be. */
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
import { type Case, table, test } from '../support/suite.ts';
import { CONF, call, IMAGE, leave, MEMBER, place, program } from './support/compiled-run.ts';
import { authFiles, flagsOf, type NodeDouble, requestFor, tokenFor } from './support/node-double.ts';

const NAME = 'team-a-7e59ad64326bc321517fb6fc6586de5ee149178394d9edfa2a877176cdf6fad5.json';

interface FolderCase extends Case {
  readonly prepare: (authDir: string) => void;
  readonly code: number;
  /** In stderr of a run that fails. */
  readonly says?: RegExp;
}

const folders: readonly FolderCase[] = [
  { name: 'missing, with its parent', reason: 'made for root alone', prepare: () => undefined, code: 0 },
  {
    name: 'open to all',
    reason: 'CRI-O makes it so',
    prepare: (dir) => mkdirSync(dir, { recursive: true, mode: 0o755 }),
    code: 0,
  },
  {
    name: 'link to a folder',
    reason: 'root made it, and CRI-O follows it',
    prepare: (dir) => {
      mkdirSync(`${dir}-real`, { recursive: true, mode: 0o755 });
      symlinkSync(`${dir}-real`, dir);
    },
    code: 0,
  },
  {
    name: 'link to nothing',
    reason: 'nothing is made where it points',
    prepare: (dir) => {
      mkdirSync(join(dir, '..'), { recursive: true });
      symlinkSync('/nonexistent/auth', dir);
    },
    code: 1,
    says: /unable to create auth file: Cannot write/,
  },
  {
    name: 'a file',
    reason: 'it is left as it is',
    prepare: (dir) => {
      mkdirSync(join(dir, '..'), { recursive: true });
      writeFileSync(dir, 'mine');
    },
    code: 1,
    says: /unable to create auth file: Cannot write/,
  },
];
table(test, folders, async ({ prepare, code, says }) => {
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
interface MountCase extends Case {
  readonly mount: string;
  readonly says: RegExp;
}
const mounts: readonly MountCase[] = [
  {
    name: 'full',
    reason: 'no block is left',
    mount: 'mount -t tmpfs -o size=4k tmpfs "$DIR" && head -c 4096 /dev/zero > "$DIR/filler"',
    says: /no space or no inode left/,
  },
  {
    name: 'without inodes',
    reason: 'the folder itself takes the only one',
    mount: 'mount -t tmpfs -o nr_inodes=1 tmpfs "$DIR"',
    says: /no space or no inode left/,
  },
  {
    name: 'read-only',
    reason: 'as after a disk error',
    mount: 'mount --bind "$DIR" "$DIR" && mount -o remount,bind,ro "$DIR"',
    says: /file system is read-only/,
  },
];
if (!canMount) test.skip('full and read-only folders', 'this user may not mount in a namespace of its own');
else
  table(test, mounts, async ({ mount, says }) => {
    const here = await place();
    const ran = await inNamespace(here.node, mount);
    assert.equal(ran.code, 1, ran.stderr);
    assert.match(ran.stderr, says);
    assert.equal(ran.stdout, '');
    // Neither the file nor a piece of it is left.
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
const tokens: readonly (Case & { readonly token: string })[] = [
  { name: 'one part', reason: 'no JWT', token: 'abc' },
  { name: 'two dots', reason: 'three empty parts', token: '..' },
  { name: 'four parts', reason: 'an encrypted one', token: 'a.b.c.d' },
  { name: 'claims no base64', reason: 'other bytes', token: 'a.%%%.c' },
  { name: 'claims no JSON', reason: 'cut off', token: `a.${part({}).slice(0, 1)}.c` },
  { name: 'claims a list', reason: 'expected an object', token: `a.${part([])}.c` },
  { name: 'claims null', reason: 'expected an object', token: `a.${part(null)}.c` },
  { name: 'no claim of Kubernetes', reason: 'of another issuer', token: `a.${part({ sub: 'x' })}.c` },
  { name: 'claim a text', reason: 'expected an object', token: claims('team-a') },
  { name: 'no namespace', reason: 'of a node', token: claims({ node: { name: 'n' } }) },
  { name: 'namespace empty', reason: 'would list all of the cluster', token: claims({ namespace: '' }) },
  { name: 'namespace a number', reason: 'expected text', token: claims({ namespace: 7 }) },
  { name: 'namespace in capitals', reason: 'no DNS label', token: claims({ namespace: 'Team' }) },
  { name: 'namespace with a path', reason: 'leaves the folder', token: claims({ namespace: '../../etc' }) },
  {
    name: 'namespace with a line break',
    reason: 'a header of its own',
    token: claims({ namespace: 'a\r\nb' }),
  },
  { name: 'namespace with a zero', reason: 'ends a path', token: claims({ namespace: 'a\0' }) },
];
table(test, tokens, async ({ token }) => {
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
