/**
 * Size of the repository, limited by `budget.json`. A figure may only fall from one push to the next: a rise fails, and so does a
 * fall that the file does not show yet. `UPDATE_GOLDEN=1 node test/run.ts architecture/weight` writes lower figures.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from '../support/suite.ts';

const root = join(import.meta.dirname, '../..');
const FILE = 'test/architecture/budget.json';

type Weight = Readonly<Record<string, number>>;

const git = (...words: readonly string[]): string =>
  execFileSync('git', ['-C', root, ...words], { encoding: 'utf8', maxBuffer: 1 << 26 });

const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** Lines that hold more than a comment. */
function linesOfCode(text: string): number {
  return text
    .replace(/^\s*\/\*[^]*?\*\/[ \t]*$/gm, '')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.trim().startsWith('//')).length;
}

function measured(): Weight {
  const files = git('ls-files', '--cached', '--others', '--exclude-standard').split('\n');
  const present = files.filter((file) => file !== '' && git('ls-files', '--deleted', '--', file) === '');
  const code = present.filter((file) => /\.(?:m?[jt]s|vue)$/.test(file) && !file.endsWith('.d.ts'));
  const product = code.filter((file) => /^(?:runtime|charts|build)\/|^main\.ts$/.test(file));
  const tests = code.filter((file) => file.startsWith('test/'));
  const importers = new Map<string, Set<string>>();
  for (const file of product)
    for (const [, target = ''] of read(file).matchAll(
      /(?:\bfrom\s|\bimport\s*\(\s*|^import\s)\s*'(\.[^']+)'/gm,
    )) {
      const imported = normalize(join(dirname(file), target));
      importers.set(imported, (importers.get(imported) ?? new Set()).add(file));
    }
  const prose = present.filter(
    (file) =>
      /^(?:docs\/.*|README|CHANGELOG|SECURITY)\.md$/.test(file) && !file.startsWith('docs/reference/'),
  );
  const sum = (list: readonly string[], of: (text: string) => number): number =>
    list.reduce((total, file) => total + of(read(file)), 0);
  return {
    'product lines': sum(product, linesOfCode),
    'product files': product.length,
    'product files with one importer': [...importers.values()].filter(({ size }) => size === 1).length,
    'test lines': sum(tests, linesOfCode),
    'words of documents by hand': sum(prose, (text) => text.split(/\s+/).length),
    decisions: present.filter((file) => file.startsWith('docs/decisions/')).length,
  };
}

/** The file as the push before this one left it; undefined in a clone without that commit. */
function before(): Weight | undefined {
  const [, previous] = git('log', '-n', '2', '--format=%H', '--', FILE).trim().split('\n');
  return previous === undefined ? undefined : (JSON.parse(git('show', `${previous}:${FILE}`)) as Weight);
}

test('does not rise', () => {
  const now = measured();
  const held = JSON.parse(read(FILE)) as Weight;
  if (process.env['UPDATE_GOLDEN'] === '1') {
    const lower = Object.entries(now).map(([name, value]) => [name, Math.min(value, held[name] ?? value)]);
    writeFileSync(join(root, FILE), `${JSON.stringify(Object.fromEntries(lower), null, 2)}\n`);
    return;
  }
  assert.deepEqual(
    now,
    held,
    'a figure fell: write the file with UPDATE_GOLDEN=1; a figure rose: take something away',
  );
});

test('is held by a file whose figures only fall', () => {
  const held = JSON.parse(read(FILE)) as Weight;
  const past = before();
  if (past === undefined) return;
  const risen = Object.entries(held).filter(([name, value]) => value > (past[name] ?? value));
  assert.deepEqual(risen, []);
});
