/** `docs/reference` agrees with the program's own descriptions, and is complete. */
import assert from 'node:assert/strict';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { DEFINITIONS, fieldsOfKind, fleetFields } from '../../build/reference/kinds.ts';
import { FLEET_SCHEMA, REFERENCE, referencePages, writeReference } from '../../build/reference/main.ts';
import { fleetSchemaText } from '../../charts/fleet-schema.ts';
import { test } from '../support/suite.ts';

const root = join(import.meta.dirname, '../..');
if (process.env['UPDATE_GOLDEN'] === '1') await writeReference();
const pages = await referencePages();

test('the folder holds the pages that the program makes, and no other', () => {
  const files = readdirSync(REFERENCE, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  const names = files.map(({ parentPath, name }) => relative(REFERENCE, join(parentPath, name)));
  assert.deepEqual(names.sort(), [...pages.keys()].sort());
  for (const [name, text] of pages)
    assert.ok(
      readFileSync(join(REFERENCE, name), 'utf8') === text,
      `docs/reference/${name} is old: run "npm run reference"`,
    );
});

/** Reasons of others that stand in what is tested: API servers, kubelets, HyperShift, Google, and words of tests. */
const OF_OTHERS: ReadonlySet<string> = new Set([
  'SecretSyncedError',
  'AsExpected',
  'KubeletReady',
  'FieldValueInvalid',
  'FieldValueRequired',
  'FieldValueDuplicate',
  'FieldValueTypeInvalid',
  'FieldValueTooMany',
  'ImagePullBackOff',
  'ErrImagePull',
  'Failed',
  'InvalidImageName',
  'CrashLoopBackOff',
  'AlreadyExists',
  'InternalError',
  // A policy of OpenShift's mirror sets.
  'NeverContactSource',
  // Reasons of a sample of the format, and of a double that rejects requests.
  'Bad',
  'Added',
  'EVIL',
  'IPv6',
  'Shadowed',
  'Refused',
]);

test('the schema of the fleet file is the one that the program has', () => {
  assert.ok(readFileSync(FLEET_SCHEMA, 'utf8') === fleetSchemaText(), 'it is old: npm run reference');
});

test('the pages contain every reason that a test has seen', () => {
  const listed = ['conditions.md', 'events.md', 'errors.md'].map((name) => pages.get(name) ?? '').join('\n');
  const seen = new Map<string, string>();
  for (const file of globSync('test/**/*.{ts,json,yaml}', { cwd: root }).filter(
    // Messages of kubelets and other programs.
    (path) => !/^test\/(?:conformance\/)?cases\//.test(path),
  ))
    for (const [, , reason = ''] of readFileSync(join(root, file), 'utf8').matchAll(
      /\breason["']?: (["']?)([A-Z][A-Za-z0-9]+)\1(?=,?\s*$|,? \}|, [a-z]+:|, message)/gm,
    ))
      seen.set(reason, file);
  assert.ok(seen.size > 30, String(seen.size));
  const missing = [...seen].filter(
    ([reason]) => !OF_OTHERS.has(reason) && !listed.includes(`| \`${reason}\` |`),
  );
  assert.deepEqual(missing, []);
});

test('few reasons stand without their words', () => {
  const bare = ['conditions.md', 'events.md', 'errors.md'].flatMap((name) =>
    [...(pages.get(name) ?? '').matchAll(/^\| (.*) \| … \|$/gm)].map(([row]) => `${name}: ${row}`),
  );
  // A higher number: words of the program that `build/reference/said.ts` does not find.
  assert.ok(bare.length <= 53, bare.join('\n'));
});

test('its page contains every metric that the sources name', () => {
  const page = pages.get('metrics.md') ?? '';
  const named = globSync('runtime/**/*.ts', { cwd: root }).flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(/'(pullwright_[a-z0-9_]+)'/g)].map(
      ([, name = '']) => name,
    ),
  );
  // Metric prefixes of the programs on a node.
  const prefixes = new Set(['pullwright_agent', 'pullwright_installer']);
  const missing = [...new Set(named)].filter((name) => !prefixes.has(name) && !page.includes(`\`${name}\``));
  assert.deepEqual(missing, []);
});

test('every field of every kind is described', () => {
  const bare = DEFINITIONS.map((define) => define()).flatMap((definition) =>
    fieldsOfKind(definition)
      .filter(({ description }) => description === '')
      .map(({ path }) => `${definition.metadata.name}: ${path}`),
  );
  assert.deepEqual(bare, []);
});

test('every field of the fleet file is described', () => {
  const bare = fleetFields()
    .filter(({ description }) => description === '')
    .map(({ path }) => path);
  assert.deepEqual([...new Set(bare)], []);
});
