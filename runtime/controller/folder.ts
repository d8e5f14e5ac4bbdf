/** Folders of manifests on disk, or standard input, as object stores. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { errnoOf, PullwrightError } from '../rules/errors.ts';
import { describeObject } from '../rules/kubernetes/object.ts';
import { refOf } from './changes.ts';
import { withIdentity } from './identity.ts';
import { type Manifest, type ManifestProblem, parseManifests } from './manifests.ts';
import { ObjectStore } from './store.ts';

/** What a folder holds. */
export interface Folder {
  readonly store: ObjectStore;
  readonly manifests: readonly Manifest[];
  readonly problems: readonly ManifestProblem[];
  readonly skipped: number;
}

/**
 * Reads every `*.yaml`, `*.yml` and `*.json` below `dir`, in name order. Hidden folders and links are skipped.
 *
 * @throws PullwrightError when the folder is not there, is no folder or may not be read
 */
export async function readFolder(dir: string, kinds?: ReadonlySet<string>): Promise<Folder> {
  const files = await manifestFiles(dir);
  const texts: { file: string; text: string }[] = [];
  // With slashes on Windows too: it is compared, sorted and printed for tools of pipelines.
  for (const file of files)
    texts.push({
      file: relative(dir, file).replaceAll(sep, '/') || file,
      text: await readText(file),
    });
  return folderOf(texts, kinds);
}

/** The same for texts that are at hand. */
export function folderOf(
  texts: readonly { readonly file: string; readonly text: string }[],
  kinds?: ReadonlySet<string>,
): Folder {
  const parsed = texts.map(({ file, text }) => parseManifests(text, file, kinds));
  const manifests = parsed.flatMap((one) => one.manifests);
  const problems = parsed.flatMap((one) => one.problems);
  const store = new ObjectStore();
  const places = new Map<string, Manifest>();
  for (const manifest of manifests) {
    const id = `${manifest.object.apiVersion} ${describeObject(refOf('hosted', manifest.object))}`;
    const first = places.get(id);
    if (first !== undefined) {
      problems.push({
        file: manifest.file,
        line: manifest.line,
        message: `${describeObject(refOf('hosted', manifest.object))} is given twice: first at ${first.file}:${first.line}`,
        first: { file: first.file, line: first.line },
      });
      continue;
    }
    places.set(id, manifest);
    store.set(withIdentity(manifest.object));
  }
  return { store, manifests, problems, skipped: parsed.reduce((sum, one) => sum + one.skipped, 0) };
}

async function manifestFiles(path: string): Promise<string[]> {
  const info = await stat(path).catch((error: unknown) => fail(path, error));
  if (info.isFile()) return [path];
  if (!info.isDirectory())
    throw new PullwrightError(`Cannot read "${path}": it is neither a folder nor a file`, {
      code: 'InputUnreadable',
      disposition: 'terminal',
    });
  const entries = await readdir(path, { withFileTypes: true }).catch((error: unknown) => fail(path, error));
  const found: string[] = [];
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.name.startsWith('.')) continue;
    if (entry.isDirectory()) found.push(...(await manifestFiles(join(path, entry.name))));
    else if (entry.isFile() && /\.(ya?ml|json)$/.test(entry.name)) found.push(join(path, entry.name));
  }
  return found;
}

async function readText(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: unknown) => fail(file, error));
}

const WHY: Readonly<Record<string, string>> = {
  ENOENT: 'it is not there',
  EACCES: 'it may not be read by this user',
  EISDIR: 'it is a folder',
  EPERM: 'it may not be read by this user',
  ERR_ACCESS_DENIED: 'reading it is not granted to this process',
};

function fail(path: string, error: unknown): never {
  const code = errnoOf(error) ?? 'unknown';
  throw new PullwrightError(`Cannot read "${path}": ${WHY[code] ?? `the system answered ${code}`}`, {
    code: 'InputUnreadable',
    disposition: 'terminal',
    cause: error,
  });
}
