/** The HTTP client under Bun, which runs the compiled executable: the same cases, by both engines. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';

const arch = process.arch === 'arm64' ? 'aarch64' : 'x64';
const bun = new URL(`../../node_modules/@oven/bun-linux-${arch}/bin/bun`, import.meta.url).pathname;

if (!existsSync(bun)) test.skip('client', 'Bun is not installed for this machine');
else
  test('every case of client.test.ts', async () => {
    const path = new URL('client.test.ts', import.meta.url).pathname;
    const ran = await runProcess([bun, path], { deadlineMs: 55_000 });
    assert.equal(ran.code, 0, ran.stdout.slice(-3000) + ran.stderr.slice(-1000));
    assert.match(ran.stdout, /engines: node:https, fetch/);
  });
