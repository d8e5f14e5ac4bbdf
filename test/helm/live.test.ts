// deadline: 300 s
// needs: Helm, control plane
/** Every command block of docs/helm.md, run as printed on a real API server, and the removal of the release. */
import assert from 'node:assert/strict';
import { symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { controlPlaneBinaries } from '../control-plane/build.ts';
import { controlPlane } from '../control-plane/live.ts';
import { docBlocks, putPullwright, runBlock } from '../support/doc-blocks.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { helmProgram } from './build.ts';

const plane = await controlPlane();
const work = tempFolder();
const bin = join(work, '.bin');
const env = { PATH: `${bin}:${dirname(process.execPath)}`, HOME: work, KUBECONFIG: plane.kubeconfig };
const systems = {
  'global-pull-secret': { createConfigNamespace: true },
  'registry-overrides': {},
  verify: {},
};
const fleet = { image: 'registry.example.com/p:1.2.3', clusters: [{ name: 'live', systems }] };

test('installs, upgrades and uninstalls', async () => {
  putPullwright(bin);
  symlinkSync((await controlPlaneBinaries()).kubectl, join(bin, 'kubectl'));
  symlinkSync(await helmProgram(), join(bin, 'helm'));
  writeFileSync(
    join(work, 'fleet.yaml'),
    JSON.stringify({ apiVersion: 'pullwright.dev/v1alpha1', kind: 'Fleet', ...fleet }),
  );
  for (const { text } of docBlocks('docs/helm.md')) await runBlock(text, work, env);
  const kind = { apiVersion: 'apps/v1', kind: 'Deployment' };
  const of = { ...kind, metadata: { name: 'pullwright-reconciler', namespace: 'pullwright-system' } };
  assert.ok(await plane.get(of));
  await runBlock('helm uninstall pullwright --namespace pullwright-system', work, env);
  assert.equal(await plane.get(of), undefined);
});
