// deadline: 300 s
/** The manifest and the archives for laptops, taken by krew itself, and a formula for Homebrew. */
import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { archiveName, homebrewFormula, PLATFORMS, programFile, writeLaptops } from '../../build/laptops.ts';
import { VERSION } from '../../runtime/rules/version.ts';
import { executable } from '../support/executable.ts';
import { runProcess } from '../support/process.ts';
import { suite } from '../support/suite.ts';
import { krewPrograms, missingKrew } from './build.ts';

const test = suite('pullwright on laptops');
const work = mkdtempSync(join(tmpdir(), 'pullwright-krew-'));
const to = join(work, 'release');
const manifest = join(to, 'pullwright.yaml');

test('a formula names each platform of Homebrew once, with its archive', () => {
  const archives = PLATFORMS.map((platform, index) => ({ ...platform, sha256: String(index).repeat(64) }));
  const text = homebrewFormula({ version: '1.2.0', downloads: 'https://example.com/v1.2.0', archives });
  const sources = [...text.matchAll(/on_(arm|intel) do\n {6}url "(.*)"\n {6}sha256 "(\d)\d{63}"/g)];
  assert.deepEqual(
    sources.map(([, arch, url, sum]) => [arch, url, sum]),
    [
      ['intel', 'https://example.com/v1.2.0/pullwright-1.2.0-darwin-x64.tar.gz', '2'],
      ['arm', 'https://example.com/v1.2.0/pullwright-1.2.0-darwin-arm64.tar.gz', '3'],
      ['intel', 'https://example.com/v1.2.0/pullwright-1.2.0-linux-x64.tar.gz', '0'],
      ['arm', 'https://example.com/v1.2.0/pullwright-1.2.0-linux-arm64.tar.gz', '1'],
    ],
  );
  // Every block is closed.
  assert.equal(text.match(/ do$|^class |^ {2}def /gm)?.length, text.match(/^ *end$/gm)?.length);
});

const missing = missingKrew();
if (missing !== undefined) test.skip('krew takes them', missing);
else if (process.arch !== 'x64' || process.platform !== 'linux')
  test.skip('krew takes them', 'needs Linux on x64, whose program is run');
else {
  const program = await executable('x64');
  const here = { os: 'linux', arch: 'x64' } as const;
  mkdirSync(to);
  writeLaptops(
    { work, to, manual: '.TH PULLWRIGHT 1\n', downloads: 'https://example.com/v1', platforms: PLATFORMS },
    // krew puts files to their places and runs none: the real ones of other platforms are in the test of the release.
    ({ os, arch }, file) => {
      if (os === here.os && arch === here.arch) copyFileSync(program, file);
      else writeFileSync(file, `${os} ${arch}\n`);
    },
  );
  const { krew, judge } = await krewPrograms();
  const install = (root: string, platform: (typeof PLATFORMS)[number]) =>
    runProcess(
      [krew, 'install', `--manifest=${manifest}`, `--archive=${join(to, archiveName(VERSION, platform))}`],
      {
        env: {
          PATH: process.env['PATH'] ?? '',
          HOME: work,
          KREW_ROOT: root,
          KREW_OS: platform.os,
          KREW_ARCH: platform.arch === 'x64' ? 'amd64' : 'arm64',
          KREW_NO_UPGRADE_CHECK: '1',
        },
      },
    );

  test('the judge of the index has nothing to say against the manifest', async () => {
    const judged = await runProcess([judge, `-manifest=${manifest}`, '-skip-install']);
    assert.equal(judged.code, 0, judged.stdout + judged.stderr);
  });

  test('krew installs the archive of each platform, and the program under the name of a plugin', async () => {
    for (const platform of PLATFORMS) {
      const root = join(work, `${platform.os}-${platform.arch}`);
      const installed = await install(root, platform);
      assert.equal(installed.code, 0, installed.stderr);
      const plugin = join(root, 'bin', programFile(platform.os).replace('pullwright', 'kubectl-pullwright'));
      assert.ok(lstatSync(plugin).isSymbolicLink(), plugin);
      if (platform.os !== 'linux' || platform.arch !== 'x64')
        assert.equal(readFileSync(plugin, 'utf8'), `${platform.os} ${platform.arch}\n`);
      assert.ok(existsSync(join(root, 'store/pullwright', `v${VERSION}`, 'LICENSE')));
    }
  });

  test('krew refuses an archive of another platform, whose checksum is another', async () => {
    const [first, second] = PLATFORMS;
    assert.ok(first !== undefined && second !== undefined);
    copyFileSync(join(to, archiveName(VERSION, second)), join(work, 'other.tar.gz'));
    const env = { PATH: process.env['PATH'] ?? '', HOME: work, KREW_ROOT: join(work, 'refused') };
    const ran = await runProcess(
      [krew, 'install', `--manifest=${manifest}`, `--archive=${join(work, 'other.tar.gz')}`],
      { env: { ...env, KREW_OS: 'linux', KREW_ARCH: 'amd64' } },
    );
    assert.notEqual(ran.code, 0);
    assert.match(ran.stderr, /checksum does not match/);
  });

  test('the plugin speaks of itself as it is typed', async () => {
    const plugin = join(work, 'linux-x64/bin/kubectl-pullwright');
    const run = (...args: readonly string[]) =>
      runProcess([plugin, ...args], { env: { PATH: '/usr/bin:/bin', HOME: '/nonexistent' } });
    assert.match((await run('explain', '--help')).stdout, /^Usage: kubectl pullwright explain /m);
    assert.match((await run('help')).stdout, /Run "kubectl pullwright <command> --help"/);
    const wrong = await run('status', '--outptu');
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /Run "kubectl pullwright status --help" for usage\n$/);
    assert.equal((await run('--version')).stdout, `pullwright ${VERSION}\n`);
  });
}

test.lastly('the work folder is removed', () => rmSync(work, { recursive: true, force: true }));
test.run();
