// deadline: 900 s
// needs: Flux, control plane
/**
 * Flux's kustomize-controller with a rendered fleet, by the commands of docs/gitops.md and docs/operations.md: two clusters, one
 * delivered from git, one by its reconciler.
 */
import assert from 'node:assert/strict';
import { changes } from '../node/machine/snapshot.ts';
import { docBlock } from '../support/doc-blocks.ts';
import { test } from '../support/suite.ts';
import { Flux } from './flux.ts';
import { objectNames, writtenBy } from './objects.ts';
import { COPY, DEPLOYMENT, GRANT, PROFILE, SOURCE } from './scene.ts';
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

/** The Kustomization of the overlay with the profile. */
const PROFILES = 'pullwright-prod-pullwright.dev';
const MANAGER = 'kustomize-controller';

const clusters = await startClusters();
const { prod, lab, repository } = clusters;
const { plane } = prod;
const flux = await Flux.start(plane, repository.bare);
await flux.kubeconfigSecret('lab-kubeconfig', lab.plane.kubeconfig);
const delivery: Delivery = {
  ...clusters,
  title: 'Flux',
  manager: MANAGER,
  report: () => flux.report(),
  before: await objectNames(plane),
};
const labBefore = await objectNames(lab.plane);
const run = (heading: string): Promise<string> => runBlock(delivery, heading);

test('install: definitions and what needs them in one go, on both clusters', async () => {
  repository.write('fleet.yaml', docBlock('docs/gitops.md', 'Flux', 'yaml'));
  await run('Flux: install');
  for (const { plane: each } of [prod, lab])
    assert.equal((await each.get(DEPLOYMENT))?.['status'].availableReplicas, 2);
});

testReconciled(test, delivery);

test('health: a profile is not ready without its source, and Flux says why', async () => {
  await within(async () => assert.match(JSON.stringify(await plane.get(PROFILE)), /SourceMissing/));
  await within(async () => assert.equal(await flux.ready(PROFILES), 'False', await flux.report()));
  assert.match(await run('Flux: look'), /PullSecretProfile\/team-registry status: 'Failed'/);
  await plane.apply(SOURCE);
  await plane.apply(GRANT);
  await within(async () => assert.notEqual(await plane.get(COPY), undefined));
  await within(async () =>
    assert.match(JSON.stringify(await plane.get(PROFILE)), /"status":"True","type":"Ready"/),
  );
  const asked = docBlock('docs/gitops.md', 'Flux: drift', 'sh').replaceAll(
    'kustomization pullwright-prod',
    `kustomization ${PROFILES}`,
  );
  assert.equal((await repository.shell(asked)).code, 0);
  assert.equal(await flux.ready(PROFILES), 'True', await flux.report());
});

test('a second pass writes nothing: what is rendered is what the API server keeps', async () => {
  const written = await writtenBy(plane, MANAGER);
  assert.ok(written.size > 60, `${written.size} objects`);
  await run('Flux: drift');
  assert.deepEqual(await writtenBy(plane, MANAGER), written);
});

testDrift(test, delivery, () => run('Flux: drift'));
testUpgrade(test, delivery);

test('a change that the reconciler has not read yet is not taken for ready', async () => {
  await prod.hold();
  repository.edit('fleet.yaml', 'selector: {}\n', 'selector: {}\n              order: 5\n');
  const block =
    docBlock('docs/gitops.md', 'Flux: change', 'sh').split('\nkubectl -n flux-system wait')[0] ?? '';
  const ran = await repository.shell(block);
  assert.equal(ran.code, 0, ran.stderr);
  await within(async () => assert.equal((await plane.get(PROFILE))?.['spec'].order, 5));
  await within(async () => assert.equal(await flux.ready(PROFILES), 'Unknown'));
  prod.resume();
  await within(async () => assert.equal(await flux.revision(PROFILES), `main@sha1:${repository.revision}`));
});

testOverlayLeft(test, delivery, async () => {
  assert.match(await run('Flux: change'), /kustomization-pullwright-prod-pullwright\.dev\.yaml/);
  const gone = await plane.kubectl('-n', 'flux-system', 'delete', 'kustomization', PROFILES);
  assert.equal(gone.code, 0, gone.stderr);
});
testLeaving(test, delivery, {
  of: 'Flux Kustomization "pullwright-prod"',
  left: ['+ GitRepository flux-system pullwright', '+ Kustomization flux-system pullwright-lab'],
});

test('uninstall of a cluster that Flux reaches from elsewhere takes a word that it was stopped', async () => {
  const [stop = ''] = docBlock('docs/operations.md', 'Out of Flux', 'sh').split('pullwright uninstall');
  const stopped = await repository.shell(stop.replaceAll('prod', 'lab'));
  assert.equal(stopped.code, 0, stopped.stderr);
  const uninstall = `KUBECONFIG=${lab.plane.kubeconfig} pullwright uninstall --yes`;
  const refused = await repository.shell(uninstall);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /If it ran in another cluster and no longer exists, use --ignore-gitops/);
  const done = await repository.shell(`${uninstall} --ignore-gitops`);
  assert.equal(done.code, 0, done.stderr);
  const stays = ['+ Secret kube-system additional-pull-secret'];
  await within(async () => assert.deepEqual(changes(labBefore, await objectNames(lab.plane)), stays));
});

test.lastly('everything stops', async () => {
  await flux.stop();
  await Promise.all([prod.stop(), lab.stop()]);
});
