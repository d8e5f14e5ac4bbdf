/** What the provider's command can reach: its start is part of every container's start. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { suite } from '../support/suite.ts';

const test = suite('imports of the provider');
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
const onNode = [...closure('runtime/commands/executable.ts')];
const reached = [...new Set([...onNode, ...closure('runtime/credential-provider/plugin/command.ts')])].sort();

test('only rules, its own folder, whole files and the file system', () => {
  const allowed = [
    /^runtime\/rules\//,
    /^runtime\/credential-provider\//,
    /^runtime\/commands\//,
    /^runtime\/http\//,
    /^runtime\/bin\/(main|provider)\.ts$/,
    /^node:fs$/,
  ];
  const host = [
    'runtime/node/watch.ts',
    'runtime/node/atomic-file.ts',
    'runtime/credential-provider/plugin/conf-files.ts',
    'runtime/node/atomic-file.ts',
    'runtime/credential-provider/plugin/conf-files.ts',
  ];
  const others = reached.filter(
    (file) => !host.includes(file) && !allowed.some((pattern) => pattern.test(file)),
  );
  assert.deepEqual(others, []);
});

test('no controller, no chart, no parser', () => {
  const heavy = reached.filter((file) =>
    /reconciler|render|pools|ignition|match-images|go-url|https-engine|http\/proxy|redirect/.test(file),
  );
  assert.deepEqual(heavy, []);
  // Five of them are the one reader of pull secrets, that everything has.
  assert.ok(onNode.length <= 42, `${onNode.length} files: ${onNode.join(' ')}`);
});

test.run();
