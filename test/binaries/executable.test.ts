// deadline: 240 s
/** The compiled executable: its names, what it refuses to read from its surroundings, and that a build can be repeated. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compile } from '../../build/compile.ts';
import { VERSION } from '../../runtime/core/version.ts';
import { executable } from '../support/executable.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const arch = process.arch === 'arm64' ? 'arm64' : 'x64';

/** A program that shows what reached it, compiled with the flags of the product. */
const PROBE = `
process.stdout.write(JSON.stringify({
  env: process.env['PULLWRIGHT_PROBE'] ?? null,
  preloaded: globalThis.preloaded ?? false,
}));
`;

async function probe(env: NodeJS.ProcessEnv = {}): Promise<{ env: string | null; preloaded: boolean }> {
  const ran = await runProcess([join(folder, 'probe')], {
    cwd: folder,
    env: { PATH: '/usr/bin:/bin', ...env },
  });
  assert.equal(ran.code, 0, ran.stderr);
  return JSON.parse(ran.stdout) as { env: string | null; preloaded: boolean };
}

test('says its version', async () => {
  const ran = await runProcess([await executable(), '--version']);
  assert.deepEqual([ran.code, ran.stdout, ran.stderr], [0, `pullwright ${VERSION}\n`, '']);
});

test('an unknown command is wrong usage, without a stack trace', async () => {
  const ran = await runProcess([await executable(), 'no-such-command']);
  assert.equal(ran.code, 2);
  assert.equal(ran.stdout, '');
  assert.match(ran.stderr, /^Unknown command "no-such-command": expected one of /);
  assert.doesNotMatch(ran.stderr, /\n\s+at /);
});

test('a copy and a link called kubectl-pullwright are pullwright', async () => {
  copyFileSync(await executable(), join(folder, 'kubectl-pullwright'));
  mkdirSync(join(folder, 'linked'));
  symlinkSync(await executable(), join(folder, 'linked/kubectl-pullwright'));
  for (const place of [folder, join(folder, 'linked')]) {
    const ran = await runProcess([join(place, 'kubectl-pullwright'), '--version']);
    assert.equal(ran.stdout, `pullwright ${VERSION}\n`);
  }
});

test('flags of the executable are the command’s, not the runtime’s', async () => {
  const ran = await runProcess([await executable(), '--print', '1+1']);
  assert.equal(ran.code, 2);
  assert.match(ran.stderr, /Unknown command "--print"/);
});

test('a .env, a bunfig.toml, a tsconfig.json and a package.json in the working folder change nothing', async () => {
  writeFileSync(join(folder, 'probe.ts'), PROBE);
  compile(arch, join(folder, 'probe'), join(folder, 'probe.ts'));
  writeFileSync(join(folder, '.env'), 'PULLWRIGHT_PROBE=from-file\n');
  writeFileSync(join(folder, 'preload.ts'), 'globalThis.preloaded = true;\n');
  writeFileSync(join(folder, 'bunfig.toml'), 'preload = ["./preload.ts"]\n');
  writeFileSync(join(folder, 'tsconfig.json'), '{"compilerOptions":{"baseUrl":"/nonexistent"}}');
  writeFileSync(join(folder, 'package.json'), '{"name":"x","type":"commonjs"}');
  assert.deepEqual(await probe(), { env: null, preloaded: false });
  assert.deepEqual(await probe({ PULLWRIGHT_PROBE: 'given' }), { env: 'given', preloaded: false });
});

test('whoever sets its environment runs code in it: shown here, because docs/global-pull-secret.md says so', async () => {
  const preloaded = await probe({ BUN_OPTIONS: `--preload=${join(folder, 'preload.ts')}` });
  assert.equal(
    preloaded.preloaded,
    true,
    'BUN_OPTIONS is no longer obeyed: correct docs/global-pull-secret.md',
  );
  const bun = await runProcess([await executable(), '--version'], { env: { BUN_BE_BUN: '1' } });
  assert.match(
    bun.stdout,
    /^\d+\.\d+\.\d+\n$/,
    'BUN_BE_BUN is no longer obeyed: correct docs/global-pull-secret.md',
  );
});

test('two builds of the same sources are the same file', () => {
  const sums = ['first', 'second'].map((name) => {
    const outfile = join(folder, name);
    compile(arch, outfile);
    const sum = createHash('sha256').update(readFileSync(outfile)).digest('hex');
    rmSync(outfile);
    return sum;
  });
  assert.equal(sums[0], sums[1]);
});

test('the other architecture is built too', async () => {
  const other = arch === 'x64' ? 'arm64' : 'x64';
  const head = readFileSync(await executable(other)).subarray(0, 20);
  assert.deepEqual([...head.subarray(0, 4)], [0x7f, 0x45, 0x4c, 0x46]);
  assert.equal(head.readUInt16LE(18), other === 'arm64' ? 0xb7 : 0x3e, 'the machine field of the ELF header');
});
