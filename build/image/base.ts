/**
 * The files that a compiled executable needs, from the Debian packages of its architecture: the C library, the resolver, and the
 * certificates of public authorities. No shell and no package manager.
 */
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempDisposableSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { PullwrightError } from '../../runtime/core/errors.ts';
import type { Arch } from '../base.ts';
import { runTool } from '../run-tool.ts';
import { basePins, type DebianArch, packageSources, packagesOf, pinnedPackage } from './debian.ts';

/** Names of the architectures in Debian and in OCI images. */
export const DEBIAN_ARCH: Readonly<Record<Arch, DebianArch>> = { x64: 'amd64', arm64: 'arm64' };
const TRIPLET: Readonly<Record<Arch, string>> = { x64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' };

/** Shared objects that the executable loads, or that name resolution loads for it. */
const LIBRARIES: readonly string[] = [
  'libc.so.6',
  'libm.so.6',
  'libdl.so.2',
  'libpthread.so.0',
  'libresolv.so.2',
  'libnss_dns.so.2',
  'libnss_files.so.2',
  'librt.so.1',
];

const LOADER: Readonly<Record<Arch, string>> = {
  x64: 'lib64/ld-linux-x86-64.so.2',
  arm64: 'lib/ld-linux-aarch64.so.1',
};

/** The user of the image, unless a pod sets another, as the node agent's does. */
export const NONROOT = 65532;

/**
 * Returns the paths of the base image's packages. They are cached in the user's cache folder, by checksum.
 *
 * @throws PullwrightError when a package is unavailable or does not match its pinned checksum
 */
export function basePackages(arch: Arch): readonly string[] {
  const pins = basePins();
  const sources = packageSources();
  return packagesOf(pins, DEBIAN_ARCH[arch]).map((pin) => pinnedPackage(pin, pins.snapshot, sources));
}

/**
 * Copies the files of the base image into `rootfs`.
 *
 * @throws PullwrightError as {@link basePackages}
 */
export function layBase(rootfs: string, arch: Arch): void {
  using temporary = mkdtempDisposableSync(join(dirname(rootfs), '.base-'));
  const unpacked = temporary.path;
  for (const deb of basePackages(arch)) runTool(['dpkg-deb', '--extract', deb, unpacked], unpacked);
  const folder = `lib/${TRIPLET[arch]}`;
  for (const name of LIBRARIES) copyLibrary(unpacked, `${folder}/${name}`, join(rootfs, folder, name));
  // The package's link to the loader is absolute, so following it would copy this machine's loader.
  copyLibrary(unpacked, `${folder}/${basename(LOADER[arch])}`, join(rootfs, LOADER[arch]));
  // The package has one file for each certificate, programs read one file.
  const certificates = globSync('usr/share/ca-certificates/mozilla/*.crt', { cwd: unpacked }).sort();
  mkdirSync(join(rootfs, 'etc/ssl/certs'), { recursive: true });
  writeFileSync(
    join(rootfs, 'etc/ssl/certs/ca-certificates.crt'),
    Buffer.concat(certificates.map((file) => readFileSync(join(unpacked, file)))),
  );
  mkdirSync(join(rootfs, 'tmp'), { recursive: true, mode: 0o1777 });
  writeFileSync(
    join(rootfs, 'etc/passwd'),
    `root:x:0:0:root:/:/sbin/nologin\nnonroot:x:${NONROOT}:${NONROOT}:nonroot:/:/sbin/nologin\n`,
  );
  writeFileSync(join(rootfs, 'etc/group'), `root:x:0:\nnonroot:x:${NONROOT}:\n`);
  writeFileSync(join(rootfs, 'etc/nsswitch.conf'), 'hosts: files dns\n');
}

function copyLibrary(from: string, path: string, to: string): void {
  if (!existsSync(join(from, path)))
    throw new PullwrightError(`Cannot build the base image: none of its packages has "${path}"`, {
      code: 'BaseIncomplete',
      hint: 'Look at what the pinned packages hold with "dpkg-deb --contents"',
    });
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(join(from, path), to);
}
