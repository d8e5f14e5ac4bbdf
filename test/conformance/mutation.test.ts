// deadline: 900 s
/** Each suite must notice when the rule behind it is wrong: one source edit per suite, in a copy of the tree. */
import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { missingPart } from './missing-part.ts';
import type { ConformanceSuite } from './suite.ts';

const here = new URL('.', import.meta.url).pathname;
const root = join(here, '..', '..');
const copy = tempFolder();
for (const folder of ['runtime', 'charts', 'test', 'package.json']) {
  cpSync(join(root, folder), join(copy, folder), {
    recursive: true,
    filter: (path) => !path.includes('/node_modules'),
  });
}
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));

for (const folder of readdirSync(join(here, 'cases')).sort()) {
  for (const file of readdirSync(join(here, 'cases', folder)).sort()) {
    const name = `${folder}/${file.replace(/\.json$/, '')}`;
    const missing = await missingPart(name);
    if (missing !== undefined) {
      test.skip(name, missing);
      continue;
    }
    test(name, async () => {
      const { suite } = (await import(join(here, 'suites', `${name}.ts`))) as { suite: ConformanceSuite };
      const target = join(copy, suite.mutation.file);
      const source = readFileSync(target, 'utf8');
      assert.ok(
        source.includes(suite.mutation.replace),
        `${suite.mutation.file} has no "${suite.mutation.replace}"`,
      );
      writeFileSync(target, source.replace(suite.mutation.replace, suite.mutation.by));
      const ran = await runProcess(
        [process.execPath, join(copy, 'test/conformance/run.ts'), '--suite', name],
        { deadlineMs: 120_000 },
      );
      writeFileSync(target, source);
      assert.equal(
        ran.code,
        1,
        `the suite passes with "${suite.mutation.replace}" turned into "${suite.mutation.by}"`,
      );
      assert.match(ran.stdout, /FAIL/);
      assert.doesNotMatch(ran.stdout, /cannot read the cases|unknown suite/);
    });
  }
}
