/** HTTPS with a renewed certificate, in Node and in Bun, whose own HTTPS server cannot renew it. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';

const arch = process.arch === 'arm64' ? 'aarch64' : 'x64';
const bun = new URL(`../../node_modules/@oven/bun-linux-${arch}/bin/bun`, import.meta.url).pathname;
const scene = new URL('https-server-scene.ts', import.meta.url).pathname;
const SEEN = `certificate: first
a large body: 200 3000000
after the change: second
a connection from before: HTTP/1.1 200 OK
ten requests within twice the time: HTTP/1.1 200 OK
who says nothing: ended
half a request: ended
a header that never ends: ended
a body that never ends: ended
of twenty at once are ended: 12
asked before the end: 200 1
closed: refused
`;

for (const [name, program] of [
  ['Node', process.execPath],
  ['the executable', bun],
] as const)
  if (!existsSync(program)) test.skip(name, 'Bun is not installed for this machine');
  else
    test(name, async () => {
      const ran = await runProcess([program, scene], { deadlineMs: 55_000 });
      assert.equal(ran.stdout, SEEN, ran.stderr);
      assert.equal(ran.code, 0);
    });
