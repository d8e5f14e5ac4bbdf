/**
 * The runtime of an executable: the Bun package of its platform, at the version of the lock file.
 *
 * This machine's package is in `node_modules`. npm does not install another platform's, so it is fetched once into a cache
 * folder, and used only if its checksum matches `package-lock.json`.
 */
import { hash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempDisposableSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { PullwrightError } from '../runtime/core/errors.ts';
import { ROOT, runTool } from './run-tool.ts';

/** Architectures as Node names them. */
export type Arch = 'x64' | 'arm64';

/** Architectures that are built. */
export const ARCHS: readonly Arch[] = ['x64', 'arm64'];

const ARCH_OF_PACKAGE: Readonly<Record<Arch, string>> = { x64: 'x64', arm64: 'aarch64' };

/** A package in `package-lock.json`. */
interface Locked {
  readonly name?: string;
  readonly version: string;
  /** Absent for a copy inside the archive of another package. */
  readonly integrity?: string;
}

/** The parts of `package-lock.json` that a build reads. */
export function readLock() {
  return JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    readonly name: string;
    readonly packages: Readonly<Record<string, Locked | undefined>>;
  };
}

/** Path of the Bun executable for Linux, by default of this machine. Needs the network at most once per version and architecture. */
export function baseRuntime(arch: Arch = process.arch === 'arm64' ? 'arm64' : 'x64'): string {
  const name = `@oven/bun-linux-${ARCH_OF_PACKAGE[arch]}`;
  const program = 'bin/bun';
  const own = join(ROOT, 'node_modules', name, program);
  if (existsSync(own)) return own;
  const locked = readLock().packages[`node_modules/${name}`];
  if (locked === undefined)
    throw new PullwrightError(
      `Cannot build: package-lock.json has no "${name}", expected its version and checksum`,
      { code: 'BaseNotLocked' },
    );
  const folder = join(cacheFolder(), `bun-${locked.version}-linux-${arch}`);
  const cached = join(folder, 'package', program);
  if (!existsSync(cached)) fetchBase(folder, name, locked);
  return cached;
}

/** Folder of everything that builds fetch. */
export function cacheFolder(): string {
  return join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'pullwright');
}

/** Renames the folder into the cache after the checksum was verified. */
function fetchBase(folder: string, name: string, locked: Locked): void {
  mkdirSync(dirname(folder), { recursive: true });
  using temporary = mkdtempDisposableSync(`${folder}.`);
  const work = temporary.path;
  const packed = runTool(['npm', 'pack', `${name}@${locked.version}`, '--silent'], work);
  const archive = join(work, packed.trim().split('\n').at(-1) ?? '');
  const sum = `sha512-${hash('sha512', readFileSync(archive), 'base64')}`;
  if (sum !== locked.integrity)
    throw new PullwrightError(
      `Cannot use "${name}@${locked.version}": its archive has checksum ${sum}, package-lock.json wants ${locked.integrity ?? 'none'}`,
      {
        code: 'BaseChecksum',
        hint: 'The archive was changed in transit: do not build with it',
      },
    );
  runTool(['tar', '-xzf', archive], work);
  rmSync(archive);
  if (!existsSync(folder)) renameSync(work, folder);
}
