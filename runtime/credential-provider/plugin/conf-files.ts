/**
 * Reads the node's mirror configuration (the main file, the drop-ins, and the override file) and the registries in it.
 */
import type { Hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { errnoOf, PullwrightError } from '../../core/errors.ts';
import { mergeRegistries, parseRegistriesConf, type Registry } from '../../core/mirrors/registries-conf.ts';
import type { NodeFile } from '../objects.ts';
import type { ProviderOptions } from '../provider-flags.ts';

export type ConfFile = Pick<NodeFile, 'path' | 'text'>;

/** The configuration files in the order in which they apply; empty when the node has none. */
export function readConfFiles(
  options: Pick<ProviderOptions, 'registriesConf' | 'registriesConfDirs'>,
  override: string | undefined,
): readonly ConfFile[] {
  return [
    readIfThere(options.registriesConf),
    ...dropInPaths(options.registriesConfDirs, namesIn).map(readIfThere),
    override === undefined || override === '' ? undefined : readOrFail(override),
  ].filter((file) => file !== undefined);
}

/** Paths of all drop-ins, ordered by name; the first folder with a name wins. */
export function dropInPaths(folders: readonly string[], listed: (folder: string) => readonly string[]) {
  const byName = new Map<string, string>();
  for (const folder of folders) {
    for (const name of listed(folder))
      if (name.endsWith('.conf') && !byName.has(name)) byName.set(name, `${folder}/${name}`);
  }
  return [...byName].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, path]) => path);
}

/** Names of files in a folder. Skips subfolders, as the runtime does. */
function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map(({ name }) => name);
  } catch (error) {
    if (isAbsent(error)) return [];
    throw unreadable(folder, error);
  }
}

function readIfThere(path: string): ConfFile | undefined {
  try {
    return { path, text: readFileSync(path, 'utf8') };
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw unreadable(path, error);
  }
}

function readOrFail(path: string): ConfFile {
  const file = readIfThere(path);
  if (file === undefined)
    throw mirrorError(`loading registries configuration: open ${path}: no such file or directory`);
  return file;
}

function isAbsent(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(errnoOf(error) ?? '');
}

function unreadable(path: string, error: unknown): PullwrightError {
  const state = errnoOf(error) ?? 'unreadable';
  return mirrorError(`loading registries configuration: open ${path}: ${state}`);
}

function mirrorError(state: string): PullwrightError {
  return new PullwrightError(`unable to match mirrors: ${state}`, {
    code: 'RegistriesConfUnusable',
    hint: 'The container runtime rejects this file too: correct it or remove it',
  });
}

/** The registries of all files. Throws for a file that the container runtime rejects. */
export function registriesFor(files: readonly ConfFile[]): readonly Registry[] {
  return mergeRegistries(files.map(registriesIn));
}

function registriesIn({ path, text }: ConfFile): readonly Registry[] {
  try {
    return parseRegistriesConf(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'unknown';
    throw mirrorError(
      `loading registries configuration: loading registries configuration "${path}": ${reason}`,
    );
  }
}

// SHA-256 of a short text. Bun's own hasher in the compiled executable, because loading `node:crypto` takes a tenth of a run.

interface BunGlobal {
  readonly CryptoHasher: new (algorithm: 'sha256') => Hash;
}

/** Lower-case hexadecimal digest of the UTF-8 bytes of `text`. */
export function sha256Hex(text: string): string {
  const bun = (globalThis as { Bun?: BunGlobal }).Bun;
  const hasher =
    bun === undefined
      ? process.getBuiltinModule('node:crypto').createHash('sha256')
      : new bun.CryptoHasher('sha256');
  return hasher.update(text).digest('hex');
}
