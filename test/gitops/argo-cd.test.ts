// deadline: 600 s
/**
 * Argo CD's application controller and repo server with a rendered fleet, by the commands of docs/gitops.md and docs/uninstall.md: two
 * clusters, one delivered from git, one by its reconciler.
 */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { missingControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import { changes } from '../node/machine/snapshot.ts';
import { additional, GLOBAL, registriesOf, SYNCER } from '../reconcile/scene.ts';
import { docBlock } from '../support/doc-blocks.ts';
import { suite } from '../support/suite.ts';
import { ArgoCd } from './argo-cd.ts';
import { missingArgo } from './build.ts';
import { DeliveredCluster } from './cluster.ts';
import { GitServer } from './git-server.ts';
import { managersOf, objectNames, writtenBy } from './objects.ts';
import { Repository } from './repository.ts';
import { COPY, DEPLOYMENT, GRANTED, named, PROFILE, ROLE, VERIFY } from './scene.ts';

const test = suite('Argo CD');
const missing = missingArgo() ?? missingControlPlane();

const within = <T>(check: () => Promise<T>): Promise<T> => eventually(check, { withinMs: 60_000 });
const [PROD, LAB] = ['pullwright-prod', 'pullwright-lab'] as const;
const MANAGER = 'argocd-controller';
const TURNS = named('coordination.k8s.io/v1', 'Lease', 'global-pull-secret-syncer-turns', 'kube-system');

if (missing !== undefined) test.skip('all of it', missing);
else {
  const [prod, lab] = await Promise.all([DeliveredCluster.start(), DeliveredCluster.start()]);
  const { plane } = prod;
  for (const name of ['platform', 'team-a']) await plane.apply(named('v1', 'Namespace', name));
  const folder = join(plane.folder, 'user');
  const certificates = join(plane.folder, 'certificates');
  for (const path of [folder, certificates]) mkdirSync(path);
  const repository = await Repository.create(folder, plane.kubeconfig);
  const git = await GitServer.start(repository.bare, certificates);
  const argo = await ArgoCd.start(plane, git);
  await argo.addClusterOf('lab', lab.plane);
  const before = [await objectNames(plane), await objectNames(lab.plane)] as const;
  const run = async (heading: string, page = 'docs/gitops.md'): Promise<string> => {
    const block = docBlock(page, heading, 'sh');
    const ran = await repository.shell(block);
    assert.equal(ran.code, 0, `${block}\n${ran.stdout}\n${ran.stderr}\n${await argo.report()}`);
    return ran.stdout;
  };
  const isAll = (name: string, sync: string, health: string): Promise<void> =>
    within(async () => {
      const { sync: now, health: found } = await argo.status(name);
      assert.deepEqual([now?.status, found?.status], [sync, health], await argo.report());
    });

  test('install: definitions and what needs them in one go, on both clusters', async () => {
    const fleet = docBlock('docs/gitops.md', 'Argo CD', 'yaml');
    repository.write('fleet.yaml', fleet.replace(/repository: \S+/, `repository: ${git.url}`));
    await run('Argo CD: install');
    for (const { plane: each } of [prod, lab])
      await within(async () => assert.equal((await each.get(DEPLOYMENT))?.['status']?.availableReplicas, 2));
  });

  test('what git does not hold, the reconciler makes: its DaemonSet too where it is told to', async () => {
    for (const [{ plane: each }, maker] of [
      [prod, MANAGER],
      [lab, 'pullwright-global-pull-secret'],
    ] as const) {
      await each.apply(additional('tenant.example.com'));
      await within(async () =>
        assert.deepEqual(registriesOf(await each.get(GLOBAL)), ['tenant.example.com']),
      );
      await within(async () => assert.ok(managersOf(await each.get(SYNCER)).includes(maker)));
    }
  });

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
    await plane.apply(GRANTED);
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

  test('drift: what somebody changed or deleted is put back, and Secrets are not touched', async () => {
    const secrets = await Promise.all([GLOBAL, COPY, GRANTED].map((one) => plane.get(one)));
    await plane.kubectl(
      '-n',
      'pullwright-system',
      'scale',
      'deployment',
      DEPLOYMENT.metadata.name,
      '--replicas=5',
    );
    await plane.kubectl('delete', 'clusterrole', ROLE.metadata.name);
    await within(async () => assert.equal((await plane.get(DEPLOYMENT))?.['spec'].replicas, 2));
    await within(async () => assert.notEqual(await plane.get(ROLE), undefined));
    await isAll(PROD, 'Synced', 'Healthy');
    assert.deepEqual(await Promise.all([GLOBAL, COPY, GRANTED].map((one) => plane.get(one))), secrets);
  });

  test('upgrade: a newer image, other options, and a system less', async () => {
    repository.edit('fleet.yaml', 'pullwright:0.1.0', 'pullwright:0.2.0');
    repository.edit('fleet.yaml', '      verify: {}\n', '');
    await run('Argo CD: change');
    for (const { plane: each } of [prod, lab]) {
      const [container] = (await each.get(DEPLOYMENT))?.['spec'].template.spec.containers ?? [];
      assert.match(container.image, /:0\.2\.0$/);
    }
    await within(async () => assert.equal(await plane.get(VERIFY), undefined));
    for (const one of [GLOBAL, COPY, GRANTED, PROFILE]) assert.notEqual(await plane.get(one), undefined);
    await isAll(PROD, 'Synced', 'Healthy');
  });

  test('an overlay that left the fleet goes, with what was made of it', async () => {
    const section = / {6}pull-secret-injection:\n[^]*(?= {2}- name: lab)/;
    repository.edit('fleet.yaml', section, '      pull-secret-injection: {}\n');
    const block = docBlock('docs/gitops.md', 'Argo CD: change', 'sh').replace('revisions[0]', 'revision');
    const ran = await repository.shell(block);
    assert.equal(ran.code, 0, `${ran.stderr}\n${await argo.report()}`);
    await within(async () => assert.equal(await plane.get(PROFILE), undefined));
    await within(async () => assert.equal(await plane.get(COPY), undefined));
    for (const one of [GLOBAL, GRANTED, DEPLOYMENT]) assert.notEqual(await plane.get(one), undefined);
  });

  test('settings of others in argocd-cm stay', async () => {
    const settings = await plane.get(named('v1', 'ConfigMap', 'argocd-cm', 'argocd'));
    assert.equal(settings?.['data']['timeout.reconciliation'], '180s');
    assert.match(settings?.['data']['resource.customizations.health.pullwright.dev_PullStatus'], /Stalled/);
  });

  test('uninstall refuses while Argo CD delivers', async () => {
    const refused = await repository.shell('pullwright uninstall --yes');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /by Argo CD Application "pullwright-prod"/);
    assert.notEqual(await plane.get(DEPLOYMENT), undefined);
  });

  test('uninstall: by the page, nothing of ours stays, and everything of others', async () => {
    assert.match(await run('Out of Argo CD', 'docs/uninstall.md'), /removed, \d+ kept/);
    await within(async () =>
      assert.deepEqual(changes(before[0], await objectNames(plane)), [
        '+ Application argocd pullwright-lab',
        '+ Secret kube-system additional-pull-secret',
        '+ Secret platform quay-robot',
      ]),
    );
  });

  test.lastly('everything stops', async () => {
    await argo.stop();
    git.stop();
    await Promise.all([prod.stop(), lab.stop()]);
  });
}

test.run();
