// deadline: 900 s
// needs: Argo CD, control plane
/**
 * Argo CD's application controller and repo server with a rendered fleet, by the commands of docs/gitops.md and docs/operations.md: two
 * clusters, one delivered from git, one by its reconciler.
 */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { docBlock } from '../support/doc-blocks.ts';
import { test } from '../support/suite.ts';
import { ArgoCd } from './argo-cd.ts';
import { GitServer } from './git-server.ts';
import { objectNames, writtenBy } from './objects.ts';
import { COPY, DEPLOYMENT, GRANT, named, PROFILE, SOURCE } from './scene.ts';
import {
  type Delivery,
  runBlock,
  startClusters,
  testDrift,
  testLeaving,
  testOverlayLeft,
  testReconciled,
  testUpgrade,
  within,
} from './steps.ts';

const [PROD, LAB] = ['pullwright-prod', 'pullwright-lab'] as const;
const MANAGER = 'argocd-controller';
const TURNS = named('coordination.k8s.io/v1', 'Lease', 'global-pull-secret-syncer-turns', 'kube-system');

const clusters = await startClusters();
const { prod, lab, repository, folder } = clusters;
const { plane } = prod;
const certificates = join(folder, 'certificates');
mkdirSync(certificates);
const git = await GitServer.start(repository.bare, certificates);
const argo = await ArgoCd.start(plane, git);
await argo.addClusterOf('lab', lab.plane);
const delivery: Delivery = {
  ...clusters,
  title: 'Argo CD',
  manager: MANAGER,
  report: () => argo.report(),
  before: await objectNames(plane),
};
const run = (heading: string): Promise<string> => runBlock(delivery, heading);
const isAll = (name: string, sync: string, health: string): Promise<void> =>
  within(async () => {
    const { sync: now, health: found } = await argo.status(name);
    assert.deepEqual([now?.status, found?.status], [sync, health], await argo.report());
  });

test('install: definitions and what needs them in one go, at the first attempt, on both clusters', async () => {
  const fleet = docBlock('docs/gitops.md', 'Argo CD', 'yaml');
  repository.write('fleet.yaml', fleet.replace(/repository: \S+/, `repository: ${git.url}`));
  await run('Argo CD: install');
  for (const name of [PROD, LAB])
    await within(async () => {
      const { phase, retryCount = 0 } = (await argo.status(name)).operationState ?? {};
      assert.deepEqual([phase, retryCount], ['Succeeded', 0], await argo.report());
    });
  for (const { plane: each } of [prod, lab])
    await within(async () => assert.equal((await each.get(DEPLOYMENT))?.['status']?.availableReplicas, 2));
});

testReconciled(test, delivery);

test('the Lease of turns, which Argo CD leaves out, comes by hand and is left alone', async () => {
  assert.equal(await plane.get(TURNS), undefined);
  assert.notEqual(await lab.plane.get(TURNS), undefined);
  await run('Argo CD: the Lease of turns');
  assert.notEqual(await plane.get(TURNS), undefined);
});

test('health: a profile without its source keeps the Application from being healthy', async () => {
  await within(async () => {
    const profile = (await argo.status(PROD)).resources?.find(({ kind }) => kind === PROFILE.kind);
    assert.notEqual(profile, undefined);
    assert.notEqual((await argo.status(PROD)).health?.status, 'Healthy');
  });
  await plane.apply(SOURCE);
  await plane.apply(GRANT);
  await within(async () => assert.notEqual(await plane.get(COPY), undefined));
  await run('Argo CD: look');
  await isAll(PROD, 'Synced', 'Healthy');
});

test('every object is in sync, and a further look writes nothing', async () => {
  for (const name of [PROD, LAB]) {
    await isAll(name, 'Synced', 'Healthy');
    const { resources = [] } = await argo.status(name);
    assert.ok(resources.length > 15, `${resources.length} objects`);
    assert.deepEqual(
      resources.filter(({ status }) => status !== 'Synced'),
      [],
    );
  }
  const written = await writtenBy(plane, MANAGER);
  const syncs = (await argo.status(PROD)).history?.length;
  await argo.refresh(PROD);
  assert.deepEqual(await writtenBy(plane, MANAGER), written);
  assert.equal((await argo.status(PROD)).history?.length, syncs);
});

testDrift(test, delivery, async () => undefined);
testUpgrade(test, delivery);
test('all of it is in sync and healthy again', () => isAll(PROD, 'Synced', 'Healthy'));
testOverlayLeft(test, delivery, async () => {
  const block = docBlock('docs/gitops.md', 'Argo CD: change', 'sh').replace('revisions[0]', 'revision');
  const ran = await repository.shell(block);
  assert.equal(ran.code, 0, `${ran.stderr}\n${await argo.report()}`);
});

test('settings of others in argocd-cm stay', async () => {
  const settings = await plane.get(named('v1', 'ConfigMap', 'argocd-cm', 'argocd'));
  assert.equal(settings?.['data']['timeout.reconciliation'], '180s');
  assert.match(settings?.['data']['resource.customizations.health.pullwright.dev_PullStatus'], /Stalled/);
});

testLeaving(test, delivery, {
  of: 'Argo CD Application "pullwright-prod"',
  left: ['+ Application argocd pullwright-lab'],
});

test.lastly('everything stops', async () => {
  await argo.stop();
  git.stop();
  await Promise.all([prod.stop(), lab.stop()]);
});
