/** A name that one file gives to others has one meaning in the repository: who searches for it finds one thing. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from '../support/suite.ts';

const test = suite('exported names');
const root = join(import.meta.dirname, '../..');

/** What several files export on purpose: each is the same part of another system, found by its name. */
const PARTS: Readonly<Record<string, string>> = {
  command: 'each command, loaded by the table of commands',
  Reconciler: 'one of the engine, and the construct of the program that runs them',
  reconcilers: "a system's reconcilers, loaded by the configuration of reconcile",
  schema: "a section of the fleet, loaded by the table of charts' systems",
};

const EXPORT = /^export (?:async )?(?:function|const|class|interface|type) (\w+)/gm;

test('are exported by one file', () => {
  const files = ['runtime', 'charts', 'build'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => join(folder, file)),
  );
  const places = new Map<string, string[]>();
  for (const file of files) {
    const text = readFileSync(join(root, file), 'utf8').replace(/\/\*[^]*?\*\//g, '');
    for (const [, name = ''] of text.matchAll(EXPORT)) {
      const known = places.get(name) ?? [];
      if (known.at(-1) !== file) places.set(name, [...known, file]);
    }
  }
  assert.ok(places.size > 1000);
  const shared = [...places].filter(([name, found]) => found.length > 1 && PARTS[name] === undefined);
  assert.deepEqual(
    shared.map(([name, found]) => `${name}: ${found.join(', ')}`),
    [],
  );
  for (const name of Object.keys(PARTS)) assert.ok((places.get(name)?.length ?? 0) > 1, name);
});

test.run();
