// deadline: 240 s
// needs: control plane
/** What takes copies away, on a real control plane: many at once wait for a word, and go when it is said. */
import assert from 'node:assert/strict';
import { eventually } from '../control-plane/eventually.ts';
import { test } from '../support/suite.ts';
import {
  grantObject,
  namespaceObject,
  profileObject,
  reconcilerUser,
  sourceObject,
  startPlane,
  startReconciler,
} from './live.ts';
import { applySource, conditionOf, waiter } from './live-scene.ts';

const TEAM = '/apis/pullwright.dev/v1alpha1/pullsecretprofiles/team';
const MERGE = 'application/merge-patch+json';
const MANY = 12;

const plane = await startPlane();
await applySource(plane);
for (let at = 0; at < MANY; at += 1) await plane.apply(namespaceObject(`team-${at}`, { team: 'a' }));
const reconciler = startReconciler(plane, await reconcilerUser(plane));

const soon = waiter(reconciler);
const copiesLeft = async (): Promise<number> => {
  const path = '/api/v1/secrets?labelSelector=pullwright.dev/owner=pull-secret-injection';
  const { body } = await plane.client.request('GET', path);
  return (body.items as readonly unknown[]).length;
};
const statusOf = async (): Promise<Record<string, string> & { conditions: Record<string, string>[] }> =>
  (await plane.get(profileObject('team', {})))?.['status'];
const held = async (): Promise<string | undefined> =>
  (await statusOf()).conditions.find(({ type }) => type === 'RemovalHeld')?.['message'];
const patch = async (body: object): Promise<void> => {
  const { status } = await plane.client.request('PATCH', TEAM, body, MERGE);
  assert.equal(status, 200);
};
const mistake = { namespaceSelector: { matchLabels: { team: 'x' } } };

test('a slip in the selector takes nothing away, and is said', async () => {
  const secrets = [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }];
  await plane.apply(
    profileObject('team', {
      namespaceSelector: { matchLabels: { team: 'a' } },
      mode: 'Distribute',
      secrets,
    }),
  );
  await soon(async () => assert.equal(await copiesLeft(), MANY));
  await patch({ spec: mistake });
  await soon(async () => assert.match((await held()) ?? '', /^removes 12 of 12 copies: "team-0\/reg"/));
  assert.equal(await copiesLeft(), MANY);
  const shown = await plane.kubectl(
    'get',
    'events',
    '--all-namespaces',
    '--field-selector=reason=RemovalHeld',
  );
  assert.match(shown.stdout, /pullsecretprofile\/team/);
});

test('with the selector put back nothing is held any more', async () => {
  await patch({ spec: { namespaceSelector: { matchLabels: { team: 'a' } } } });
  await soon(async () => assert.equal(await held(), undefined));
  assert.equal(await copiesLeft(), MANY);
});

test('the annotation of the last removal does not confirm the next one; its own does', async () => {
  await patch({ spec: mistake });
  await soon(async () => assert.ok((await held()) !== undefined));
  const annotate = (hash: string): Promise<void> =>
    patch({ metadata: { annotations: { 'pullwright.dev/confirm-removal': hash } } });
  await annotate('0123456789ab');
  await soon(async () => assert.ok((await held()) !== undefined));
  assert.equal(await copiesLeft(), MANY);
  await annotate((await statusOf())['heldRemoval'] ?? '');
  await soon(async () => assert.equal(await copiesLeft(), 0));
  await soon(async () => assert.equal((await statusOf())['heldRemoval'] ?? '', ''));
});

test('a deleted profile takes its copies along', async () => {
  await patch({ spec: { namespaceSelector: { matchLabels: { team: 'a' } } } });
  await soon(async () => assert.equal(await copiesLeft(), MANY));
  await plane.remove(profileObject('team', {}));
  await soon(async () => assert.equal(await copiesLeft(), 0));
});

test('copies carry the labels of the profile, and go some time after their source where it says so', async () => {
  const secrets = [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }];
  const copies = { labels: { tier: 'gold' }, onSourceDeleted: 'Remove', removeAfter: '2s' };
  const spec = { namespaceSelector: { matchLabels: { team: 'a' } }, mode: 'Distribute', secrets, copies };
  const bad = { ...spec, copies: { labels: { 'pullwright.dev/owner': 'me' } } };
  const refused = await plane.client.request(
    'POST',
    '/apis/pullwright.dev/v1alpha1/pullsecretprofiles',
    profileObject('bad', bad),
  );
  assert.match(String(refused.body.message), /keys of pullwright\.dev\/.* are reserved/);
  await plane.apply(profileObject('team', spec));
  const gold = '/api/v1/secrets?labelSelector=tier=gold';
  await soon(async () => assert.equal((await plane.client.request('GET', gold)).body.items.length, MANY));
  await plane.remove(sourceObject('platform', 'quay', []));
  await soon(async () => assert.equal(await copiesLeft(), 0));
  await plane.apply(sourceObject('platform', 'quay', ['quay.io']));
  await soon(async () => assert.equal(await copiesLeft(), MANY));
});

test('a source that goes with its whole namespace, its grant included, takes nothing away', async () => {
  const grant = grantObject('platform', ['quay'], ['team-*']);
  const reasonOf = (): Promise<string> => conditionOf(plane, 'team', 'Ready');
  // What goes by the profile's own wish is another matter.
  await patch({ spec: { copies: null } });
  await plane.apply(grant);
  await soon(async () => assert.equal(await reasonOf(), 'True Current'));
  await plane.remove(namespaceObject('platform'));
  await eventually(async () => assert.equal(await plane.get(namespaceObject('platform')), undefined), {
    withinMs: 60_000,
  });
  await soon(async () => assert.equal(await reasonOf(), 'False SourceMissing'));
  assert.equal(await copiesLeft(), MANY);
  await plane.apply(namespaceObject('platform'));
  await plane.apply(sourceObject('platform', 'quay', ['new.example']));
  await plane.apply(grant);
  await soon(async () => assert.equal(await reasonOf(), 'True Current'));
  await plane.remove(grant);
  await soon(async () => assert.equal(await copiesLeft(), 0));
});

test.lastly('ends', () => reconciler.stop());
