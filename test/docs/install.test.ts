// deadline: 240 s
// needs: control plane
/** Every command block of docs/install.md, and the API server of docs/first-steps.md, run as printed on a real API server. */
import assert from 'node:assert/strict';
import { symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { controlPlaneBinaries } from '../control-plane/build.ts';
import { controlPlane } from '../control-plane/live.ts';
import { docBlock, docBlocks, putPullwright, runBlock, saveBlock } from '../support/doc-blocks.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const root = new URL('../..', import.meta.url).pathname;

const blocks = docBlocks('docs/install.md');

test('every block says its language, and only blocks that need other systems are skipped', () => {
  assert.ok(blocks.length > 10);
  for (const { language } of blocks) assert.ok(['json', 'sh', 'yaml'].includes(language), language);
  assert.deepEqual(
    blocks.flatMap(({ skipped }) => skipped ?? []),
    [
      'first steps run it',
      'writes to /usr/local/bin',
      'needs a registry',
      'needs a release and its key',
      'needs a registry',
      'belongs to nodes',
    ],
  );
});

const plane = await controlPlane();
const work = tempFolder();
const bin = join(work, '.bin');
const env = { PATH: `${bin}:${dirname(process.execPath)}`, HOME: work, KUBECONFIG: plane.kubeconfig };

test('the commands do what they say, in the order of the page', async () => {
  putPullwright(bin);
  writeFileSync(join(work, 'password'), 'a password of the test');
  const { kubectl } = await controlPlaneBinaries();
  symlinkSync(kubectl, join(bin, 'kubectl'));
  for (const block of blocks) {
    if (block.language === 'yaml') saveBlock(work, block.text);
    else if (block.skipped === undefined) await runBlock(block.text, work, env);
  }
});

test('the overlay was applied', async () => {
  const deployment = await plane.get({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'pullwright-reconciler', namespace: 'pullwright-system' },
  });
  assert.equal(deployment?.['spec'].replicas, 3);
});

test('the built-in fleet installs as first steps say', async () => {
  const commands = docBlock('docs/first-steps.md', 'A real API server', 'sh');
  // Without a reconciler and nodes the installation is not complete.
  await runBlock(commands.replace(/(node main\.ts check)/, '! $1'), root, env);
});
