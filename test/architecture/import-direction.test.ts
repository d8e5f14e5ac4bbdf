/** The dependency rule: a folder imports only folders to its left. Read from the import statements, with a check for cycles. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { importsOf } from '../support/reach.ts';
import { test } from '../support/suite.ts';

const root = new URL('../..', import.meta.url).pathname;

const SYSTEMS = [
  'global-pull-secret',
  'pull-secret-injection',
  'registry-overrides',
  'pull-secret-adapter',
  'credential-provider',
];

/** From left to right; rooms that stand together do not import each other. */
const ORDER: readonly (readonly string[])[] = [
  ['runtime/core'],
  ['runtime/http'],
  ['runtime/kube', 'runtime/registry', 'runtime/cli'],
  ['runtime/engine', 'runtime/node'],
  SYSTEMS.map((system) => `runtime/${system}`),
  ['charts'],
  ['runtime/diagnose'],
  ['runtime/commands'],
  ['main.ts'],
  ['build'],
];

/** Packages, each with the rooms that may load it. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  cdk8s: ['charts'],
  'cdk8s-plus-28': ['charts', 'runtime/core/kubernetes'],
  constructs: ['charts'],
  'dbus-next': ['runtime/node'],
  'prom-client': ['runtime/engine'],
  'rabbitmq-client': ['runtime/pull-secret-adapter/broker'],
  '@google-cloud/pubsub': ['runtime/pull-secret-adapter/broker'],
};

function sources(): string[] {
  const found = globSync(['main.ts', 'charts/**/*.ts', 'runtime/**/*.ts', 'build/**/*.ts'], {
    cwd: root,
  }).sort();
  assert.ok(found.includes('runtime/core/errors.ts'), 'the sources are not found');
  return found;
}

const levelOf = (file: string): number =>
  ORDER.findIndex((rooms) => rooms.some((room) => file === room || file.startsWith(`${room}/`)));

const roomOf = (file: string): string | undefined =>
  ORDER.flat().find((room) => file === room || file.startsWith(`${room}/`));

type Import = ReturnType<typeof importsOf>[number];

const wrongIn = (files: readonly string[], isWrong: (file: string, one: Import) => boolean): string[] =>
  files.flatMap((file) =>
    importsOf(file)
      .filter((one) => isWrong(file, one))
      .map(({ target }) => `${file} imports ${target}`),
  );

test('every file stands in a room of the rule', () => {
  assert.deepEqual(
    sources().filter((file) => levelOf(file) < 0),
    [],
  );
});

test('a folder imports what stands left of it', () => {
  const wrong = wrongIn(
    sources(),
    (file, { target }) => levelOf(target) >= levelOf(file) && roomOf(target) !== roomOf(file),
  );
  assert.deepEqual(wrong, []);
});

test('a package is loaded by its rooms alone', () => {
  const files = sources().filter((file) => !file.startsWith('build/'));
  const wrong = wrongIn(
    files,
    (file, { target }) =>
      Object.hasOwn(PACKAGES, target) && !PACKAGES[target]?.some((room) => file.startsWith(`${room}/`)),
  );
  assert.deepEqual(wrong, []);
});

test('the core has no side effect: nothing of Node but what is pure', () => {
  const pure = new Set(['node:crypto', 'node:buffer', 'node:util']);
  const shells = ['runtime/core/logger.ts'];
  const files = sources().filter((file) => file.startsWith('runtime/core/') && !shells.includes(file));
  const wrong = wrongIn(files, (_, { target }) => target.startsWith('node:') && !pure.has(target));
  assert.deepEqual(wrong, []);
});

test("a system's root imports no program of it, and no other system", () => {
  const files = sources().filter((file) => SYSTEMS.some((system) => dirname(file) === `runtime/${system}`));
  const wrong = wrongIn(files, (file, { target, isType }) => !isType && isProgram(target, dirname(file)));
  assert.deepEqual(wrong, []);
});

/** Sub-folders with rules and kinds that the root imports. */
const PARTS = ['kinds', 'plan', 'mirror-sets', 'machine-config', 'sentinel', 'broker'];

function isProgram(target: string, system: string): boolean {
  return (
    dirname(target).startsWith(`${system}/`) && !PARTS.some((part) => target.startsWith(`${system}/${part}/`))
  );
}

test('no file imports itself by way of others, types included', () => {
  // A command that is loaded on demand makes no cycle.
  const all = new Map(
    sources().map((file) => [
      file,
      importsOf(file).flatMap(({ target, isLazy }) => (isLazy ? [] : [target])),
    ]),
  );
  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(' > '));
    if (done.has(file) || path.includes(file)) return;
    for (const target of all.get(file) ?? []) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of all.keys()) visit(file, []);
  assert.deepEqual(circles, []);
});

test('credentials are unwrapped only in the listed files', () => {
  const callers = sources().filter(
    (file) =>
      /\breveal\(/.test(readFileSync(join(root, file), 'utf8')) && file !== 'runtime/core/redacted.ts',
  );
  const listed = readFileSync(join(root, 'test/architecture/reveal-allowed.txt'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  assert.deepEqual(
    callers.filter((file) => !listed.includes(file)),
    [],
    'add a file only where it parses, compares or writes credentials',
  );
});

test('the environment is read only by the shells', () => {
  const wrong = sources().filter(
    (file) =>
      file.startsWith('runtime/') &&
      !/^runtime\/(commands|cli|diagnose\/commands)\/|\/command\.ts$|^runtime\/http\/proxy\.ts$/.test(file) &&
      readFileSync(join(root, file), 'utf8').includes('process.env'),
  );
  assert.deepEqual(wrong, []);
});
