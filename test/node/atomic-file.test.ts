import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { PullwrightError } from '../../runtime/core/errors.ts';
import { redact, reveal } from '../../runtime/core/redacted.ts';
import { readWhole, removeFile, replaceFile, sweepLeftovers } from '../../runtime/node/atomic-file.ts';
import { plantedPassword } from '../support/canary.ts';
import { type Case, table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const root = tempFolder();
const isRoot = process.getuid?.() === 0;

function folder(name: string): string {
  const path = join(root, name);
  mkdirSync(path);
  return path;
}

function failure(run: () => unknown): PullwrightError {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof PullwrightError, String(error));
    assert.doesNotMatch(error.message, /planted/);
    return error;
  }
  throw new assert.AssertionError({ message: 'nothing was thrown' });
}

const OLD = Buffer.from('old');
const NEW = Buffer.from('new content');

test('an absent file is undefined, and made with mode 0600 whatever the umask', () => {
  const path = join(folder('fresh'), 'config.json');
  assert.equal(readWhole(path), undefined);
  const before = process.umask(0o777);
  replaceFile(path, redact(new Uint8Array(NEW)));
  process.umask(before);
  assert.equal(statSync(path).mode & 0o7777, 0o600);
  assert.deepEqual(readFileSync(path), NEW);
});

test('mode and owner of an existing file are kept', () => {
  const path = join(folder('kept'), 'config.json');
  writeFileSync(path, OLD);
  chmodSync(path, 0o640);
  if (isRoot) chownSync(path, 1234, 2345);
  replaceFile(path, NEW, { mode: 0o600, owner: { uid: 0, gid: 0 } });
  const content = readWhole(path);
  assert.equal(content?.mode, 0o640);
  if (isRoot) assert.deepEqual([content?.uid, content?.gid], [1234, 2345]);
  assert.deepEqual(content && Buffer.from(reveal(content.bytes)), NEW);
});

test('mode and owner of an existing file are not kept where the file is to be fresh', () => {
  const path = join(folder('not-kept'), 'config.json');
  writeFileSync(path, OLD);
  chmodSync(path, 0o666);
  if (isRoot) chownSync(path, 1234, 2345);
  replaceFile(path, NEW, { fresh: true });
  const { mode, uid } = statSync(path);
  assert.deepEqual([mode & 0o7777, uid], [0o600, process.getuid?.()]);
});

test('mode and owner of a file that is not there are as asked', () => {
  const path = join(folder('asked'), 'config.json');
  replaceFile(path, NEW, { mode: 0o644, ...(isRoot ? { owner: { uid: 1234, gid: 2345 } } : {}) });
  assert.equal(statSync(path).mode & 0o7777, 0o644);
  if (isRoot) assert.equal(statSync(path).uid, 1234);
});

test('the content is redacted wherever it is printed', () => {
  const path = join(folder('printed'), 'config.json');
  writeFileSync(path, plantedPassword('atomic'));
  assert.match(JSON.stringify(readWhole(path)), /\[redacted\]/);
});

test('nothing but the file is left in the folder, also after a failure', () => {
  const place = folder('clean');
  replaceFile(join(place, 'config.json'), NEW);
  mkdirSync(join(place, 'taken'));
  failure(() => replaceFile(join(place, 'taken'), NEW));
  assert.deepEqual(readdirSync(place).sort(), ['config.json', 'taken']);
});

interface Refused extends Case {
  readonly make: (path: string) => void;
  readonly code: string;
  readonly text: RegExp;
}

table(
  test,
  [
    {
      name: 'a symbolic link to a file',
      reason: 'root must not read or write where somebody else points',
      make: (path) => symlinkSync('/etc/hostname', path),
      code: 'IsSymlink',
      text: /symbolic link, expected a regular file \(ELOOP\)/,
    },
    {
      name: 'a link that points nowhere',
      reason: 'it would be created at the target',
      make: (path) => symlinkSync('/nonexistent/target', path),
      code: 'IsSymlink',
      text: /symbolic link/,
    },
    {
      name: 'a folder',
      reason: 'a mount of a missing file makes one',
      make: (path) => mkdirSync(path),
      code: 'NotAFile',
      text: /not a regular file|is a folder/,
    },
    {
      name: 'a named pipe',
      reason: 'opening it must not wait for a writer',
      make: (path) => execFileSync('mkfifo', [path]),
      code: 'NotAFile',
      text: /not a regular file/,
    },
  ] satisfies Refused[],
  ({ name, make, code, text }) => {
    const path = join(folder(name), 'config.json');
    make(path);
    for (const run of [() => readWhole(path), () => replaceFile(path, NEW)]) {
      const error = failure(run);
      assert.equal(error.code, code);
      assert.match(error.message, text);
    }
  },
);

