// deadline: 300 s
// needs: control plane
/** Distribution and injection on a real control plane, by the reconciler process with the rights that the charts render. */
import assert from 'node:assert/strict';
import type { TestObject } from '../control-plane/resource-path.ts';
import { test } from '../support/suite.ts';
import {
  createPod,
  grantObject,
  namespaceObject,
  profileObject,
  readyNamespace,
  reconcilerUser,
  sourceObject,
  startPlane,
  startReconciler,
} from './live.ts';
import { conditionOf, hostsIn, secretAt, teamProfile, waiter } from './live-scene.ts';

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

test('a new namespace is served', async () => {
  await plane.apply(namespaceObject('fresh', { team: 'a' }));
  await soon(async () => assert.deepEqual(await hostsIn(plane, 'fresh'), ['quay.io']));
});

test('a namespace opts out, at first or later; those of the cluster are left alone unless they are named', async () => {
  const out = { team: 'a', 'pullwright.dev/distribute': 'false' };
  await plane.apply(namespaceObject('out', out));
  await plane.apply(namespaceObject('kube-system', { team: 'a' }));
  await plane.apply(namespaceObject('later', { team: 'a' }));
  // It came last, and each of the others has a key of its own that came before.
  await soon(async () => assert.deepEqual(await hostsIn(plane, 'later'), ['quay.io']));
  for (const name of ['out', 'kube-system']) assert.equal(await plane.get(secretAt(name)), undefined, name);
  await plane.apply(namespaceObject('later', out));
  await soon(async () => assert.equal(await plane.get(secretAt('later')), undefined));
  for (const name of ['out', 'kube-system']) assert.equal(await plane.get(secretAt(name)), undefined, name);
  for (const name of ['out', 'later']) await plane.remove(namespaceObject(name));
  await plane.apply(namespaceObject('kube-system'));
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

test('a poisoned source is not distributed: the last good copy stays, and the profile says why', async () => {
  const poison = sourceObject('platform', 'quay', []);
  const body = Buffer.from('{"auths":{"quay.io":{"auth":"!!"}}}').toString('base64');
  await plane.apply({ ...poison, data: { '.dockerconfigjson': body } });
  await soon(async () => assert.equal(await readyReason('team'), 'False SourceInvalid'));
  assert.deepEqual(await hostsIn(plane, 'shop'), ['quay.io', 'second.example']);
  await plane.remove(poison);
  await soon(async () => assert.equal(await readyReason('team'), 'False SourceMissing'));
  assert.deepEqual(await hostsIn(plane, 'shop'), ['quay.io', 'second.example']);
  await plane.apply(sourceObject('platform', 'quay', ['quay.io']));
  await soon(async () => assert.equal(await readyReason('team'), 'True Current'));
});

for (const type of ['kubernetes.io/dockerconfigjson', 'Opaque'])
  test(`a foreign Secret of type ${type} is not touched, and the profile says so`, async () => {
    const namespace = `foreign-${type.length}`;
    await plane.apply(namespaceObject(namespace));
    const foreign = { ...sourceObject(namespace, 'reg', ['theirs.example']), type };
    // As people make Secrets: the type left out when it is the default one, so that nobody claims the field.
    const { type: _default, ...untyped } = foreign;
    const body = type === 'Opaque' ? { ...untyped, data: { token: 'eA==' } } : foreign;
    const posted = await plane.client.request('POST', `/api/v1/namespaces/${namespace}/secrets`, body);
    const made = posted.body as TestObject;
    await plane.apply(namespaceObject(namespace, { team: 'a' }));
    // Also one of another type, which is not watched: the API server tells of it.
    await soon(async () => assert.equal(await readyReason('team'), 'True BlockedByTenants'));
    await soon(async () => {
      const told = await plane.kubectl(
        'get',
        'pullstatus',
        '-n',
        namespace,
        '-o',
        'jsonpath={.items[*].status.verdicts[*].reason}',
      );
      assert.equal(told.stdout, 'ForeignObject');
    });
    assert.equal((await plane.get(foreign))?.metadata['resourceVersion'], made.metadata['resourceVersion']);
    await plane.remove(namespaceObject(namespace));
    await soon(async () => assert.equal(await readyReason('team'), 'True Current'));
  });

test('a withdrawn grant removes the copies', async () => {
  await plane.apply(grantObject('platform', ['quay'], ['fresh']));
  await soon(async () => assert.equal(await plane.get(copy), undefined));
  assert.deepEqual(await hostsIn(plane, 'fresh'), ['quay.io']);
  await plane.apply(grantObject('platform', ['quay']));
  await soon(async () => assert.deepEqual(await hostsIn(plane, 'shop'), ['quay.io']));
});

test('a namespace is deleted without waiting for anybody', async () => {
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
  assert.doesNotMatch(reconciler.log(), /ReconcilerThrew/);
});

test('when nothing changes, nothing is written', async () => {
  const versions = async (): Promise<unknown[]> =>
    Promise.all(
      [copy, profileObject('team', {})].map(
        async (ref) => (await plane.get(ref))?.metadata['resourceVersion'],
      ),
    );
  await soon(async () => assert.equal(await readyReason('team'), 'True Current'));
  const before = await versions();
  await plane.apply({ ...namespaceObject('shop', { team: 'a', touched: 'yes' }) });
  await plane.apply(namespaceObject('marker', { team: 'a' }));
  await soon(async () => assert.ok((await plane.get(secretAt('marker'))) !== undefined));
  assert.equal((await versions())[0], before[0]);
});

test('with the profile gone its copies and the policy go', async () => {
  await plane.remove(team);
  await soon(async () => assert.equal(await plane.get(copy), undefined));
  const policy = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingAdmissionPolicy',
    metadata: { name: 'pullwright-pull-secret-injection' },
  };
  await soon(async () => assert.equal(await plane.get(policy), undefined));
});

test.lastly('the reconciler stops in order, having been refused nothing', async () => {
  await reconciler.stop();
  // Into a namespace that began to go away a moment ago nothing may be written; that is no want of rights.
  const refused = reconciler
    .log()
    .split('\n')
    .filter((line) => /orbidden/.test(line) && !/storm-/.test(line));
  assert.deepEqual(refused, []);
  assert.equal(reconciler.process.exitCode, 0);
});
