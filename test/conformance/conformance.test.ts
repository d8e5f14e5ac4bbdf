// deadline: 600 s
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { missingPart } from './missing-part.ts';

const here = new URL('.', import.meta.url).pathname;

for (const folder of readdirSync(`${here}cases`).sort()) {
  for (const file of readdirSync(`${here}cases/${folder}`).sort()) {
    const name = `${folder}/${file.replace(/\.json$/, '')}`;
    const missing = await missingPart(name);
    if (missing !== undefined) {
      test.skip(name, missing);
      continue;
    }
    test(name, async () => {
      const ran = await runProcess([process.execPath, `${here}run.ts`, '--suite', name], {
        deadlineMs: 120_000,
      });
      assert.equal(ran.code, 0, ran.stdout + ran.stderr);
      assert.match(ran.stdout, /^ok {3}/);
    });
  }
}

test('a folder without cases fails', async () => {
  const ran = await runProcess([process.execPath, `${here}run.ts`, '/nonexistent']);
  assert.equal(ran.code, 1);
  assert.match(ran.stdout, /No case file in \/nonexistent/);
});
