// deadline: 400 s
// needs: control plane
/** What pods get on a real control plane: of accounts that enforce mountable secrets, and of SidecarSets, their revisions and the Secrets that they bring. */
import assert from 'node:assert/strict';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import {
  namespaceObject,
  postPod,
  readyNamespace,
  reconcilerUser,
  startPlane,
  startReconciler,
} from './live.ts';
import { applySource, conditionOf, secretAt, teamProfile, waiter } from './live-scene.ts';

const INJECTED = 'pullwright.dev/injected-pull-secrets';
const SETS = '/apis/apps.kruise.io/v1beta1/sidecarsets';
const plane = await startPlane();
await applySource(plane);
await readyNamespace(plane, 'shop', { team: 'a' });
await plane.apply(teamProfile());
const reconciler = startReconciler(plane, await reconcilerUser(plane));
const soon = waiter(reconciler);
const containers = [{ name: 'side', image: 'registry.example.com/side:1' }];
await plane.apply(namespaceObject('kruise-system'));

test('a SidecarSet is injecting once a pod came back with its names; one that selects no pods claims nothing', async () => {
  const set = (name: string, namespace: string): TestObject => ({
    ...meta('apps.kruise.io/v1beta1 SidecarSet', { name }),
    spec: {
      selector: { matchLabels: { app: name } },
      namespace,
      imagePullSecrets: [{ name: 'side-pull' }],
      containers,
    },
  });
  await plane.apply(set('side', 'shop'));
  await plane.apply(set('nowhere', 'not-there'));
  await soon(async () => assert.equal(await conditionOf(plane, set('side', ''), 'Ready'), 'True Injecting'));
  await soon(async () =>
    assert.equal(await conditionOf(plane, set('nowhere', ''), 'Ready'), 'Unknown NothingToTry'),
  );
  const made = await postPod(plane, { name: 'with-side', namespace: 'shop', labels: { app: 'side' } });
  assert.ok('pod' in made, JSON.stringify(made));
  const noted = String(made.pod.metadata['annotations']?.[INJECTED]);
  assert.equal(noted, 'profile/team: reg; sidecarset/side: side-pull');
});

test('pods get the revision that a SidecarSet is pinned to, all or those outside its selector, and none of a missing one', async () => {
  await plane.apply({
    ...meta('apps/v1 ControllerRevision', {
      name: 'pinned-1',
      namespace: 'kruise-system',
      labels: { 'kruise.io/sidecarset-name': 'pinned' },
    }),
    revision: 1,
    data: { spec: { imagePullSecrets: [{ name: 'old-pull' }], containers } },
  });
  const pinned = (revision: object | undefined, updateStrategy: object = {}): TestObject => ({
    ...meta('apps.kruise.io/v1beta1 SidecarSet', { name: 'pinned' }),
    spec: {
      selector: { matchLabels: { app: 'pinned' } },
      namespace: 'shop',
      imagePullSecrets: [{ name: 'new-pull' }],
      containers,
      ...(revision === undefined ? {} : { injectionStrategy: { revision } }),
      updateStrategy,
    },
  });
  const given = async (track: string): Promise<unknown> => {
    const labels = { app: 'pinned', track };
    const made = await postPod(plane, {
      name: `pin-${Date.now()}-${track}`,
      namespace: 'shop',
      labels,
    });
    if (!('pod' in made)) return made.refused;
    const names = (made.pod['spec'].imagePullSecrets ?? []) as readonly { name: string }[];
    return names.map(({ name }) => name).filter((name) => name.endsWith('-pull'));
  };
  const old = { revisionName: 'pinned-1' };
  const some = { ...old, policy: 'Partial' };
  const rows: readonly (readonly [set: TestObject, stable: string[], next: string[]])[] = [
    [pinned(old), ['old-pull'], ['old-pull']],
    [pinned(undefined), ['new-pull'], ['new-pull']],
    [pinned(some, { partition: '100%' }), ['old-pull'], ['old-pull']],
    [pinned(some, { selector: { matchLabels: { track: 'next' } } }), ['old-pull'], ['new-pull']],
    [pinned({ revisionName: 'never' }), [], []],
  ];
  for (const [set, stable, next] of rows) {
    await plane.remove(set);
    await plane.apply(set);
    await soon(async () => assert.deepEqual([await given('stable'), await given('next')], [stable, next]));
  }
  await plane.remove(pinned(undefined));
});

// Sets that bring their Secrets.
await plane.apply({
  ...meta('apps/v1 ControllerRevision', {
    name: 'brings-1',
    namespace: 'kruise-system',
    labels: { 'kruise.io/sidecarset-name': 'brings' },
  }),
  revision: 1,
  data: { spec: { imagePullSecrets: [{ name: 'quay' }], containers } },
});
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
const brings = (spec: object): TestObject => ({
  ...meta('apps.kruise.io/v1beta1 SidecarSet', {
    name: 'brings',
    annotations: { 'pullwright.dev/source-namespace': 'platform' },
  }),
  spec: {
    selector: { matchLabels: { app: 'web' } },
    namespaceSelector: { matchLabels: { team: 'a' } },
    containers,
    ...spec,
  },
});
const pinnedTo = (revision: object): TestObject => brings({ injectionStrategy: { revision } });
const copy = secretAt('shop', 'quay');
test('a pinned revision distributes no Secret to an account that may not get it', async () => {
  await eventually(async () => {
    const { status, body } = await nobody.client.request(
      'POST',
      SETS,
      pinnedTo({ revisionName: 'brings-1' }),
    );
    assert.match(`${status} ${body.message}`, /^422 .*may name any Secret, and you cannot get all Secrets/s);
  });
  // One name is not enough: the revision may have any.
  for (const revision of [{ revisionName: 'brings-1' }, { customVersion: 'v1' }]) {
    const { status } = await reader.client.request('POST', SETS, pinnedTo(revision));
    assert.equal(status, 422, JSON.stringify(revision));
  }
  const plain = await reader.client.request('POST', SETS, brings({ imagePullSecrets: [{ name: 'quay' }] }));
  assert.equal(plain.status, 201, 'without a pin the names stand in the set');
  await plane.remove(brings({}));
  const { status, body } = await keeper.client.request('POST', SETS, pinnedTo({ revisionName: 'brings-1' }));
  assert.equal(status, 201, String(body.message));
  await soon(async () => assert.ok(await plane.get(copy)));
});

test.lastly('ends', () => reconciler.stop());
