// deadline: 600 s
/** The image as a registry and a node get it: inspected, unpacked, run. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { buildImage } from '../../build/image/build.ts';
import { packageSources } from '../../build/image/debian.ts';
import { VERSION } from '../../runtime/core/version.ts';
import { executable } from '../support/executable.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const work = tempFolder();
const layout = join(work, 'layout');
const tag = `oci:${layout}:${VERSION}`;

async function has(tool: string): Promise<boolean> {
  return (await runProcess(['sh', '-c', `command -v ${tool}`])).code === 0;
}

const missing: string[] = [];
for (const tool of ['skopeo', 'umoci', 'dpkg-deb', 'apt-get']) if (!(await has(tool))) missing.push(tool);

if (missing.length > 0 || process.getuid?.() !== 0) {
  test.skip(
    'is built, inspected and run',
    missing.length > 0
      ? `this machine has no ${missing.join(', ')}`
      : 'needs root, to unpack and to change the root folder',
  );
} else {
  let digest = '';

  interface Bill {
    readonly packages: readonly { readonly name: string; readonly checksums?: readonly Checksum[] }[];
    readonly files: readonly { readonly comment: string; readonly checksums: readonly Checksum[] }[];
  }
  interface Checksum {
    readonly algorithm: string;
    readonly checksumValue: string;
  }

  function bill(): Bill {
    return JSON.parse(readFileSync(join(layout, 'sbom.spdx.json'), 'utf8')) as Bill;
  }

  /** Every file of the image is a file of a package of the bill, the executable of the bill, or one that is put together of these. */
  async function isAsBilled(rootfs: string): Promise<void> {
    const { packages, files } = bill();
    const cache = packageSources().cache;
    const known = new Map<string, string>();
    for (const { name, checksums = [] } of packages) {
      const sum = checksums.find(({ algorithm }) => algorithm === 'SHA256')?.checksumValue;
      const deb = join(cache, `${sum ?? ''}.deb`);
      if (sum === undefined || !existsSync(deb)) continue;
      assert.equal(sumOf(deb), sum, name);
      const into = mkdtempSync(join(work, 'deb-'));
      assert.equal((await runProcess(['dpkg-deb', '--extract', deb, into])).code, 0);
      for (const file of filesOf(into)) known.set(sumOf(join(into, file)), name);
    }
    for (const { comment, checksums } of files)
      known.set(checksums.find(({ algorithm }) => algorithm === 'SHA256')?.checksumValue ?? '', comment);
    const unbilled = filesOf(rootfs).filter((file) => !known.has(sumOf(join(rootfs, file))));
    assert.deepEqual(unbilled.sort(), [
      'etc/group',
      'etc/nsswitch.conf',
      'etc/passwd',
      'etc/ssl/certs/ca-certificates.crt',
    ]);
    assert.equal(known.get(sumOf(join(rootfs, 'usr/bin/pullwright'))), 'linux-x64');
  }

  function filesOf(folder: string): readonly string[] {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
      lstatSync(join(folder, path)).isFile(),
    );
  }

  function sumOf(path: string): string {
    return createHash('sha256').update(readFileSync(path)).digest('hex');
  }

  test('is built for both architectures', async () => {
    const executables = { x64: await executable('x64'), arm64: await executable('arm64') };
    digest = buildImage(layout, executables).digest;
    assert.equal(buildImage(join(work, 'again'), executables).digest, digest, 'two builds differ');
    const raw = await runProcess(['skopeo', 'inspect', '--raw', tag]);
    const index = JSON.parse(raw.stdout) as { manifests: { platform: { architecture: string } }[] };
    assert.deepEqual(index.manifests.map((manifest) => manifest.platform.architecture).sort(), [
      'amd64',
      'arm64',
    ]);
  });

  test('runs as nobody in particular, with labels and a bill of materials', async () => {
    const { stdout, stderr, code } = await runProcess(['skopeo', 'inspect', '--config', tag]);
    assert.equal(code, 0, stderr);
    const { config } = JSON.parse(stdout) as {
      config: { User: string; Entrypoint: string[]; Labels: Record<string, string> };
    };
    assert.equal(config.User, '65532:65532');
    assert.deepEqual(config.Entrypoint, ['/usr/bin/pullwright']);
    assert.equal(config.Labels['org.opencontainers.image.version'], VERSION);
    const { manifests } = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')) as {
      manifests: { artifactType?: string }[];
    };
    assert.ok(manifests.some((manifest) => manifest.artifactType === 'application/spdx+json'));
    const { packages } = bill();
    for (const name of ['dbus-next', '@oven/bun-linux-x64', 'libc6', 'ca-certificates'])
      assert.ok(
        packages.some((one) => one.name === name),
        name,
      );
    // Development tools of the repository are not in the image.
    assert.ok(!packages.some((one) => one.name === 'uvu' || one.name === 'cdk8s-plus-28'));
  });

  test('holds what it needs and no shell, and starts', async () => {
    const bundle = join(work, 'bundle');
    // umoci takes no index of several platforms.
    const single = join(work, 'single');
    const copied = await runProcess(['skopeo', 'copy', '--quiet', tag, `oci:${single}:one`]);
    assert.equal(copied.code, 0, copied.stderr);
    const unpacked = await runProcess(['umoci', 'unpack', '--image', `${single}:one`, bundle]);
    assert.equal(unpacked.code, 0, unpacked.stderr);
    const rootfs = join(bundle, 'rootfs');
    assert.deepEqual(readdirSync(join(rootfs, 'usr/bin')).sort(), [
      'crio-credential-provider',
      'kubectl-pullwright',
      'pullwright',
    ]);
    assert.ok(!existsSync(join(rootfs, 'bin/sh')));
    assert.equal(statSync(join(rootfs, 'usr/bin/pullwright')).mode & 0o022, 0);
    await isAsBilled(rootfs);
    // Mounts of a container runtime: a process table and devices.
    const inside =
      'mkdir -p "$1/proc" "$1/dev" && mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot --userspec=65532:65532 "$1" /usr/bin/pullwright --version';
    const ran = await runProcess(['unshare', '--mount', 'sh', '-c', inside, 'sh', rootfs]);
    assert.equal(ran.stdout, `pullwright ${VERSION}\n`, ran.stderr);
  });
}
