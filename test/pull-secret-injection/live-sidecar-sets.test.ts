// deadline: 120 s
/** SidecarSets that bring Secrets, on a real control plane: who may have what is brought, and what is said when it is taken back. */
import assert from 'node:assert/strict';
import { missingControlPlane } from '../control-plane/build.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { suite } from '../support/suite.ts';
import {
  grantObject,
  namespaceObject,
  readyNamespace,
  reconcilerUser,
  sourceObject,
  startPlane,
  startReconciler,
} from './live.ts';
import { conditionOf, secretAt, waiter } from './live-scene.ts';

const test = suite('SidecarSets that bring Secrets');
const missing = missingControlPlane();
const SETS = '/apis/apps.kruise.io/v1beta1/sidecarsets';

if (missing !== undefined) test.skip('all of it', missing);
else {
  const plane = await startPlane();
  await Promise.all(['platform', 'kruise-system'].map((name) => plane.apply(namespaceObject(name))));
  await readyNamespace(plane, 'shop', { team: 'a' });
  const containers = [{ name: 'side', image: 'registry.example.com/side:1' }];
  await plane.apply({
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name: 'side-1',
      namespace: 'kruise-system',
      labels: { 'kruise.io/sidecarset-name': 'side' },
    },
    revision: 1,
    data: { spec: { imagePullSecrets: [{ name: 'quay' }], containers } },
  });
  await plane.apply(sourceObject('platform', 'quay', ['quay.io']));
  const grant = grantObject('platform', ['quay'], ['shop']);
  await plane.apply(grant);
  const author = (name: string, namespaces: Parameters<typeof plane.user>[0]['namespaces'] = {}) =>
    plane.user({
      name,
      cluster: [{ apiGroups: ['apps.kruise.io'], resources: ['sidecarsets'], verbs: ['*'] }],
      namespaces,
    });
  const get = { apiGroups: [''], resources: ['secrets'], verbs: ['get'] };
  const [nobody, reader, keeper] = await Promise.all([
    author('nobody'),
    author('reader', { platform: [{ ...get, resourceNames: ['quay'] }] }),
    author('keeper', { platform: [get] }),
  ]);
  const set = (spec: object): TestObject => ({
    apiVersion: 'apps.kruise.io/v1beta1',
    kind: 'SidecarSet',
    metadata: { name: 'side', annotations: { 'pullwright.dev/source-namespace': 'platform' } },
    spec: {
      selector: { matchLabels: { app: 'web' } },
      namespaceSelector: { matchLabels: { team: 'a' } },
      containers,
      ...spec,
    },
  });
  const pinned = (revision: object): TestObject => set({ injectionStrategy: { revision } });
  const reconciler = startReconciler(plane, await reconcilerUser(plane));
  const soon = waiter(reconciler);
  const copy = secretAt('shop', 'quay');
  const ready = (): Promise<string> => conditionOf(plane, set({}), 'Ready');

  test('nobody has a Secret brought through a pinned revision without being allowed to get it', async () => {
    await eventually(async () => {
      const { status, body } = await nobody.client.request('POST', SETS, pinned({ revisionName: 'side-1' }));
      assert.match(
        `${status} ${body.message}`,
        /^422 .*may name any Secret, and you may not get all Secrets/s,
      );
    });
    // One name is not enough: the revision may have any.
    for (const revision of [{ revisionName: 'side-1' }, { customVersion: 'v1' }]) {
      const { status } = await reader.client.request('POST', SETS, pinned(revision));
      assert.equal(status, 422, JSON.stringify(revision));
    }
    const plain = await reader.client.request('POST', SETS, set({ imagePullSecrets: [{ name: 'quay' }] }));
    assert.equal(plain.status, 201, 'without a pin the names stand in the set');
    await plane.remove(set({}));
    const { status, body } = await keeper.client.request('POST', SETS, pinned({ revisionName: 'side-1' }));
    assert.equal(status, 201, String(body.message));
    await soon(async () => assert.ok(await plane.get(copy)));
  });

  test('what the owner of the source takes back goes, and the set says why', async () => {
    await soon(async () => assert.equal(await ready(), 'True Injecting'));
    await plane.remove(grant);
    await soon(async () => assert.equal(await plane.get(copy), undefined));
    await soon(async () => assert.equal(await ready(), 'False NotGranted'));
    await soon(async () => {
      const { stdout } = await plane.kubectl('get', 'events', '--all-namespaces');
      assert.match(stdout, /NotGranted +sidecarset\/side/);
    });
    await plane.apply(grant);
    await soon(async () => assert.equal(await ready(), 'True Injecting'));
  });

  test.lastly('ends', async () => {
    await reconciler.stop();
    await plane.stop();
  });
}

test.run();
