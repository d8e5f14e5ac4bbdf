// deadline: 300 s
// needs: control plane
/** Distribution where rights are narrow, Secrets are large, Secrets are handed over, and namespaces do not end. */
import assert from 'node:assert/strict';
import { injectionAccess } from '../../charts/pull-secret-injection/access.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import {
  grantObject,
  namespaceObject,
  profileObject,
  sourceObject,
  startPlane,
  startReconciler,
} from './live.ts';
import { applySource, conditionOf, hostsIn, secretAt, waiter } from './live-scene.ts';

const MIB = 1024 * 1024;

const plane = await startPlane();
// Same rights as with `secretNames` in the fleet: writes only for these names.
const user = await plane.user({
  name: 'reconciler',
  by: 'token',
  cluster: injectionAccess({
    admission: 'policy',
    audit: false,
    secretNames: ['reg', 'big'],
  }).flatMap(({ rules }) => rules),
});
await applySource(plane);
await plane.apply(grantObject('platform', ['large']));
const profile = (name: string, label: string, secret: string, source: string): TestObject =>
  profileObject(name, {
    namespaceSelector: { matchLabels: { [label]: 'yes' } },
    selector: {},
    mode: 'Distribute',
    secrets: [{ name: secret, sources: [{ namespace: 'platform', name: source }] }],
  });
const reasonOf = (name: string): Promise<string> => conditionOf(plane, name, 'Ready');
const reconciler = startReconciler(plane, user, { audit: false });
const soon = waiter(reconciler);
await plane.apply(profile('team', 'team', 'reg', 'quay'));

test('rights that name the Secrets suffice: a copy is made, rotated in place, and removed', async () => {
  await plane.apply(namespaceObject('narrow', { team: 'yes' }));
  await soon(async () => assert.deepEqual(await hostsIn(plane, 'narrow'), ['quay.io']));
  const before = await plane.get(secretAt('narrow'));
  await plane.apply(sourceObject('platform', 'quay', ['quay.io', 'second.example']));
  await soon(async () => assert.deepEqual(await hostsIn(plane, 'narrow'), ['quay.io', 'second.example']));
  assert.equal((await plane.get(secretAt('narrow')))?.metadata['uid'], before?.metadata['uid']);
  await plane.apply(namespaceObject('narrow', { team: 'no' }));
  await soon(async () => assert.equal(await plane.get(secretAt('narrow')), undefined));
});

test('a Secret that its owner hands over is taken over in place, guard policy and all', async () => {
  await plane.apply(namespaceObject('handed'));
  const made = await plane.apply(sourceObject('handed', 'reg', ['theirs.example']));
  await plane.apply(namespaceObject('handed', { team: 'yes' }));
  await soon(async () => assert.equal(await reasonOf('team'), 'True BlockedByTenants'));
  assert.deepEqual(await hostsIn(plane, 'handed'), ['theirs.example']);
  const path = '/api/v1/namespaces/handed/secrets/reg';
  const offer = { metadata: { annotations: { 'pullwright.dev/adopt': 'true' } } };
  await plane.client.request('PATCH', path, offer, 'application/merge-patch+json');
  await soon(async () => assert.deepEqual(await hostsIn(plane, 'handed'), ['quay.io', 'second.example']));
  assert.equal((await plane.get(secretAt('handed')))?.metadata['uid'], made.metadata['uid']);
  await soon(async () => assert.equal(await reasonOf('team'), 'True Current'));
});

test('a Secret of almost 1 MiB is brought, and rotated', async () => {
  const hosts = (count: number): string[] =>
    Array.from(
      { length: count },
      (_, at) => `registry-${at}.a-rather-long-domain-name.example.com/with/a/path`,
    );
  const size = (object: TestObject): number =>
    Buffer.from(String(object['data']['.dockerconfigjson']), 'base64').length;
  let count = 5000;
  while (size(sourceObject('platform', 'large', hosts(count + 250))) < MIB) count += 250;
  await plane.apply(sourceObject('platform', 'large', hosts(count - 250)));
  await plane.apply(profile('large', 'large', 'big', 'large'));
  await plane.apply(namespaceObject('wide', { large: 'yes' }));
  await soon(async () => assert.equal((await hostsIn(plane, 'wide', 'big'))?.length, count - 250));
  await plane.apply(sourceObject('platform', 'large', hosts(count)));
  await soon(async () => assert.equal((await hostsIn(plane, 'wide', 'big'))?.length, count));
});

test('a namespace that goes away and does not end: no loop, no flood of errors or events', async () => {
  for (const name of ['stuck', 'marker']) await plane.apply(namespaceObject(name, { team: 'yes' }));
  await soon(async () => assert.ok(await plane.get(secretAt('stuck'))));
  const holder: TestObject = meta('v1 ConfigMap', {
    name: 'holder',
    namespace: 'stuck',
    finalizers: ['example.com/never'],
  });
  await plane.apply(holder);
  await plane.remove(namespaceObject('stuck'));
  await soon(async () => assert.equal(await plane.get(secretAt('stuck')), undefined));
  assert.equal((await plane.get(namespaceObject('stuck')))?.['status']?.phase, 'Terminating');
  const linesAbout = (): number => reconciler.log.split('\n').filter((line) => line.includes('stuck')).length;
  const before = linesAbout();
  // Rotations go past it: each would send the namespace through the queue.
  for (let round = 0; round < 20; round += 1) {
    await plane.apply(sourceObject('platform', 'quay', ['quay.io', `round-${round}.example`]));
    await soon(async () =>
      assert.deepEqual(await hostsIn(plane, 'marker'), ['quay.io', `round-${round}.example`]),
    );
  }
  assert.equal(linesAbout() - before, 0, 'nothing is tried in it');
  await soon(async () => assert.equal(await reasonOf('team'), 'True Current'));
  const { body } = await plane.client.request('GET', '/apis/events.k8s.io/v1/namespaces/default/events');
  const told = (body.items as { regarding?: { name?: string } }[]).filter(
    ({ regarding }) => regarding?.name === 'stuck',
  );
  assert.deepEqual(told, []);
  const release = { metadata: { finalizers: null } };
  const path = '/api/v1/namespaces/stuck/configmaps/holder';
  await plane.client.request('PATCH', path, release, 'application/merge-patch+json');
  await soon(async () => assert.equal(await plane.get(namespaceObject('stuck')), undefined));
});

test.lastly('the reconciler stops', () => reconciler.stop());
