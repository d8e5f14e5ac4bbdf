/** The host as the installer sees it: the kubelet's unit with its drop-ins, and the files that its command line comes from. */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { errnoOf, PullwrightError } from '../../core/errors.ts';
import { fileError, namesIn } from '../../node/atomic-file.ts';
import type { LoadedService } from '../../node/systemd.ts';
import { environmentFiles, serviceSettings } from '../kubelet-unit.ts';
import type { NodeFile } from '../objects.ts';
import { CREDENTIAL_PROVIDER } from '../platform.ts';
import { OWN_FILE } from './plan.ts';

/** Where things are on the host. Paths are those of the host; `root` goes before each of them. */
export interface HostPlaces {
  readonly root: string;
  readonly unit: string;
  /** Folders of units, most important first, as systemd has them. */
  readonly unitPath: readonly string[];
  readonly configDir: string;
  readonly dropInDir: string;
  readonly stateDir: string;
  readonly binDir: string | undefined;
  /** Of the system bus of the host. */
  readonly busSocket: string;
}

/** Path of the drop-in, with the root before it. */
export function dropInFile({ root, dropInDir }: HostPlaces): string {
  return `${root}${dropInDir}/${OWN_DROP_IN}`;
}

/** Path of the record of the copied executable, with the root before it. */
export function recordFile({ root, stateDir }: Pick<HostPlaces, 'root' | 'stateDir'>): string {
  return `${root}${stateDir}/installed.json`;
}

/** Name of our own drop-in, which is skipped. */
const OWN_DROP_IN = basename(CREDENTIAL_PROVIDER.dropIn);

/** The unit file and its drop-ins in the order in which they apply; empty when there is no unit. */
export function readUnit({ root, unit, unitPath }: HostPlaces): readonly NodeFile[] {
  const main = unitPath.map((folder) => read(root, `${folder}/${unit}`)).find((file) => file !== undefined);
  if (main === undefined) return [];
  const byName = new Map<string, string>();
  for (const folder of unitPath) {
    for (const name of namesIn(`${root}${folder}/${unit}.d`))
      if (name.endsWith('.conf') && name !== OWN_DROP_IN && !byName.has(name))
        byName.set(name, `${folder}/${unit}.d/${name}`);
  }
  const paths = [...byName].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, path]) => path);
  return [main, ...paths.flatMap((path) => read(root, path) ?? [])];
}

/** The files that systemd has read for the unit, without the drop-in that is ours. Throws for one that cannot be seen from here. */
export function readLoadedUnit(root: string, loaded: LoadedService): readonly NodeFile[] {
  return loaded.files
    .filter((path) => basename(path) !== OWN_DROP_IN)
    .map((path) => {
      // Where /lib is a link to /usr/lib, systemd names either.
      const file = read(root, path) ?? (path.startsWith('/lib/') ? read(root, `/usr${path}`) : undefined);
      if (file !== undefined) return { path, text: file.text };
      throw new PullwrightError(`Cannot read "${root}${path}": systemd has read it for the kubelet's unit`, {
        code: 'UnitNotReadable',
        hint: 'Move it to /etc/systemd/system or /usr/lib/systemd/system, which the installer sees',
      });
    });
}

/** Texts of the environment files that the unit names, without ours. */
export function readEnvironment(
  root: string,
  unit: readonly NodeFile[],
  loaded: LoadedService | undefined,
): readonly string[] {
  const named =
    loaded?.environmentFiles.map(({ path }) => path) ??
    environmentFiles(serviceSettings(unit.map(({ text }) => text)));
  return named
    .filter((path) => !OWN_FILE.test(basename(path)))
    .flatMap((path) => read(root, path)?.text ?? []);
}

/** A file of the host, links followed; undefined when missing. */
export function read(root: string, path: string): NodeFile | undefined {
  try {
    return { path, text: readFileSync(root + path, 'utf8') };
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return undefined;
    throw fileError('read', root + path, error);
  }
}
