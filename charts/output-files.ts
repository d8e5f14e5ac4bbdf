/**
 * Holds a rendered tree against a folder, and writes it there: what is ours and no longer wanted goes, what is not ours stays.
 *
 * A file is ours when its first line names the very path it stands at. So there is no index that two branches could both
 * change, a copy of a rendered file under another name belongs to whoever made it, and a folder can hold anything else.
 *
 * A file is ours when its first line names the path where it stands. An index file would be changed by every branch that adds a
 * cluster; a plain marker would claim the copies that people make.
 */
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { PullwrightError } from '../runtime/rules/errors.ts';
import { isPathSegment } from '../runtime/rules/kubernetes/file-name.ts';
import { counted } from '../runtime/rules/text/counted.ts';
import type { ManifestTree } from './output.ts';

/** How a folder differs from a tree. Paths with `/`, relative to the folder, sorted. */
export interface TreeDifference {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  /** Ours, and no longer wanted. */
  readonly stale: readonly string[];
  /** Wanted, but somebody else's file (or a symbolic link, or a folder) stands there. */
  readonly inTheWay: readonly string[];
  readonly unchanged: number;
}

/** First line of every file of ours: a comment, in JSON a field. */
export function headerOf(path: string): string {
  const text = `Rendered by pullwright as ${path}; change the fleet, not this file.`;
  if (path.endsWith('.json')) return `{ "$comment": ${JSON.stringify(text)},\n`;
  return /\.(?:tpl|txt)$/.test(path) ? `{{- /* ${text} */ -}}\n` : `# ${text}\n`;
}

/**
 * Compares without writing. A folder that does not exist is empty.
 *
 * @throws PullwrightError `UnsafeName` for a path that leads out of the folder, whoever made it
 */
export function compareTree(folder: string, tree: ManifestTree): TreeDifference {
  for (const path of tree.keys()) if (!path.split('/').every(isPathSegment)) throw leadsElsewhere(path);
  const present = existsSync(folder) ? listFiles(folder) : new Set<string>();
  const difference = {
    added: [] as string[],
    changed: [] as string[],
    inTheWay: [] as string[],
    unchanged: 0,
  };
  const judge = { added: difference.added, changed: difference.changed, 'in the way': difference.inTheWay };
  for (const [path, text] of tree) {
    const state = stateOf(folder, path, { text: headerOf(path) + text, listed: present.has(path) });
    if (state === 'unchanged') difference.unchanged += 1;
    else judge[state].push(path);
  }
  const stale = [...present].filter((path) => !tree.has(path) && isOurs(folder, path)).sort();
  return { ...difference, stale };
}

/**
 * Writes what is added and changed and removes what is stale, with folders that became empty.
 *
 * @param overwrite take the place of files that are in the way
 * @throws PullwrightError before anything is written: `ForeignFile` when a file is in the way, `UnsafeName` as {@link compareTree}
 */
export function writeTree(
  folder: string,
  tree: ManifestTree,
  options: { readonly overwrite?: boolean } = {},
): TreeDifference {
  const difference = compareTree(folder, tree);
  const replaced = options.overwrite === true ? difference.inTheWay : [];
  if (replaced.length < difference.inTheWay.length) throw inTheWay(folder, difference.inTheWay);
  for (const path of replaced) rmSync(blockerOf(folder, path) ?? join(folder, path), { force: true });
  for (const path of difference.stale) removeFile(folder, path);
  const wanted = [...difference.added, ...difference.changed, ...replaced];
  for (const parent of new Set(wanted.map(dirname))) mkdirSync(join(folder, parent), { recursive: true });
  for (const path of wanted) {
    writeFileSync(join(folder, path), headerOf(path) + tree.get(path));
  }
  return difference;
}

function leadsElsewhere(path: string): PullwrightError {
  return new PullwrightError(`Cannot write ${JSON.stringify(path)}: it is no path within the folder`, {
    code: 'UnsafeName',
    disposition: 'terminal',
    hint: 'Correct the name in the fleet that the path is made of',
  });
}

type State = 'added' | 'changed' | 'unchanged' | 'in the way';

function stateOf(folder: string, path: string, wanted: { text: string; listed: boolean }): State {
  if (!wanted.listed) return blockerOf(folder, path) === undefined ? 'added' : 'in the way';
  const present = readFileSync(join(folder, path), 'utf8');
  if (present === wanted.text) return 'unchanged';
  // An empty file holds nothing that could be lost: most likely a run that was cut short.
  return present === '' || firstLine(present) === firstLine(wanted.text) ? 'changed' : 'in the way';
}

/**
 * What stands at the path, or in place of a folder above it. A link above is what must go: what it points to belongs to somebody
 * else, and the file at its other end too.
 */
function blockerOf(folder: string, path: string): string | undefined {
  const parts = path.split('/');
  const places = parts.map((_, index) => join(folder, ...parts.slice(0, index + 1)));
  return places.find((place, index) => {
    const stat = lstatSync(place, { throwIfNoEntry: false });
    if (stat === undefined) return false;
    return index === parts.length - 1 || !stat.isDirectory();
  });
}

function isOurs(folder: string, path: string): boolean {
  if (!/\.(?:yaml|json|tpl|txt)$/.test(path)) return false;
  const header = headerOf(path);
  const start = Buffer.alloc(Buffer.byteLength(header) + 2);
  const file = openSync(join(folder, path), 'r');
  try {
    const length = readSync(file, start, 0, start.length, 0);
    return firstLine(start.toString('utf8', 0, length)) === firstLine(header);
  } finally {
    closeSync(file);
  }
}

/** Without the line end, which git may change to CRLF. */
function firstLine(text: string): string {
  return (text.split('\n', 1)[0] ?? '').replace(/\r$/, '');
}

/** Plain files below `folder`. Symbolic links are not followed; folders that begin with a dot are somebody else's. */
function listFiles(folder: string): Set<string> {
  const found = new Set<string>();
  const walk = (relative: string): void => {
    for (const entry of readdirSync(join(folder, relative), { withFileTypes: true })) {
      const path = relative === '' ? entry.name : `${relative}/${entry.name}`;
      if (entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules') walk(path);
      else if (entry.isFile()) found.add(path);
    }
  };
  walk('');
  return found;
}

function removeFile(folder: string, path: string): void {
  rmSync(join(folder, path));
  for (let parent = dirname(path); parent !== '.'; parent = dirname(parent)) {
    if (readdirSync(join(folder, parent)).length > 0) return;
    rmdirSync(join(folder, parent));
  }
}

function inTheWay(folder: string, paths: readonly string[]): PullwrightError {
  const shown = paths.slice(0, 5).join(', ') + (paths.length > 5 ? ` and ${paths.length - 5} more` : '');
  return new PullwrightError(
    `Cannot write to "${folder}": ${counted(paths.length, 'path holds', 'paths hold')} something that was not rendered there: ${shown}`,
    {
      code: 'ForeignFile',
      disposition: 'terminal',
      hint: 'Move them away, or pass --overwrite to lose them. Nothing was written',
    },
  );
}
