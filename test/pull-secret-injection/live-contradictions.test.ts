// deadline: 400 s
// needs: control plane
/** Options that contradict each other, and two sources for one existing name, on a real API server. */
import assert from 'node:assert/strict';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import {
  grantObject,
  namespaceObject,
  profileObject,
  readyNamespace,
  reconcilerUser,
  sourceObject,
  startPlane,
  startReconciler,
} from './live.ts';
import { conditionOf, hostsIn, messageOf, secretAt, waiter } from './live-scene.ts';

const plane = await startPlane();
const NAMES = ['quay'];
// Kubernetes cannot tell the reconciler what the fleet's secretNames are: what is not in them is refused by the API server.
const account = await reconcilerUser(plane, { secretNames: NAMES });
for (const name of ['platform', 'hub']) await plane.apply(namespaceObject(name));
await readyNamespace(plane, 'shop');
await plane.apply(sourceObject('platform', 'quay', ['quay.io']));
await plane.apply(sourceObject('hub', 'mirror', ['mirror.example']));
await plane.apply(grantObject('platform', ['quay']));
await plane.apply(grantObject('hub', ['mirror']));
const profileOf = (name: string, secretName: string, sources: readonly object[], label: string): TestObject =>
  profileObject(name, {
    namespaceSelector: {
      matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: label.split(' ') }],
    },
    selector: {},
    secrets: [{ name: secretName, sources }],
  });
const quay = { namespace: 'platform', name: 'quay' };
const sources = [quay, { namespace: 'hub', name: 'mirror' }];
await plane.apply(profileOf('both', 'quay', sources, 'platform shop'));
const reconciler = startReconciler(plane, account);
const soon = waiter(reconciler);

test('a name outside of secretNames: the profile says what is refused, and the others go on', async () => {
  await plane.apply(profileOf('outside', 'other', [quay], 'shop'));
  await soon(async () =>
    assert.equal(await conditionOf(plane, 'outside', 'Ready'), 'False Forbidden', reconciler.log),
  );
  assert.equal(await conditionOf(plane, 'outside', 'WritesAccepted'), 'False Forbidden');
  assert.match(await messageOf(plane, 'outside', 'Ready'), /"Secret\/shop\/other".*\(1 of 1 namespace\)/);
  assert.equal(await hostsIn(plane, 'shop', 'other'), undefined);
  await plane.apply(sourceObject('platform', 'quay', ['quay.io', 'second.example']));
  await soon(async () =>
    assert.deepEqual(await hostsIn(plane, 'shop', 'quay'), ['mirror.example', 'quay.io', 'second.example']),
  );
  // An accepted profile hides no other fault: it reports its deleted source.
  const gone = { namespace: 'hub', name: 'gone' };
  await plane.apply(profileOf('outside', 'other', [gone], 'shop'));
  await soon(async () => assert.equal(await conditionOf(plane, 'outside', 'Ready'), 'False SourceMissing'));
  assert.equal(await conditionOf(plane, 'outside', 'WritesAccepted'), 'True AsWanted');
  await plane.remove(profileObject('outside', {}));
});

test('a quota in one namespace: its owner is told, the profile is not stalled, and the copy comes when there is room', async () => {
  const quota: TestObject = {
    ...meta('v1 ResourceQuota', { name: 'none', namespace: 'full' }),
    spec: { hard: { 'count/secrets': '0' } },
  };
  await plane.apply(namespaceObject('full'));
  await plane.apply(quota);
  // The quota counts once its controller has looked.
  await soon(async () => assert.equal((await plane.get(quota))?.['status']?.hard?.['count/secrets'], '0'));
  await plane.apply(profileOf('both', 'quay', sources, 'shop full'));
  await soon(async () =>
    assert.equal(await conditionOf(plane, 'both', 'Ready'), 'True BlockedByTenants', reconciler.log),
  );
  assert.equal(await conditionOf(plane, 'both', 'TargetsFree'), 'False QuotaExceeded');
  await soon(async () => {
    const path = '/apis/pullwright.dev/v1alpha1/namespaces/full/pullstatuses';
    const { body } = await plane.client.request('GET', path);
    assert.match(JSON.stringify(body.items), /QuotaExceeded/);
  });
  await plane.remove(quota);
  await eventually(
    async () => assert.deepEqual(await hostsIn(plane, 'full', 'quay'), await hostsIn(plane, 'shop', 'quay')),
    { withinMs: 150_000 },
  );
  await soon(async () => assert.equal(await conditionOf(plane, 'both', 'Ready'), 'True Current'));
});

test('a Secret of another type with our mark is left to the tenant that made it', async () => {
  const mark = { 'pullwright.dev/owner': 'pull-secret-injection' };
  const metadata = { name: 'quay', namespace: 'marked', labels: mark };
  await readyNamespace(plane, 'marked');
  await plane.apply({ apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque' });
  const uid = (await plane.get(secretAt('marked', 'quay')))?.metadata['uid'];
  await plane.apply(profileOf('both', 'quay', sources, 'shop marked'));
  await soon(async () =>
    assert.equal(await conditionOf(plane, 'both', 'TargetsFree'), 'False ForeignObject', reconciler.log),
  );
  // `Ready` waits until a pod was tried.
  await soon(async () => assert.equal(await conditionOf(plane, 'both', 'Ready'), 'True BlockedByTenants'));
  assert.equal((await plane.get(secretAt('marked', 'quay')))?.metadata['uid'], uid);
  await plane.apply(profileOf('both', 'quay', sources, 'shop'));
});

test.lastly('the rest stops', () => reconciler.stop());
