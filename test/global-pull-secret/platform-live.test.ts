// deadline: 180 s
// needs: control plane
/** Faults of the platform's pull secret and of its nodes on a real API server: its owner is told, and nodes lose nothing. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { parse } from 'yaml';
import { renderFleet } from '../../charts/app.ts';
import { readFleet } from '../../charts/fleet.ts';
import { eventually } from '../control-plane/eventually.ts';
import { controlPlane } from '../control-plane/live.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { NODE, ReconcilerProcess } from '../reconcile/process.ts';
import {
  additional,
  eventsAbout,
  furnish,
  GLOBAL,
  inKubeSystem,
  ORIGINAL,
  platform,
  registriesOf,
  STATUS,
  secretOf,
} from '../reconcile/scene.ts';
import { test } from '../support/suite.ts';

const PLATFORM_STATUS = inKubeSystem('PullStatus', 'secret-original-pull-secret', 'pullwright.dev/v1alpha1');
const WORKER: TestObject = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker' } };
/** All is as it should be but for the agent, which no machine runs here. */
const AWAITED = /"reason":"NodesBehind"/;
const RESTORED = platform('quay.io');

const platformText = (text: string): TestObject =>
  secretOf('pull-secret', 'openshift-config', { '.dockerconfigjson': Buffer.from(text).toString('base64') });

const plane = await controlPlane({ crds: ['pullstatuses.pullwright.dev'] });
await furnish(plane, 'quay.io');
// At first the cluster has no pull secret of its own.
await plane.remove(platform('quay.io'));
await plane.apply(additional('tenant.example.com'));
let process = new ReconcilerProcess(NODE, ['--kubeconfig', plane.kubeconfig, '--metrics-port=0']);
const merged = (...registries: string[]): Promise<void> =>
  eventually(async () => assert.deepEqual(registriesOf(await plane.get(GLOBAL)), registries.sort()), {
    withinMs: 60_000,
  });
const says = (about: TestObject, wanted: RegExp): Promise<void> =>
  eventually(async () => assert.match(JSON.stringify((await plane.get(about))?.['status'] ?? {}), wanted));
const label = async (): Promise<unknown> =>
  (await plane.get(WORKER))?.metadata['labels']?.['hypershift.openshift.io/nodepool-globalps-enabled'];

test('where the platform has no pull secret and never had one, nodes get what the tenant adds', async () => {
  await process.says('caches are filled');
  await merged('tenant.example.com');
  assert.equal(await plane.get(ORIGINAL), undefined, 'no copy, which would say that there was one');
  await says(PLATFORM_STATUS, AWAITED);
  await says(STATUS, AWAITED);
  await plane.apply(platform('quay.io'));
  await merged('quay.io', 'tenant.example.com');
  await plane.remove(platform('quay.io'));
  await says(PLATFORM_STATUS, /"reason":"OriginalMissing"/);
  assert.deepEqual(registriesOf(await plane.get(GLOBAL)), ['quay.io', 'tenant.example.com']);
  await plane.apply(platform('quay.io'));
});

test('a bad entry of the platform costs no other credential, and is told to the platform alone', async () => {
  await process.says('caches are filled');
  await merged('quay.io', 'tenant.example.com');
  const text = Buffer.from(String(RESTORED['data']['.dockerconfigjson']), 'base64').toString();
  await plane.apply(platformText(text.replace('{"auths":{', '{"auths":{"bad.example.com":{"auth":"-"},')));
  await says(PLATFORM_STATUS, /"reason":"PlatformEntriesRejected"/);
  assert.deepEqual(registriesOf(await plane.get(ORIGINAL)), ['quay.io']);
  await says(STATUS, AWAITED);
  const told = await eventsAbout(plane, 'additional-pull-secret');
  assert.ok(!told.some((event) => /bad\.example\.com/.test(String(event['note']))));
  await eventually(async () => {
    const events = await eventsAbout(plane, 'pull-secret');
    assert.ok(events.some((event) => /bad\.example\.com/.test(String(event['note']))));
  });
  await plane.apply(RESTORED);
  await says(PLATFORM_STATUS, AWAITED);
});

