/** The host as the installer sees it: the kubelet's unit with its drop-ins, and the files that its command line comes from. */
import { readdirSync, readFileSync } from 'node:fs';
import type { NodeFile } from '../../../charts/credential-provider/machine-config.ts';
import { errnoOf, fileError } from '../../host/file-errors.ts';
import { environmentFiles, serviceSettings } from '../../rules/credential-provider/kubelet-unit.ts';

/** Where units are, most important first, as systemd has them. */
export interface UnitPlace {
  readonly unit: string;
  readonly unitPath: readonly string[];
  /** Put before each path of the host; empty when this is the host. */
  readonly root: string;
  /** Name of the drop-in that is ours, and left out. */
  readonly ownDropIn: string;
}

/** The unit file and its drop-ins in the order in which they apply; empty when there is no unit. */
export function readUnit(place: UnitPlace): readonly NodeFile[] {
  const main = place.unitPath
    .map((folder) => read(place.root, `${folder}/${place.unit}`))
    .find((file) => file !== undefined);
  if (main === undefined) return [];
  const byName = new Map<string, string>();
  for (const folder of place.unitPath) {
    for (const name of namesIn(`${place.root}${folder}/${place.unit}.d`))
      if (name.endsWith('.conf') && name !== place.ownDropIn && !byName.has(name))
        byName.set(name, `${folder}/${place.unit}.d/${name}`);
  }
  const paths = [...byName].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, path]) => path);
  return [main, ...paths.flatMap((path) => read(place.root, path) ?? [])];
}

/** Texts of the environment files that the unit names. */
export function readEnvironment(root: string, unit: readonly NodeFile[]): readonly string[] {
  const named = environmentFiles(serviceSettings(unit.map(({ text }) => text)));
  return named.flatMap((path) => read(root, path)?.text ?? []);
}

/** A file of the host, links followed; undefined when it is not there. */
export function read(root: string, path: string): NodeFile | undefined {
  try {
    return { path, text: readFileSync(root + path, 'utf8') };
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return undefined;
    throw fileError('read', root + path, error);
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return [];
    throw fileError('list', folder, error);
  }
}
