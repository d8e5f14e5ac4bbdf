/**
 * The few files that a compiled executable needs around it, from Debian's packages of its architecture: the C library, its
 * resolver, and the certificates of public authorities. No shell, no package manager, nothing else.
 */
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type { Arch } from '../base.ts';
import { runTool } from '../run-tool.ts';

const DEBIAN_ARCH: Readonly<Record<Arch, string>> = { x64: 'amd64', arm64: 'arm64' };
const TRIPLET: Readonly<Record<Arch, string>> = { x64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' };
const PACKAGES: readonly string[] = ['libc6', 'ca-certificates'];

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

/** The user that the image runs as, unless a pod says otherwise: the node agent's does. */
export const NONROOT = 65532;

/**
 * Puts the base into `rootfs`. Packages are downloaded once and kept in the user's cache folder.
 *
 * @throws Error when apt cannot find the packages of the architecture
 */
export function layBase(rootfs: string, arch: Arch): void {
  const unpacked = mkdtempSync(join(dirname(rootfs), '.base-'));
  try {
    for (const deb of packages(arch)) runTool(['dpkg-deb', '--extract', deb, unpacked], unpacked);
    for (const name of LIBRARIES) {
      const path = `lib/${TRIPLET[arch]}/${name}`;
      copyLibrary(unpacked, rootfs, { path, to: path });
    }
    // The package's own link to the loader is absolute: followed here, it would lead to this machine's.
    copyLibrary(unpacked, rootfs, {
      path: `lib/${TRIPLET[arch]}/${basename(LOADER[arch])}`,
      to: LOADER[arch],
    });
    certificates(unpacked, rootfs);
  } finally {
    rmSync(unpacked, { recursive: true });
  }
  mkdirSync(join(rootfs, 'etc'), { recursive: true });
  mkdirSync(join(rootfs, 'tmp'), { recursive: true, mode: 0o1777 });
  writeFileSync(
    join(rootfs, 'etc/passwd'),
    `root:x:0:0:root:/:/sbin/nologin\nnonroot:x:${NONROOT}:${NONROOT}:nonroot:/:/sbin/nologin\n`,
  );
  writeFileSync(join(rootfs, 'etc/group'), `root:x:0:\nnonroot:x:${NONROOT}:\n`);
  writeFileSync(join(rootfs, 'etc/nsswitch.conf'), 'hosts: files dns\n');
}

/** Debian 12 keeps them below `lib`, later releases below `usr/lib`; in the image they stand where the loader looks. */
function copyLibrary(
  from: string,
  rootfs: string,
  library: { readonly path: string; readonly to: string },
): void {
  const found = [library.path, `usr/${library.path}`]
    .map((candidate) => join(from, candidate))
    .find((candidate) => existsSync(candidate));
  if (found === undefined)
    throw new Error(`Cannot lay the base of the image: the package has no "${library.path}"`);
  const to = join(rootfs, library.to);
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(found, to);
}

/** The package holds them one by one; programs read one file. */
function certificates(from: string, rootfs: string): void {
  const files = globSync('usr/share/ca-certificates/mozilla/*.crt', { cwd: from }).sort();
  mkdirSync(join(rootfs, 'etc/ssl/certs'), { recursive: true });
  runTool(
    [
      'sh',
      '-c',
      `cat ${files.map((file) => `'${file}'`).join(' ')} > '${join(rootfs, 'etc/ssl/certs/ca-certificates.crt')}'`,
    ],
    from,
  );
}

/** Paths of the packages for `arch`, from the cache or by apt with state of its own, so that the machine's is not touched. */
function packages(arch: Arch): readonly string[] {
  const cache = join(
    process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
    'pullwright/image-base',
    DEBIAN_ARCH[arch],
  );
  const present = (): string[] =>
    existsSync(cache)
      ? readdirSync(cache)
          .filter((name) => name.endsWith('.deb'))
          .map((name) => join(cache, name))
      : [];
  if (present().length === PACKAGES.length) return present();
  mkdirSync(dirname(cache), { recursive: true });
  const work = mkdtempSync(join(dirname(cache), '.apt-'));
  for (const folder of ['lists/partial', 'cache/archives/partial', 'debs'])
    mkdirSync(join(work, folder), { recursive: true });
  writeFileSync(join(work, 'status'), '');
  const options = [
    `APT::Architecture=${DEBIAN_ARCH[arch]}`,
    `APT::Architectures=${DEBIAN_ARCH[arch]}`,
    `Dir::State::Lists=${work}/lists`,
    `Dir::Cache=${work}/cache`,
    `Dir::State::status=${work}/status`,
    'APT::Sandbox::User=root',
  ];
  const flags = options.flatMap((option) => ['-o', option]);
  runTool(['apt-get', ...flags, '-qq', 'update'], work);
  runTool(['apt-get', ...flags, '-qq', 'download', ...PACKAGES], join(work, 'debs'));
  rmSync(cache, { recursive: true, force: true });
  renameSync(join(work, 'debs'), cache);
  rmSync(work, { recursive: true, force: true });
  return present();
}
