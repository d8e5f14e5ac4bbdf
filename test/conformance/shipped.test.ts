/** The rule behind each suite is in the program: a suite that judges anything else proves nothing about what users run. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { test } from '../support/suite.ts';
import type { ConformanceSuite } from './suite.ts';

const here = import.meta.dirname;
const root = join(here, '../..');

/** Files of which something is left in the bundle, by path from the root. */
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

for (const folder of readdirSync(join(here, 'cases')).sort()) {
  for (const file of readdirSync(join(here, 'cases', folder)).sort()) {
    const name = `${folder}/${file.replace(/\.json$/, '')}`;
    test(name, async () => {
      const { suite } = (await import(join(here, 'suites', `${name}.ts`))) as { suite: ConformanceSuite };
      // The double of the API is no part of the program.
      if (suite.mutation.file.startsWith('test/')) return;
      assert.ok(shipped.has(suite.mutation.file), `${suite.mutation.file} is not in the program`);
    });
  }
}
