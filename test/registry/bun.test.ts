// deadline: 240 s
/** The client as the executable has it: the same cases, under Bun. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';

const bun = new URL('../../node_modules/@oven/bun-linux-x64/bin/bun', import.meta.url).pathname;

for (const file of ['client', 'client-faults', 'proxy']) {
  if (!existsSync(bun)) test.skip(file, 'Bun is not installed for this machine');
  else
    test(`every case of ${file}.test.ts`, async () => {
      const path = new URL(`${file}.test.ts`, import.meta.url).pathname;
      const ran = await runProcess([bun, path], { deadlineMs: 55_000 });
      assert.equal(ran.code, 0, ran.stdout.slice(-3000) + ran.stderr.slice(-1000));
      const passed = /Passed:\s+(\d+)/.exec(ran.stdout)?.[1];
      assert.ok(Number(passed) > 5, `${passed} cases ran`);
    });
}
