// deadline: 300 s
// needs: control plane
/** Distribution and injection on a real control plane, by the reconciler process with the rights that the charts render. */
import assert from 'node:assert/strict';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import {
  createPod,
  grantObject,
  namespaceObject,
  readyNamespace,
  reconcilerUser,
  sourceObject,
  startPlane,
  startReconciler,
} from './live.ts';
import { conditionOf, hostsIn, messageOf, secretAt, teamProfile, waiter } from './live-scene.ts';

const plane = await startPlane();
const user = await reconcilerUser(plane);
await plane.apply(namespaceObject('platform'));
await Promise.all([readyNamespace(plane, 'shop', { team: 'a' }), readyNamespace(plane, 'other')]);
const reconciler = startReconciler(plane, user);

const soon = waiter(reconciler);
const copy = secretAt('shop');
const team = teamProfile();
const readyReason = (name: string): Promise<string> => conditionOf(plane, name, 'Ready');
test('the walk: a profile, a namespace, a pod, and what kubectl shows', async () => {
  await plane.apply(sourceObject('platform', 'quay', ['quay.io']));
  await plane.apply(grantObject('platform', ['quay']));
  await plane.apply(team);
  await soon(async () => assert.deepEqual(await hostsIn(plane, 'shop'), ['quay.io']));
  await soon(async () => assert.equal(await readyReason('team'), 'True Current'));
  // A server lists a new kind in its discovery a moment after it serves it.
  await soon(async () => {
    const shown = await plane.kubectl('get', 'pullcreds');
    assert.match(shown.stdout, /team\s+InjectAndDistribute\s+1\/1\s+True\s+Current/);
  });
  await soon(async () => {
    const created = await createPod(plane, {
      name: `walk-${Date.now()}`,
      namespace: 'shop',
      own: ['mine'],
    });
    assert.deepEqual(created, { names: ['mine', 'reg'] });
  });
  assert.deepEqual(await createPod(plane, { name: 'not-selected', namespace: 'other' }), { names: [] });
});

test('a rotation changes the copy in place; what was edited is put back', async () => {
  const before = await plane.get(copy);
  await plane.apply(sourceObject('platform', 'quay', ['quay.io', 'second.example']));
  await soon(async () => assert.deepEqual(await hostsIn(plane, 'shop'), ['quay.io', 'second.example']));
  assert.equal((await plane.get(copy))?.metadata['uid'], before?.metadata['uid']);
  await plane.client.request(
    'PATCH',
    '/api/v1/namespaces/shop/secrets/reg',
    { data: { '.dockerconfigjson': 'e30=' } },
    'application/merge-patch+json',
  );
  await soon(async () => assert.deepEqual(await hostsIn(plane, 'shop'), ['quay.io', 'second.example']));
});

test('a new namespace is served, and deleted without waiting for anybody', async () => {
  await plane.apply(namespaceObject('fresh', { team: 'a' }));
  await soon(async () => assert.deepEqual(await hostsIn(plane, 'fresh'), ['quay.io', 'second.example']));
  await plane.remove(namespaceObject('fresh'));
  await soon(async () => assert.equal(await plane.get(namespaceObject('fresh')), undefined));
});

test('namespaces that come and go in a storm: who stays has the copy, of 64 KiB as well', async () => {
  const hosts = Array.from(
    { length: 700 },
    (_, at) => `registry-${at}.a-rather-long-domain-name.example.com`,
  );
  await plane.apply(sourceObject('platform', 'quay', hosts));
  const names = Array.from({ length: 60 }, (_, at) => `storm-${at}`);
  await Promise.all(
    names.map(async (name, at) => {
      await plane.client.request('POST', '/api/v1/namespaces', namespaceObject(name, { team: 'a' }));
      if (at % 2 === 1) await plane.remove(namespaceObject(name));
    }),
  );
  for (const name of names.filter((_, at) => at % 2 === 0))
    await soon(async () => assert.equal((await hostsIn(plane, name))?.length, 700));
  await soon(async () => assert.equal(await readyReason('team'), 'True Current'));
});

test('a slip in the selector takes nothing away from many before its annotation confirms it', async () => {
  const slip = teamProfile({ namespaceSelector: { matchLabels: { team: 'x' } } });
  await plane.apply(slip);
  await soon(async () =>
    assert.match(await messageOf(plane, 'team', 'RemovalHeld'), /^removes (\d+) of \1 copies: "/),
  );
  assert.ok(await plane.get(copy));
  const held = '--field-selector=reason=RemovalHeld';
  const shown = await plane.kubectl('get', 'events', '--all-namespaces', held);
  assert.match(shown.stdout, /pullsecretprofile\/team/);
  const hash = String((await plane.get(team))?.['status']?.heldRemoval);
  const annotations = { 'pullwright.dev/confirm-removal': hash };
  await plane.apply({ ...slip, metadata: { ...slip.metadata, annotations } });
  await soon(async () => assert.equal(await plane.get(copy), undefined));
  await plane.apply(team);
  await soon(async () => assert.ok(await plane.get(copy)));
});

test('with the profile gone its copies and the policy go', async () => {
  await plane.remove(team);
  await soon(async () => assert.equal(await plane.get(copy), undefined));
  const policy = meta('admissionregistration.k8s.io/v1 MutatingAdmissionPolicy', {
    name: 'pullwright-pull-secret-injection',
  });
  await soon(async () => assert.equal(await plane.get(policy), undefined));
});

test.lastly('the reconciler stops in order, having been refused nothing', async () => {
  await reconciler.stop();
  // Into a namespace that began to go away a moment ago nothing may be written; that is no want of rights.
  const refused = reconciler.log.split('\n').filter((line) => /orbidden/.test(line) && !/storm-/.test(line));
  assert.deepEqual(refused, []);
  assert.equal(reconciler.process.exitCode, 0);
});
