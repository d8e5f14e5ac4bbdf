/** Modules that the provider loads: its start delays the start of every container. */
import assert from 'node:assert/strict';
import { loadedBy } from '../support/reach.ts';
import { test } from '../support/suite.ts';

const reached = [...loadedBy(['runtime/commands/executable.ts'])].sort();

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
