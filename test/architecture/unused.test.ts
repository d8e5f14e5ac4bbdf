/** No unused files, exports and dependencies, by knip. A use in a test does not count. */
import assert from 'node:assert/strict';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';

const root = new URL('../..', import.meta.url).pathname;

test('every file, export and dependency is reached from what ships', async () => {
  const knip = `${root}node_modules/knip/bin/knip.js`;
  const ran = await runProcess([process.execPath, knip, '--production', '--no-progress'], { cwd: root });
  assert.equal(ran.code, 0, ran.stdout + ran.stderr);
});
