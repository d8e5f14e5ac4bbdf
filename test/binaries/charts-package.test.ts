// deadline: 300 s
/** `@pullwright/charts` as its users get it: packed, put beside a copy of the example repository, installed, checked there. */
import assert from 'node:assert/strict';
import { cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildCharts } from '../../build/packages.ts';
import { type ProcessResult, runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const root = new URL('../..', import.meta.url).pathname;
const work = tempFolder();
const repository = join(work, 'clusters');
const installed = join(repository, 'node_modules/@pullwright/charts');

const run = (command: readonly string[], cwd: string): Promise<ProcessResult> =>
  runProcess(command, {
    cwd,
    deadlineMs: 200_000,
    env: { ...process.env, PATH: `${join(root, 'node_modules/.bin')}:${process.env['PATH'] ?? ''}` },
  });

/** Writes the manifests of the example anew, where the charts have changed on purpose. */
async function renderExample(): Promise<void> {
  const rendered = await run(['node', 'main.ts'], repository);
  assert.equal(rendered.code, 0, rendered.stderr);
  const manifests = join(root, 'examples/gitops-repository/manifests');
  rmSync(manifests, { recursive: true });
  cpSync(join(repository, 'manifests'), manifests, { recursive: true });
}

test('installs from its tarball into a copy of the example, by the lock file of that', async () => {
  cpSync(join(root, 'examples/gitops-repository'), repository, { recursive: true });
  await buildCharts(join(repository, 'vendor'));
  const added = await run(['npm', 'ci', '--ignore-scripts', '--prefer-offline', '--no-audit'], repository);
  assert.equal(added.code, 0, added.stderr);
});

test('brings no more than it needs', () => {
  const packages = globSync(['*/package.json', '@*/*/package.json'], {
    cwd: join(repository, 'node_modules'),
  })
    .map((path) => path.replace('/package.json', ''))
    .filter((name) => !name.startsWith('@typescript/'))
    .sort();
  assert.deepEqual(packages, [
    '@marcbachmann/cel-js',
    '@pullwright/charts',
    '@types/node',
    'cdk8s',
    'cdk8s-plus-28',
    'constructs',
    'smol-toml',
    'typescript',
    'undici-types',
    'yaml',
    'zod',
  ]);
  const imported = globSync('**/*.js', { cwd: installed }).flatMap((file) =>
    [
      ...readFileSync(join(installed, file), 'utf8').matchAll(
        /^(?:import|export)\b[^'"`;]*?from '([^'.][^']*)'/gm,
      ),
    ].map(([, name = '']) => name.split('/', 1)[0] ?? name),
  );
  assert.deepEqual([...new Set(imported)].filter((name) => !name.startsWith('node:')).sort(), [
    '@marcbachmann',
    'cdk8s',
    'constructs',
    'smol-toml',
    'yaml',
    'zod',
  ]);
  assert.deepEqual(globSync('runtime/{brokers,host,registry,webhook,bin}', { cwd: installed }), []);
  // The tree of rendered files is written by it.
  assert.deepEqual(globSync('runtime/node/*.js', { cwd: installed }), ['runtime/node/atomic-file.js']);
  const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as Readonly<
    Record<string, Readonly<Record<string, string>>>
  >;
  assert.deepEqual(Object.keys(manifest['peerDependencies'] ?? {}), ['cdk8s', 'cdk8s-plus-28', 'constructs']);
});

test('the copy passes the check of its own pull requests: types, manifests, tests', async () => {
  if (process.env['UPDATE_GOLDEN'] !== undefined) await renderExample();
  const ran = await run(['npm', 'run', 'check'], repository);
  assert.equal(ran.code, 0, `${ran.stdout}\n${ran.stderr}`);
  assert.match(ran.stdout, /pass 7\n/);
});

test('a misspelt option is a type error, and a wrong expectation fails', async () => {
  const main = join(repository, 'main.ts');
  const text = readFileSync(main, 'utf8');
  writeFileSync(main, text.replace("enforce: 'deny'", "enforse: 'deny'"));
  const types = await run(['npx', 'tsc'], repository);
  assert.match(types.stdout, /enforse/);
  writeFileSync(main, text);
  const tests = join(repository, 'main.test.ts');
  writeFileSync(
    tests,
    readFileSync(tests, 'utf8').replace(".with('additional-pull-secret')", ".with('other')"),
  );
  const ran = await run(['npm', 'test'], repository);
  assert.notEqual(ran.code, 0);
  assert.match(ran.stdout, /expected Secret "other"/);
});

test('the schema of the fleet comes along', () => {
  const text = readFileSync(join(installed, 'fleet.schema.json'), 'utf8');
  assert.equal(text, readFileSync(join(root, 'docs/fleet.schema.json'), 'utf8'));
  assert.equal((JSON.parse(text) as { $id: string }).$id, 'https://pullwright.dev/schema/fleet.schema.json');
});