test('an emptied platform secret takes nothing from nodes before a person confirms it', async () => {
  await plane.apply(platformText('{"auths":{}}'));
  await says(PLATFORM_STATUS, /"type":"RemovalHeld"/);
  assert.deepEqual(registriesOf(await plane.get(ORIGINAL)), ['quay.io']);
  const hash: unknown = (await plane.get(PLATFORM_STATUS))?.['status']?.summary.heldRemoval;
  const metadata = {
    name: 'pull-secret',
    namespace: 'openshift-config',
    annotations: { 'pullwright.dev/confirm-removal': hash },
  };
  await plane.apply({ apiVersion: 'v1', kind: 'Secret', metadata }, 'somebody');
  await eventually(async () => assert.deepEqual(registriesOf(await plane.get(ORIGINAL)), []));
  await plane.apply(RESTORED);
  await merged('quay.io', 'tenant.example.com');
});

test('a node that the Machine Config Operator takes over loses our label, and with no node nothing is Ready', async () => {
  const annotate = (value: string | null): Promise<unknown> =>
    plane.client.request(
      'PATCH',
      '/api/v1/nodes/worker',
      { metadata: { annotations: { 'machineconfiguration.openshift.io/currentConfig': value } } },
      'application/merge-patch+json',
    );
  await eventually(async () => assert.equal(await label(), 'true'));
  await annotate('rendered-worker-1');
  await says(PLATFORM_STATUS, /"reason":"NoEligibleNodes".*openshift-config\/pull-secret/);
  await eventually(async () => assert.equal(await label(), undefined));
  await says(STATUS, /"reason":"NoEligibleNodes"/);
  await annotate(null);
  await eventually(async () => assert.equal(await label(), 'true'));
  await says(STATUS, AWAITED);
});

test('a selector of the fleet takes nodes in by what they are labelled with already, and none of that operator', async () => {
  assert.equal(await process.stop(), 0);
  const nodes = { matchExpressions: [{ key: 'karpenter.sh/nodepool', operator: 'Exists' }] } as const;
  const { tree } = renderFleet(
    readFleet({
      image: 'registry.example.com/pullwright:0.1.0',
      clusters: [{ name: 'prod', delivery: 'reconciler', systems: { 'global-pull-secret': { nodes } } }],
    }),
  );
  const map = parse(tree.get('prod/pullwright-system/configmap-pullwright-reconciler-config.yaml') ?? '') as {
    readonly data: Readonly<Record<string, string>>;
  };
  const config = `${plane.folder}/config.yaml`;
  writeFileSync(config, map.data['config.yaml'] ?? '');
  process = new ReconcilerProcess(NODE, [
    '--kubeconfig',
    plane.kubeconfig,
    '--metrics-port=0',
    `--config=${config}`,
  ]);
  const patched = (metadata: object): Promise<unknown> =>
    plane.client.request('PATCH', '/api/v1/nodes/worker', { metadata }, 'application/merge-patch+json');
  await says(
    PLATFORM_STATUS,
    /"NoEligibleNodes".*set nodes in the fleet to a selector|set nodes in the fleet to a selector.*"NoEligibleNodes"/,
  );
  await eventually(async () => assert.equal(await label(), undefined, 'what was ours comes off'));
  await patched({ labels: { 'karpenter.sh/nodepool': 'general' } });
  await eventually(async () => assert.equal(await label(), 'true'));
  await says(STATUS, AWAITED);
  await patched({
    annotations: { 'machineconfiguration.openshift.io/currentConfig': 'rendered-worker-1' },
  });
  await says(PLATFORM_STATUS, /"reason":"MachineConfigOperator"/);
  await says(PLATFORM_STATUS, /"reason":"NoEligibleNodes".*openshift-config\/pull-secret/);
  await eventually(async () => assert.equal(await label(), undefined));
  await patched({ annotations: { 'machineconfiguration.openshift.io/currentConfig': null } });
  await eventually(async () => assert.equal(await label(), 'true'));
});

test.lastly('nothing secret was logged, and everything stops', async () => {
  assert.equal(process.log.includes('robot'), false);
  assert.equal(await process.stop(), 0);
});
