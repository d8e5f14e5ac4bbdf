// deadline: 900 s
/** Every suite passes, its rule is in the program, and it notices when that is wrong: one source edit, in a copy of the tree. */
import assert from 'node:assert/strict';
import { cpSync, globSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
// Suites are loaded by name, which the runner does not see: those of definitions need a control plane, built before the tests start.
import '../control-plane/build.ts';
import { type ProcessResult, runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { suiteOf } from './find-suite.ts';

const here = import.meta.dirname;
const root = join(here, '../..');
const copy = tempFolder();
for (const folder of ['runtime', 'charts', 'test', 'package.json'])
  cpSync(join(root, folder), join(copy, folder), {
    recursive: true,
    filter: (path) => !path.includes('/node_modules'),
  });
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));

function run(tree: string, ...args: readonly string[]): Promise<ProcessResult> {
  return runProcess([process.execPath, join(tree, 'test/conformance/run.ts'), ...args], {
    deadlineMs: args.includes('--suite') ? 120_000 : 600_000,
  });
}

/** Files with code in the bundled program, by path from the root. */
const { metafile } = await build({
  entryPoints: [join(root, 'runtime/commands/executable.ts'), join(root, 'charts/mod.ts')],
  absWorkingDir: root,
  bundle: true,
  write: false,
  outdir: 'dist',
  metafile: true,
  treeShaking: true,
  platform: 'node',
  format: 'esm',
  packages: 'external',
  logLevel: 'silent',
});
const shipped = new Set(
  Object.values(metafile.outputs).flatMap(({ inputs }) =>
    Object.entries(inputs)
      .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      .map(([file]) => file),
  ),
);

const ran = await run(root, '--verbose');

for (const file of globSync('*/*.json', { cwd: join(here, 'cases') }).sort()) {
  const name = file.replace(/\.json$/, '');
  const suite = await suiteOf(name);
  const missing = suite?.missing?.();
  if (missing !== undefined) {
    test.skip(name, missing);
    continue;
  }
  test(name, () => {
    const [said = 'no line says so'] = ran.stdout
      .split(/^(?=ok {3}|FAIL )/m)
      .filter((part) => part.includes(` ${name}: `));
    assert.match(said, /^ok {3}/, said + ran.stderr);
  });
  // A case file without a suite is a failure of the run.
  if (suite === undefined) continue;
  const { mutation } = suite;
  test(`${name} notices a wrong rule of the program`, async () => {
    // The double of the API is no part of the program.
    assert.ok(
      mutation.file.startsWith('test/') || shipped.has(mutation.file),
      `${mutation.file} is not shipped`,
    );
    const target = join(copy, mutation.file);
    const source = readFileSync(target, 'utf8');
    assert.ok(source.includes(mutation.replace), `${mutation.file} has no "${mutation.replace}"`);
    writeFileSync(target, source.replace(mutation.replace, mutation.by));
    const mutated = await run(copy, '--suite', name).finally(() => writeFileSync(target, source));
    assert.equal(mutated.code, 1, `the suite passes with "${mutation.replace}" turned into "${mutation.by}"`);
    assert.match(mutated.stdout, /FAIL/);
    assert.doesNotMatch(mutated.stdout, /cannot read the cases|unknown suite/);
  });
}

test('a folder without cases fails', async () => {
  const nothing = await run(root, '/nonexistent');
  assert.equal(nothing.code, 1);
  assert.match(nothing.stdout, /No case file in \/nonexistent/);
});