test('a missing folder is named', () => {
  const error = failure(() => replaceFile(join(root, 'nowhere/config.json'), NEW));
  assert.equal(error.code, 'NoFolder');
  assert.match(error.message, /^Cannot write ".*nowhere\/config\.json": it does not exist \(ENOENT\)$/);
});

function mounted(options: string, body: (place: string) => void): void {
  const place = mkdtempSync(join(root, 'mount-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', place]);
  try {
    body(place);
  } finally {
    execFileSync('umount', ['-l', place]);
  }
}

test.asRoot('a full file system: the old content stays, and the error says so', () =>
  mounted('size=64k', (place) => {
    const path = join(place, 'config.json');
    replaceFile(path, OLD);
    const error = failure(() => replaceFile(path, Buffer.alloc(1 << 20, 'x')));
    assert.equal(error.code, 'DiskFull');
    assert.deepEqual(readFileSync(path), OLD);
    assert.deepEqual(readdirSync(place), ['config.json']);
  }),
);
test.asRoot('no inode left: the old content stays', () =>
  mounted('nr_inodes=3', (place) => {
    const path = join(place, 'config.json');
    replaceFile(path, OLD);
    writeFileSync(join(place, 'last'), '');
    assert.equal(failure(() => replaceFile(path, NEW)).code, 'DiskFull');
    assert.deepEqual(readFileSync(path), OLD);
  }),
);
test.asRoot('a read-only file system: the old content stays', () =>
  mounted('size=64k', (place) => {
    const path = join(place, 'config.json');
    replaceFile(path, OLD);
    execFileSync('mount', ['-o', 'remount,ro', place]);
    assert.equal(failure(() => replaceFile(path, NEW)).code, 'ReadOnlyFilesystem');
    assert.deepEqual(readFileSync(path), OLD);
  }),
);

test('a removal is of files that may be absent', () => {
  const path = join(folder('removed'), 'config.json');
  writeFileSync(path, OLD);
  removeFile(path);
  removeFile(path);
  assert.equal(existsSync(path), false);
});

test('leftovers are swept, folders and other files are not', () => {
  const place = folder('swept');
  for (const name of ['.config.json.tmp-1', '.other.json.tmp-1', 'config.json'])
    writeFileSync(join(place, name), '');
  mkdirSync(join(place, '.config.json.tmp-2'));
  assert.equal(sweepLeftovers(join(place, 'config.json')), 1);
  assert.deepEqual(readdirSync(place).sort(), ['.config.json.tmp-2', '.other.json.tmp-1', 'config.json']);
  assert.equal(sweepLeftovers(join(place, 'none/config.json')), 0);
});

test('a reader never sees anything but one of the whole contents, however often the writer is killed', async () => {
  const place = folder('killed');
  const path = join(place, 'config.json');
  const program = join(place, 'writer.ts');
  writeFileSync(
    program,
    `import { replaceFile } from ${JSON.stringify(new URL('../../runtime/node/atomic-file.ts', import.meta.url).pathname)};
     for (let at = 0; ; at += 1) {
       replaceFile(process.argv[2], Buffer.alloc(200_000, at % 2 === 0 ? 'a' : 'b'));
       if (at === 1) process.stdout.write('writing');
     }`,
  );
  for (let round = 0; round < 8; round += 1) {
    const child = spawn(process.execPath, [program, path], { stdio: ['ignore', 'pipe', 'inherit'] });
    await new Promise((resolve) => child.stdout.once('data', resolve));
    await delay(round * 7);
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('close', resolve));
    const content = readWhole(path);
    assert.ok(content !== undefined);
    const bytes = Buffer.from(reveal(content.bytes));
    assert.equal(bytes.length, 200_000);
    assert.ok(bytes.every((byte) => byte === bytes[0]));
  }
});
