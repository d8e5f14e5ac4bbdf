// deadline: 240 s
// needs: control plane
/** Distribution that was handed to others, on a real control plane: two tenants and an author of profiles, each with an account. */
import assert from 'node:assert/strict';
import { aggregatedRoles } from '../../charts/pull-secret-injection/access.ts';
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
import { conditionOf, hostsIn, secretAt, waiter } from './live-scene.ts';

const PROFILES = '/apis/pullwright.dev/v1alpha1/pullsecretprofiles';
const GRANTS = '/apis/pullwright.dev/v1alpha1/namespaces/platform/pullsecretgrants';
const plane = await startPlane();
await Promise.all(['platform', 'author'].map((name) => plane.apply(namespaceObject(name))));
await Promise.all([
  readyNamespace(plane, 'red', { team: 'a' }),
  readyNamespace(plane, 'blue', { team: 'a' }),
]);
const everything = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];
const [author, red] = await Promise.all([
  plane.user({
    name: 'author',
    by: 'token',
    cluster: [{ apiGroups: ['pullwright.dev'], resources: ['pullsecretprofiles'], verbs: ['*'] }],
    namespaces: { author: everything },
  }),
  plane.user({
    name: 'red',
    by: 'token',
    namespaces: {
      red: everything,
      platform: [{ apiGroups: ['pullwright.dev'], resources: ['pullsecretgrants'], verbs: ['*'] }],
    },
  }),
]);
const reconciler = startReconciler(plane, await reconcilerUser(plane));

const soon = waiter(reconciler);
const reasonOf = (name: string): Promise<string> => conditionOf(plane, name, 'Ready');
const teams = { namespaceSelector: { matchLabels: { team: 'a' } }, selector: {} };
const from = (namespace: string, name: string): object => ({
  secrets: [{ name: 'reg', sources: [{ namespace, name }] }],
});
const quay = sourceObject('platform', 'quay', ['quay.io']);
const grant: TestObject = {
  ...meta('pullwright.dev/v1alpha1 PullSecretGrant', { name: 'teams', namespace: 'platform' }),
  spec: { secrets: [{ name: 'quay' }], profiles: [{ name: 'platform' }], namespaces: ['red', 'blue'] },
};

test('a grant of its own gives, and survives the Secret', async () => {
  await plane.apply(quay);
  await plane.apply(profileObject('platform', { ...teams, ...from('platform', 'quay') }));
  await soon(async () => assert.equal(await reasonOf('platform'), 'False NotGranted'));
  await plane.apply(grant);
  for (const name of ['red', 'blue'])
    await soon(async () => assert.deepEqual(await hostsIn(plane, name), ['quay.io']));
  const uid = (await plane.get(secretAt('red')))?.metadata['uid'];
  await plane.remove(quay);
  await soon(async () => assert.equal(await reasonOf('platform'), 'False SourceMissing'));
  await plane.apply(sourceObject('platform', 'quay', ['new.example']));
  await soon(async () => assert.deepEqual(await hostsIn(plane, 'red'), ['new.example']));
  assert.equal((await plane.get(secretAt('red')))?.metadata['uid'], uid);
  await soon(async () => assert.equal(await reasonOf('platform'), 'True Current'));
});

test('who may not read a Secret cannot give it away', async () => {
  const { status, body } = await red.client.request('POST', GRANTS, {
    ...grant,
    metadata: { name: 'mine', namespace: 'platform' },
  });
  assert.equal(status, 422);
  assert.match(String(body.message), /you cannot get Secret "platform\/quay"/);
});

test('an author cannot take the name: refused at once where it can be seen', async () => {
  await plane.apply(sourceObject('author', 'mine', ['evil.example']));
  await plane.apply(grantObject('author', ['mine']));
  const rival = profileObject('rival', {
    ...from('author', 'mine'),
    namespaceSelector: {},
    selector: {},
    order: -1_000_000,
  });
  await eventually(async () => {
    const { status, body } = await author.client.request('POST', `${PROFILES}?dryRun=All`, rival);
    assert.equal(status, 422, JSON.stringify(body));
    assert.match(String(body.message), /profile "platform" delivers a different Secret "reg"/);
  });
});

test('who administers a namespace reads what is addressed to it, and gives consent for its own Secrets', async () => {
  for (const role of aggregatedRoles()) await plane.apply(role);
  const blue = await plane.user({ name: 'blue', by: 'token' });
  await plane.apply({
    ...meta('rbac.authorization.k8s.io/v1 RoleBinding', { name: 'admin', namespace: 'blue' }),
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' },
    subjects: [{ kind: 'ServiceAccount', namespace: 'kube-system', name: 'blue' }],
  });
  const path = '/apis/pullwright.dev/v1alpha1/namespaces/blue';
  await soon(async () =>
    assert.equal((await blue.client.request('GET', `${path}/pullstatuses`)).status, 200),
  );
  const own = { ...grant, metadata: { name: 'mine', namespace: 'blue' } };
  await soon(async () =>
    assert.equal((await blue.client.request('POST', `${path}/pullsecretgrants`, own)).status, 201),
  );
  const theirs = '/apis/pullwright.dev/v1alpha1/namespaces/red/pullstatuses';
  assert.equal((await blue.client.request('GET', theirs)).status, 403);
});

test.lastly('the reconciler stops in order, having been refused nothing', async () => {
  await reconciler.stop();
  assert.doesNotMatch(reconciler.log, /orbidden|ReconcilerThrew/);
});
