// deadline: 240 s
// needs: control plane
/**
 * What git owns and what the program computes never overlap: `dist/manifests`, applied as Argo CD and Flux apply it, stays without
 * conflict and without difference while the program runs, with exactly the rights that these manifests give it.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../control-plane/eventually.ts';
import { controlPlane } from '../control-plane/live.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { NODE_CONFINED, ReconcilerProcess } from './process.ts';
import { additional, GLOBAL, inKubeSystem, platform, registriesOf, SYNCER } from './scene.ts';

const manifests = new URL('../../dist/manifests', import.meta.url).pathname;

const plane = await controlPlane();
const apply = (...flags: string[]): ReturnType<typeof plane.kubectl> =>
  plane.kubectl('apply', '--server-side', '--field-manager=argocd-controller', ...flags, '-k', manifests);
let process: ReconcilerProcess | undefined;

test('the manifests apply', async () => {
  const crds = await plane.kubectl(
    'apply',
    '--server-side',
    '--field-manager=argocd-controller',
    '-k',
    join(manifests, 'crds'),
  );
  assert.equal(crds.code, 0, crds.stderr);
  const all = await apply();
  assert.equal(all.code, 0, all.stderr);
});

test('the program runs with the rights of its service account and computes the secrets', async () => {
  await plane.apply(platform('quay.io'));
  await plane.apply(additional('tenant.example.com'));
  const config = join(plane.folder, 'config.yaml');
  const map = await plane.get(
    meta('v1 ConfigMap', { name: 'pullwright-reconciler-config', namespace: 'pullwright-system' }),
  );
  writeFileSync(config, String(map?.['data']['config.yaml']));
  const kubeconfig = await plane.account('pullwright-system', 'pullwright-reconciler');
  process = new ReconcilerProcess(NODE_CONFINED, [
    `--kubeconfig=${kubeconfig}`,
    `--config=${config}`,
    '--lease-namespace=pullwright-system',
  ]);
  await eventually(async () =>
    assert.deepEqual(registriesOf(await plane.get(GLOBAL)), ['quay.io', 'tenant.example.com']),
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${process?.log.slice(-3000)}`);
  });
  assert.doesNotMatch(process.log, /403 Forbidden/);
  assert.doesNotMatch(process.log, /"has a problem"/);
});

test('the same manifests apply again without conflict, and differ in nothing', async () => {
  const again = await apply();
  assert.equal(again.code, 0, again.stderr);
  const diff = await plane.kubectl(
    'diff',
    '--server-side',
    '--field-manager=argocd-controller',
    '-k',
    manifests,
  );
  assert.equal(diff.code, 0, diff.stdout.slice(0, 2000));
});

test('what git made is left alone by the program, and nobody fights', async () => {
  const before = (await plane.get(SYNCER))?.metadata['resourceVersion'];
  await apply();
  await plane.apply(additional('second.example.com'));
  await eventually(async () =>
    assert.deepEqual(registriesOf(await plane.get(GLOBAL)), ['quay.io', 'second.example.com']),
  );
  assert.equal((await plane.get(SYNCER))?.metadata['resourceVersion'], before);
  const managers = (
    (await plane.get(SYNCER))?.metadata['managedFields'] as { manager: string }[] | undefined
  )?.map(({ manager }) => manager);
  assert.deepEqual(managers, ['argocd-controller']);
});

test('a DaemonSet that git does not bring is reported, not made', async () => {
  await plane.remove(SYNCER);
  await eventually(() => assert.match(process?.log ?? '', /DaemonSet/));
  assert.equal(await plane.get(SYNCER), undefined);
  const status = await plane.get(
    inKubeSystem('PullStatus', 'secret-additional-pull-secret', 'pullwright.dev/v1alpha1'),
  );
  assert.notEqual(status, undefined);
});

test.lastly('it stops with exit code 0', async () => assert.equal(await process?.stop(), 0));
