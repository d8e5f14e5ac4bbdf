// deadline: 120 s
// needs: control plane
/** Who may have what distributed, and what the reconciler's account may write: the admission policies on a real API server. */
import assert from 'node:assert/strict';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { namespaceObject, podObject, profileObject, sourceObject, startPlane } from './live.ts';

const plane = await startPlane();
await Promise.all(['one', 'two'].map((name) => plane.apply(namespaceObject(name))));

const consent = async (body: TestObject, as: 'admin' | 'reader'): Promise<string> => {
  const user = as === 'admin' ? admin : reader;
  const { status, body: answer } = await user.client.request(
    'POST',
    '/apis/pullwright.dev/v1alpha1/pullsecretprofiles',
    body,
  );
  return status === 201 ? 'created' : String(answer.message);
};
const profiles = {
  apiGroups: ['pullwright.dev', 'apps.kruise.io'],
  resources: ['pullsecretprofiles', 'sidecarsets'],
  verbs: ['*'],
};
const everything = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];
// An administrator of one namespace, who may also write profiles but reads no Secret of the platform.
const admin = await plane.user({
  name: 'tenant',
  by: 'token',
  cluster: [profiles],
  namespaces: { two: everything },
});
const reader = await plane.user({
  name: 'reader',
  cluster: [profiles],
  namespaces: {
    one: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'], resourceNames: ['shared'] }],
  },
});

test('who may not read a Secret cannot have it distributed', async () => {
  const steal = (name: string, sources: readonly object[]): TestObject =>
    profileObject(name, {
      namespaceSelector: {},
      selector: {},
      secrets: [{ name: `of-${name}`, sources }],
    });
  const theirs = { namespace: 'one', name: 'shared' };
  const mine = { namespace: 'two', name: 'mine' };
  await eventually(async () =>
    assert.equal(await consent(steal(`own-${Date.now()}`, [mine]), 'admin'), 'created'),
  );
  assert.match(
    await consent(steal('steal', [theirs]), 'admin'),
    /you cannot get Secret "one\/shared" of spec\.secrets\[0\]\.sources\[0\]/,
  );
  assert.match(await consent(steal('steal', [mine, theirs]), 'admin'), /you cannot get Secret "one\/shared"/);
  assert.equal(await consent(steal('shared', [theirs]), 'reader'), 'created');
  const patch = (spec: object): Promise<{ status: number }> =>
    admin.client.request(
      'PATCH',
      '/apis/pullwright.dev/v1alpha1/pullsecretprofiles/shared',
      { spec },
      'application/merge-patch+json',
    );
  assert.equal(
    (await patch({ namespaceSelector: { matchLabels: { team: 'a' } }, selector: {} })).status,
    422,
    'nor redirected to oneself',
  );
  const sixteen = Array.from({ length: 8 }, (_, at) => ({ namespace: 'two', name: `s${at}` }));
  const wide = profileObject('wide', {
    namespaceSelector: {},
    selector: {},
    secrets: [
      { name: 'a', sources: sixteen },
      { name: 'b', sources: sixteen },
    ],
  });
  assert.equal(
    await consent(wide, 'admin'),
    'created',
    'the largest profile stays within the budget of checks',
  );
});

test('nor by a SidecarSet that names their namespace as its source', async () => {
  const set = (name: string, namespace: string, secret: string): object => ({
    ...meta('apps.kruise.io/v1beta1 SidecarSet', {
      name,
      annotations: { 'pullwright.dev/source-namespace': namespace },
    }),
    spec: { selector: { matchLabels: { a: 'b' } }, imagePullSecrets: [{ name: secret }] },
  });
  const path = '/apis/apps.kruise.io/v1beta1/sidecarsets';
  const refused = await admin.client.request('POST', path, set('steal', 'one', 'shared'));
  assert.equal(refused.status, 422);
  assert.match(String(refused.body.message), /you cannot get Secret "one\/shared"/);
  assert.equal((await admin.client.request('POST', path, set('mine', 'two', 'mine'))).status, 201);
  const { metadata: _, ...plain } = set('plain', 'one', 'shared') as { metadata: object };
  const left = await admin.client.request('POST', path, { ...plain, metadata: { name: 'plain' } });
  assert.equal(left.status, 201, 'without the annotation it is only matched');
  const annotations = { 'pullwright.dev/source-namespace': 'one' };
  const merge = 'application/merge-patch+json';
  const later = await admin.client.request('PATCH', `${path}/plain`, { metadata: { annotations } }, merge);
  assert.equal(later.status, 422, 'nor given one later');
});

test("the reconciler's account can write nothing but copies", async () => {
  const account = await plane.user({
    name: 'reconciler',
    by: 'token',
    cluster: [{ apiGroups: [''], resources: ['secrets'], verbs: ['*'] }],
  });
  const path = '/api/v1/namespaces/one/secrets';
  const foreign = sourceObject('one', 'foreign', ['a.example']);
  await plane.apply(foreign);
  const owned = {
    ...foreign,
    metadata: {
      name: 'mine',
      namespace: 'one',
      labels: { 'pullwright.dev/owner': 'pull-secret-injection' },
    },
  };
  await eventually(async () => assert.equal((await account.client.request('GET', path)).status, 200));
  assert.equal(
    (await account.client.request('POST', path, { ...foreign, metadata: { name: 'plain' } })).status,
    422,
  );
  const label = { metadata: { labels: { 'pullwright.dev/owner': 'pull-secret-injection' } } };
  const merge = 'application/merge-patch+json';
  assert.equal((await account.client.request('PATCH', `${path}/foreign`, label, merge)).status, 422);
  assert.equal((await account.client.request('DELETE', `${path}/foreign`)).status, 422);
  assert.equal((await account.client.request('POST', path, owned)).status, 201);
  assert.equal((await account.client.request('DELETE', `${path}/mine`)).status, 200);
});

test("the reconciler's account creates pods only in dry runs", async () => {
  const account = await plane.user({
    name: 'reconciler',
    by: 'token',
    cluster: [{ apiGroups: [''], resources: ['secrets', 'pods'], verbs: ['*'] }],
  });
  const path = '/api/v1/namespaces/one/pods';
  const pod = podObject({ name: 'probe', namespace: 'one' });
  await eventually(async () =>
    assert.equal((await account.client.request('POST', `${path}?dryRun=All`, pod)).status, 201),
  );
  assert.equal((await account.client.request('POST', path, pod)).status, 422);
});
