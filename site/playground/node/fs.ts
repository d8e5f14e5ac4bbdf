/** Files from memory, in place of `node:fs` and `node:fs/promises`: what the commands of the playground ask of them, and nothing else. */
import { absent } from './absent.ts';
import { normalize } from './path.ts';

const FILES = new Map<string, string>();

/** Puts these files in place of all others, by their paths. */
export function holdFiles(files: readonly { readonly path: string; readonly text: string }[]): void {
  FILES.clear();
  for (const { path, text } of files) FILES.set(normalize(path), text);
}

interface Found {
  isFile(): boolean;
  isDirectory(): boolean;
}

function lookUp(path: string): Found | undefined {
  const name = normalize(path);
  if (FILES.has(name)) return { isFile: () => true, isDirectory: () => false };
  const isFolder = name === '.' || [...FILES.keys()].some((file) => file.startsWith(`${name}/`));
  return isFolder ? { isFile: () => false, isDirectory: () => true } : undefined;
}

function missing(path: string): Error {
  return Object.assign(new Error(`${path} is not there`), { code: 'ENOENT' });
}

export async function stat(path: string): Promise<Found> {
  const found = lookUp(path);
  if (found === undefined) throw missing(path);
  return found;
}

export function statSync(path: string): Found | undefined {
  return lookUp(path);
}

export async function readFile(path: string): Promise<string> {
  const text = FILES.get(normalize(path));
  if (text !== undefined) return text;
  throw lookUp(path) === undefined
    ? missing(path)
    : Object.assign(new Error(`${path} is a folder`), { code: 'EISDIR' });
}

/** Entries in no order, as a file system gives them. */
export async function readdir(path: string): Promise<readonly (Found & { readonly name: string })[]> {
  const name = normalize(path);
  const inside = name === '.' ? '' : `${name}/`;
  const names = new Set(
    [...FILES.keys()]
      .filter((file) => file.startsWith(inside))
      .map((file) => file.slice(inside.length).split('/')[0] ?? ''),
  );
  return [...names].map((entry) => ({ name: entry, ...(lookUp(inside + entry) as Found) }));
}

export async function writeFile(path: string, text: string): Promise<void> {
  FILES.set(normalize(path), text);
}

export {
  absent as closeSync,
  absent as existsSync,
  absent as fchmodSync,
  absent as fchownSync,
  absent as fstatSync,
  absent as fsyncSync,
  absent as lstatSync,
  absent as mkdirSync,
  absent as openSync,
  absent as readdirSync,
  absent as readFileSync,
  absent as readSync,
  absent as realpathSync,
  absent as renameSync,
  absent as rmdirSync,
  absent as rmSync,
  absent as unlinkSync,
  absent as writeFileSync,
  absent as writeSync,
};

export const constants = {};
