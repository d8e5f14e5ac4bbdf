/**
 * Debian's packages that the base of the image is made of, exactly: `base-packages.json` names version, address and checksum of each,
 * and what has another checksum is refused. `npm run base:update` writes that file anew.
 *
 * A mirror keeps the newest version alone, so a version that was replaced is taken from the archive's snapshot of the day it was
 * pinned. Source: https://snapshot.debian.org.
 */
import { existsSync, mkdirSync, mkdtempDisposableSync, readFileSync, renameSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { describeError, PullwrightError } from '../../runtime/core/errors.ts';
import { runTool } from '../run-tool.ts';
import { sha256 } from '../sign.ts';

/** Architectures as Debian names them. */
export type DebianArch = 'amd64' | 'arm64';

/** One package of the base. */
export interface PinnedPackage {
  readonly name: string;
  readonly version: string;
  /** `all` for a package without programs. */
  readonly architecture: DebianArch | 'all';
  /** The archive that has it. */
  readonly archive: 'debian' | 'debian-security';
  /** Place in the archive. */
  readonly path: string;
  readonly size: number;
  readonly sha256: string;
}

/** What `base-packages.json` holds. */
export interface BasePins {
  /** Day of the archive's snapshot that has every package, as snapshot.debian.org writes it. */
  readonly snapshot: string;
  readonly packages: readonly PinnedPackage[];
}

/** Where packages come from, and where they are kept. */
export interface PackageSources {
  /** Base addresses of the archives, in the order in which they are tried. */
  readonly mirrors: readonly string[];
  /** Folder of packages that were fetched, each under its checksum. */
  readonly cache: string;
}

/** The file of pins. */
export const PINS: string = join(import.meta.dirname, 'base-packages.json');

/** A mirror of Debian, tried before the snapshot. `PULLWRIGHT_DEBIAN_MIRROR` names another, such as that of a disconnected site. */
export function debianMirror(): string {
  return process.env['PULLWRIGHT_DEBIAN_MIRROR'] ?? 'http://deb.debian.org';
}

/** The committed pins. */
export function basePins(): BasePins {
  return JSON.parse(readFileSync(PINS, 'utf8')) as BasePins;
}

/** The packages of one architecture. */
export function packagesOf({ packages }: BasePins, arch: DebianArch): readonly PinnedPackage[] {
  return packages.filter(({ architecture }) => architecture === arch || architecture === 'all');
}

/** The usual sources of a build. */
export function packageSources(): PackageSources {
  const caches = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  return { mirrors: [debianMirror()], cache: join(caches, 'pullwright/image-base') };
}

/**
 * Address of a package below a mirror, or in the snapshot of the day it was pinned.
 *
 * @example
 * ```ts
 * import { packageAddresses } from './debian.ts';
 * import assert from 'node:assert/strict';
 *
 * const pin = { name: 'x', version: '1', architecture: 'all', archive: 'debian', path: 'pool/main/x/x/x_1_all.deb', size: 9, sha256: '00' } as const;
 * assert.deepEqual(packageAddresses(pin, '20260101T000000Z', ['http://mirror.example.com/']), [
 *   'http://mirror.example.com/debian/pool/main/x/x/x_1_all.deb',
 *   'http://snapshot.debian.org/archive/debian/20260101T000000Z/pool/main/x/x/x_1_all.deb',
 * ]);
 * ```
 */
export function packageAddresses(
  pin: PinnedPackage,
  snapshot: string,
  mirrors: readonly string[],
): readonly string[] {
  return [
    ...mirrors.map(
      (mirror) => `${mirror.endsWith('/') ? mirror.slice(0, -1) : mirror}/${pin.archive}/${pin.path}`,
    ),
    `http://snapshot.debian.org/archive/${pin.archive}/${snapshot}/${pin.path}`,
  ];
}

/**
 * Path of a package whose bytes are the pinned ones, from the cache, the mirrors, or the snapshot.
 *
 * @throws PullwrightError `BaseChecksum` when a source gives other bytes, `BaseGone` when none has it
 */
export function pinnedPackage(pin: PinnedPackage, snapshot: string, sources: PackageSources): string {
  const kept = join(sources.cache, `${pin.sha256}.deb`);
  if (existsSync(kept) && sha256(readFileSync(kept)) === pin.sha256) return kept;
  mkdirSync(sources.cache, { recursive: true });
  using temporary = mkdtempDisposableSync(join(sources.cache, '.fetch-'));
  const work = temporary.path;
  const fetched = join(work, 'package.deb');
  const address = fetchFirst(pin, packageAddresses(pin, snapshot, sources.mirrors), fetched);
  const found = sha256(readFileSync(fetched));
  if (found !== pin.sha256) throw otherBytes(pin, address, found);
  renameSync(fetched, kept);
  return kept;
}

/** Fetched as apt does, so that its proxy and its transports apply; the caller verifies the bytes. */
function fetchFirst(pin: PinnedPackage, addresses: readonly string[], to: string): string {
  const refusals: string[] = [];
  for (const address of addresses) {
    try {
      runTool(
        [
          '/usr/lib/apt/apt-helper',
          '-o',
          'APT::Sandbox::User=root',
          '-o',
          'Acquire::Retries=1',
          '-o',
          'Acquire::http::Timeout=20',
          'download-file',
          address,
          to,
        ],
        join(to, '..'),
      );
      return address;
    } catch (error) {
      refusals.push(describeError(error));
    }
  }
  throw new PullwrightError(
    `Cannot get package "${pin.name}" ${pin.version} (${pin.architecture}) for the base of the image: ${refusals.join('; ')}`,
    {
      code: 'BaseGone',
      retryPolicy: 'terminal',
      hint: `Mirrors drop a version that was replaced: run "npm run base:update" and commit build/image/base-packages.json; or let PULLWRIGHT_DEBIAN_MIRROR name a mirror that has it, or put the file there as ${pin.sha256}.deb in the cache folder`,
    },
  );
}

function otherBytes(pin: PinnedPackage, address: string, found: string): PullwrightError {
  return new PullwrightError(
    `Cannot use package "${pin.name}" ${pin.version} from ${address}: its SHA-256 is ${found}, build/image/base-packages.json wants ${pin.sha256}`,
    {
      code: 'BaseChecksum',
      retryPolicy: 'terminal',
      hint: 'The package was changed in transit: do not build with it',
    },
  );
}
