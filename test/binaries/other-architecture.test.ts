// deadline: 600 s
/** The half of the image that this machine cannot run by itself: its executable under qemu-user, over the image's own files. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildImage } from '../../build/image/build.ts';
import { VERSION } from '../../runtime/core/version.ts';
import { executable } from '../support/executable.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const root = new URL('../..', import.meta.url).pathname;
const NEEDED = {
  '/usr/bin/qemu-aarch64': 'qemu-user',
  '/usr/bin/skopeo': 'skopeo',
  '/usr/bin/umoci': 'umoci',
  '/usr/bin/dpkg-deb': 'dpkg',
};
const lost = Object.entries(NEEDED).find(([path]) => !existsSync(path));

if (process.arch !== 'x64' || process.getuid?.() !== 0 || lost !== undefined)
  test.skip('runs', lost === undefined ? 'needs root on x64, to unpack and to emulate' : `needs ${lost[1]}`);
else {
  const work = tempFolder();
  const rootfs = join(work, 'bundle/rootfs');
  const run = (program: string, args: readonly string[], input = '') =>
    runProcess(['/usr/bin/qemu-aarch64', '-L', rootfs, join(rootfs, 'usr/bin', program), ...args], {
      stdin: input,
      deadlineMs: 120_000,
    });
  const ok = async (command: readonly string[]): Promise<void> => {
    const { code, stderr } = await runProcess(command);
    assert.equal(code, 0, stderr);
  };

  test('is in the index, and is for that machine', async () => {
    const layout = join(work, 'layout');
    const executables = { x64: await executable('x64'), arm64: await executable('arm64') };
    buildImage(layout, executables);
    const single = `oci:${join(work, 'single')}:one`;
    await ok(['skopeo', '--override-arch', 'arm64', 'copy', '--quiet', `oci:${layout}:${VERSION}`, single]);
    await ok(['umoci', 'unpack', '--image', `${join(work, 'single')}:one`, join(work, 'bundle')]);
    const head = readFileSync(join(rootfs, 'usr/bin/pullwright')).subarray(0, 20);
    assert.equal(head.readUInt16LE(18), 0xb7, 'the machine field of the ELF header');
  });

  test('says its version', async () => {
    const { code, stdout, stderr } = await run('pullwright', ['--version']);
    assert.equal(code, 0, stderr);
    assert.equal(stdout, `pullwright ${VERSION}\n`);
  });

  test('as the kubelet starts it, answers as that of this machine does', async () => {
    const conf = join(work, 'registries.conf');
    writeFileSync(conf, '');
    const request = JSON.stringify({
      apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
      kind: 'CredentialProviderRequest',
      image: 'docker.io/library/nginx',
    });
    const flags = [
      `--registries-conf=${conf}`,
      `--registries-conf-dir=${work}/none`,
      `--journal-socket=${work}/none`,
    ];
    const { code, stdout, stderr } = await run('crio-credential-provider', flags, request);
    assert.equal(code, 0, stderr);
    const { kind, cacheKeyType } = JSON.parse(stdout) as { kind: string; cacheKeyType: string };
    assert.deepEqual([kind, cacheKeyType], ['CredentialProviderResponse', 'Image']);
    const sample = readFileSync(`${root}examples/request.json`, 'utf8');
    const here = await runProcess([await executable('x64'), 'provider', '--dry-run'], { stdin: sample });
    const there = await run('pullwright', ['provider', '--dry-run'], sample);
    assert.equal(here.code, 0, here.stderr);
    assert.match(there.stdout, /mirror\.example\.com\/hub of secret mirror-pull-secret/);
    assert.deepEqual([there.code, there.stdout, there.stderr], [here.code, here.stdout, here.stderr]);
  });
}
