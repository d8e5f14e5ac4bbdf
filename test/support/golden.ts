/**
 * Golden files: whole outputs under `test/golden/`, compared byte for byte. `UPDATE_GOLDEN=1 node test/run.ts FILTER` writes
 * what is there now; the difference is then read in git.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const root = new URL('../golden/', import.meta.url).pathname;

/** Holds `text` against `test/golden/<path>`. */
export function golden(path: string, text: string): void {
  const file = join(root, path);
  if (process.env['UPDATE_GOLDEN'] === '1') {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return;
  }
  assert.ok(existsSync(file), `test/golden/${path} is not there: run with UPDATE_GOLDEN=1`);
  assert.equal(text, readFileSync(file, 'utf8'), `differs from test/golden/${path}`);
}

/** Holds a whole tree of files against the folder `test/golden/<path>`: no file may be missing, none may be left over. */
export function goldenTree(path: string, tree: ReadonlyMap<string, string>): void {
  const folder = join(root, path);
  if (process.env['UPDATE_GOLDEN'] === '1') rmSync(folder, { recursive: true, force: true });
  for (const [name, text] of tree) golden(join(path, name), text);
  assert.deepEqual(filesOf(folder), [...tree.keys()].sort());
}

function filesOf(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}
