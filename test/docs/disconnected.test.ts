/** Runs every block of the steps for disconnected clusters that needs only files, unchanged and in the order of the page. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { docBlocks, putPullwright, runBlock, saveBlock } from '../support/doc-blocks.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const blocks = docBlocks('docs/registry-overrides.md').filter(({ heading }) => /^\d\. /.test(heading));
const work = tempFolder();

test('only blocks that need a registry or a cluster are skipped', () => {
  assert.deepEqual(
    blocks.flatMap(({ skipped }) => skipped ?? []),
    ['needs a registry', 'needs a cluster', 'needs a cluster', 'needs a cluster'],
  );
});

test('the commands do what they say', async () => {
  const bin = join(work, '.bin');
  putPullwright(bin);
  const said: string[] = [];
  for (const { language, text: body, skipped } of blocks) {
    if (language === 'yaml') saveBlock(work, body);
    else if (skipped === undefined) said.push((await runBlock(body, work, { PATH: bin, HOME: work })).stdout);
  }
  const all = said.join('\n');
  assert.match(all, /1 {2}mirror\.example\.com:8443\/openshift\/release@sha256:1{64}/);
  assert.match(all, /1 {2}mirror\.example\.com:8443\/redhat\/redhat-operator-index:v4\.20/);
  assert.match(
    all,
    /1 image in use: 1 changes, 0 lose their last pull source, 0 gain a mirror without a credential/,
  );
});
