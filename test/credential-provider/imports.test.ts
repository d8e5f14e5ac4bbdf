/** What the provider's command can reach: its start is part of every container's start. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from '../support/suite.ts';

const root = join(import.meta.dirname, '../..');

/** Files and packages that are loaded when `entry` is; `await import` is not followed. */
function closure(entry: string): ReadonlySet<string> {
  const seen = new Set<string>();
  const open = [entry];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    if (!file.endsWith('.ts')) continue;
    const text = readFileSync(join(root, file), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
    // Types are erased, so they cost nothing.
    for (const [, clause = '', target = ''] of text.matchAll(
      /^(?:import|export)\s([^'"`;]*?)from\s*'([^']+)'/gm,
    )) {
      const isType = clause.startsWith('type ') || /^\{(?:\s*type [^,}]+,?)+\s*\}\s*$/.test(clause);
      if (!isType) open.push(target.startsWith('.') ? normalize(join(dirname(file), target)) : target);
    }
  }
  return seen;
}

/** What the compiled executable loads for a usual run. */
const reached = [...closure('runtime/commands/executable.ts')].sort();

test('only the core, its own folder, the HTTP client, whole files, a reader of TOML and what Node has', () => {
  const allowed = [
    /^runtime\/core\//,
    /^runtime\/credential-provider\//,
    /^runtime\/commands\/(executable|provider)\.ts$/,
    /^runtime\/http\//,
    /^runtime\/node\/(atomic-file|watch)\.ts$/,
    /^node:(fs|net|util)$/,
    /^smol-toml$/,
  ];
  assert.deepEqual(
    reached.filter((file) => !allowed.some((pattern) => pattern.test(file))),
    [],
  );
});

test('no reconciler, no chart, no schema, no parser of YAML', () => {
  const heavy = reached.filter((file) =>
    /reconciler|render|pools|ignition|match-images|go\/url|https-engine|http\/proxy|zod|yaml/.test(file),
  );
  assert.deepEqual(heavy, []);
  assert.ok(reached.length <= 36, `${reached.length} files: ${reached.join(' ')}`);
});
