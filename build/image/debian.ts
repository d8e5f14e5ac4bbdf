/**
 * The Debian packages of the base image. `base-packages.json` pins the version, path and checksum of each; a package with another
 * checksum is rejected. `npm run base:update` rewrites that file.
 *
 * A mirror keeps only the newest version, so a replaced version is fetched from the archive's snapshot of the day it was pinned.
 * Source: https://snapshot.debian.org.
 */
import { hash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempDisposableSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { describeError, PullwrightError } from '../../runtime/core/errors.ts';
import { cacheFolder } from '../base.ts';
import { runTool } from '../run-tool.ts';

/** Architectures as Debian names them. */
export type DebianArch = 'amd64' | 'arm64';

/** One package of the base. */
export interface PinnedPackage {
  readonly name: string;
  readonly version: string;
  /** `all` for an architecture-independent package. */
  readonly architecture: DebianArch | 'all';
  /** The archive that contains it. */
  readonly archive: 'debian' | 'debian-security';
  /** Path in the archive. */
  readonly path: string;
  readonly size: number;
  readonly sha256: string;
}

/** Content of `base-packages.json`. */
export interface BasePins {
  /** A snapshot of the archive that has every package, in the format of snapshot.debian.org. */
  readonly snapshot: string;
  readonly packages: readonly PinnedPackage[];
}

/** Where packages are fetched from, and where they are cached. */
export interface PackageSources {
  /** Base URLs of the archives, in the order in which they are tried. */
  readonly mirrors: readonly string[];
  /** Folder of the fetched packages, each named by its checksum. */
  readonly cache: string;
}

/** Path of the pins. */
export const PINS: string = join(import.meta.dirname, 'base-packages.json');

/** The Debian mirror, tried before the snapshot. `PULLWRIGHT_DEBIAN_MIRROR` names another, such as for a disconnected site. */
export function debianMirror(): string {
  return process.env['PULLWRIGHT_DEBIAN_MIRROR'] ?? 'http://deb.debian.org';
}

/** The committed pins. */
export function basePins(): BasePins {
  return JSON.parse(readFileSync(PINS, 'utf8')) as BasePins;
}

/** The packages for one architecture, including those for all. */
export function packagesOf({ packages }: BasePins, arch: DebianArch): readonly PinnedPackage[] {
  return packages.filter(({ architecture }) => architecture === arch || architecture === 'all');
}

/** The default sources of a build. */
export function packageSources(): PackageSources {
  return { mirrors: [debianMirror()], cache: join(cacheFolder(), 'image-base') };
}

/** The package's identity in provenance and bills of materials. */
export function packageUrl({ name, version, architecture }: PinnedPackage): string {
  return `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}`;
}

/**
 * Returns the URLs of a package: below each mirror, then in the snapshot of the day it was pinned.
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
    ...mirrors.map((mirror) => `${mirror.replace(/\/$/, '')}/${pin.archive}/${pin.path}`),
    `http://snapshot.debian.org/archive/${pin.archive}/${snapshot}/${pin.path}`,
  ];
}

/**
 * Returns the path of a package with the pinned checksum, from the cache, the mirrors or the snapshot.
 *
 * @throws PullwrightError `BaseChecksum` when a source has other content, `BaseGone` when no source has the package
 */
export function pinnedPackage(pin: PinnedPackage, snapshot: string, sources: PackageSources): string {
  const kept = join(sources.cache, `${pin.sha256}.deb`);
  if (existsSync(kept) && hash('sha256', readFileSync(kept)) === pin.sha256) return kept;
  mkdirSync(sources.cache, { recursive: true });
  using work = mkdtempDisposableSync(join(sources.cache, '.fetch-'));
  const fetched = join(work.path, 'package.deb');
  const address = fetchFirst(pin, packageAddresses(pin, snapshot, sources.mirrors), fetched);
  const found = hash('sha256', readFileSync(fetched));
  if (found !== pin.sha256)
    throw new PullwrightError(
      `Cannot use package "${pin.name}" ${pin.version} from ${address}: its SHA-256 is ${found}, build/image/base-packages.json wants ${pin.sha256}`,
      {
        code: 'BaseChecksum',
        hint: 'The package was changed in transit: do not build with it',
      },
    );
  renameSync(fetched, kept);
  return kept;
}

const APT_OPTIONS = ['APT::Sandbox::User=root', 'Acquire::Retries=1', 'Acquire::http::Timeout=20'];

/** Fetches with apt's helper, so that its proxy and transports apply. The caller verifies the checksum. */
function fetchFirst(pin: PinnedPackage, addresses: readonly string[], to: string): string {
  const refusals: string[] = [];
  for (const address of addresses) {
    try {
      const options = APT_OPTIONS.flatMap((option) => ['-o', option]);
      runTool(['/usr/lib/apt/apt-helper', ...options, 'download-file', address, to], join(to, '..'));
      return address;
    } catch (error) {
      refusals.push(describeError(error));
    }
  }
  throw new PullwrightError(
    `Cannot get package "${pin.name}" ${pin.version} (${pin.architecture}) for the base of the image: ${refusals.join('; ')}`,
    {
      code: 'BaseGone',
      hint: `Mirrors drop a version that was replaced: run "npm run base:update" and commit build/image/base-packages.json; or let PULLWRIGHT_DEBIAN_MIRROR name a mirror that has it, or put the file there as ${pin.sha256}.deb in the cache folder`,
    },
  );
}
