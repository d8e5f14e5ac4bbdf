// deadline: 600 s
/**
 * Flux's kustomize-controller with a rendered fleet, by the commands of docs/gitops.md and docs/uninstall.md: two clusters, one
 * delivered from git, one by its reconciler.
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
import { missingFlux } from './build.ts';
import { DeliveredCluster } from './cluster.ts';
import { Flux } from './flux.ts';
import { managersOf, objectNames, writtenBy } from './objects.ts';
import { Repository } from './repository.ts';
import { COPY, DEPLOYMENT, GRANTED, named, PROFILE, ROLE, VERIFY } from './scene.ts';

const test = suite('Flux');
const missing = missingFlux() ?? missingControlPlane();

const within = <T>(check: () => Promise<T>): Promise<T> => eventually(check, { withinMs: 45_000 });
const PROFILES = 'pullwright-prod-pullwright.dev';
const MANAGER = 'kustomize-controller';

if (missing !== undefined) test.skip('all of it', missing);
else {
  const [prod, lab] = await Promise.all([DeliveredCluster.start(), DeliveredCluster.start()]);
  const { plane } = prod;
  for (const name of ['platform', 'team-a']) await plane.apply(named('v1', 'Namespace', name));
  const folder = join(plane.folder, 'user');
  mkdirSync(folder);
  const repository = await Repository.create(folder, plane.kubeconfig);
  const flux = await Flux.start(plane, repository.bare);
  await flux.kubeconfigSecret('lab-kubeconfig', lab.plane.kubeconfig);
  const before = [await objectNames(plane), await objectNames(lab.plane)] as const;
  const run = async (heading: string, page = 'docs/gitops.md'): Promise<string> => {
    const block = docBlock(page, heading, 'sh');
    const ran = await repository.shell(block);
    assert.equal(ran.code, 0, `${block}\n${ran.stdout}\n${ran.stderr}\n${await flux.report()}`);
    return ran.stdout;
  };

  test('install: definitions and what needs them in one go, on both clusters', async () => {
    repository.write('fleet.yaml', docBlock('docs/gitops.md', 'Flux', 'yaml'));
    await run('Flux: install');
    for (const { plane: each } of [prod, lab])
      assert.equal((await each.get(DEPLOYMENT))?.['status'].availableReplicas, 2);
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

  test('health: a profile is not ready without its source, and Flux says why', async () => {
    await within(async () => assert.match(JSON.stringify(await plane.get(PROFILE)), /SourceMissing/));
    await within(async () => assert.equal(await flux.ready(PROFILES), 'False', await flux.report()));
    assert.match(await run('Flux: look'), /PullSecretProfile\/team-registry status: 'Failed'/);
    await plane.apply(GRANTED);
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

  test('drift: what somebody changed or deleted is put back, and Secrets are not touched', async () => {
    const secrets = await Promise.all([GLOBAL, COPY, GRANTED].map((one) => plane.get(one)));
    await plane.kubectl(
      '-n',
      'pullwright-system',
      'scale',
      'deployment',
      'pullwright-reconciler',
      '--replicas=5',
    );
    await plane.kubectl('delete', 'clusterrole', ROLE.metadata.name);
    await run('Flux: drift');
    assert.equal((await plane.get(DEPLOYMENT))?.['spec'].replicas, 2);
    assert.notEqual(await plane.get(ROLE), undefined);
    assert.deepEqual(await Promise.all([GLOBAL, COPY, GRANTED].map((one) => plane.get(one))), secrets);
  });

  test('upgrade: a newer image, other options, and a system less', async () => {
    repository.edit('fleet.yaml', 'pullwright:0.1.0', 'pullwright:0.2.0');
    repository.edit('fleet.yaml', '      verify: {}\n', '');
    repository.edit(
      'fleet.yaml',
      'createConfigNamespace: true }\n',
      'createConfigNamespace: true, enforce: deny }\n',
    );
    await run('Flux: change');
    for (const { plane: each } of [prod, lab]) {
      const [container] = (await each.get(DEPLOYMENT))?.['spec'].template.spec.containers ?? [];
      assert.match(container.image, /:0\.2\.0$/);
    }
    assert.equal(await plane.get(VERIFY), undefined);
    for (const one of [GLOBAL, COPY, GRANTED, PROFILE]) assert.notEqual(await plane.get(one), undefined);
  });

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

  test('an overlay that left the fleet: its Kustomization goes, and with it what it brought', async () => {
    const section = / {6}pull-secret-injection:\n[^]*(?= {2}- name: lab)/;
    repository.edit('fleet.yaml', section, '      pull-secret-injection: {}\n');
    assert.match(await run('Flux: change'), /kustomization-pullwright-prod-pullwright\.dev\.yaml/);
    const gone = await plane.kubectl('-n', 'flux-system', 'delete', 'kustomization', PROFILES);
    assert.equal(gone.code, 0, gone.stderr);
    assert.equal(await plane.get(PROFILE), undefined);
    await within(async () => assert.equal(await plane.get(COPY), undefined));
    for (const one of [GLOBAL, GRANTED, DEPLOYMENT]) assert.notEqual(await plane.get(one), undefined);
  });

  test('uninstall refuses while Flux delivers', async () => {
    const refused = await repository.shell('pullwright uninstall --yes');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /by Flux Kustomization "pullwright-prod"/);
    assert.notEqual(await plane.get(DEPLOYMENT), undefined);
  });

  test('uninstall: by the page, nothing of ours stays, and everything of others', async () => {
    assert.match(await run('Out of Flux', 'docs/uninstall.md'), /removed, \d+ kept/);
    await within(async () =>
      assert.deepEqual(changes(before[0], await objectNames(plane)), [
        '+ GitRepository flux-system pullwright',
        '+ Kustomization flux-system pullwright-lab',
        '+ Secret kube-system additional-pull-secret',
        '+ Secret platform quay-robot',
      ]),
    );
  });

  test('uninstall of a cluster that Flux reaches from elsewhere takes a word that it was stopped', async () => {
    const [stop = ''] = docBlock('docs/uninstall.md', 'Out of Flux', 'sh').split('pullwright uninstall');
    const stopped = await repository.shell(stop.replaceAll('prod', 'lab'));
    assert.equal(stopped.code, 0, stopped.stderr);
    const uninstall = `KUBECONFIG=${lab.plane.kubeconfig} pullwright uninstall --yes`;
    const refused = await repository.shell(uninstall);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /If it ran in another cluster and is gone, give --ignore-gitops/);
    const done = await repository.shell(`${uninstall} --ignore-gitops`);
    assert.equal(done.code, 0, done.stderr);
    const stays = ['+ Secret kube-system additional-pull-secret'];
    await within(async () => assert.deepEqual(changes(before[1], await objectNames(lab.plane)), stays));
  });

  test.lastly('everything stops', async () => {
    await flux.stop();
    await Promise.all([prod.stop(), lab.stop()]);
  });
}

test.run();
