/** Keys that a change enqueues: with thousands of namespaces, each needless key costs thousands of reconciles. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import type { Ref } from '../../runtime/engine/contract.ts';
import { ObjectStore } from '../../runtime/engine/store.ts';
import { pullSecretInjection } from '../../runtime/pull-secret-injection/reconciler/reconcile.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { namespace, PROFILE, profile, readerOf, source } from './scene.ts';

const team = profile('team', {
  secrets: [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }],
});
const set: KubeObject = {
  ...meta('apps.kruise.io/v1beta1 SidecarSet', { name: 'side' }),
  spec: { selector: {}, imagePullSecrets: [{ name: 'x' }] },
};

/** A store, and a way to change one object and see the keys of that. */
function setUp(): (object: KubeObject | { readonly gone: KubeObject }) => readonly string[] {
  const store = new ObjectStore();
  for (const object of [namespace('a', { team: 'a' }), namespace('b'), source('platform/quay', ['quay.io'])])
    store.set(object);
  const reconciler = pullSecretInjection({ audit: false });
  return (change) => {
    const object = 'gone' in change ? (change.gone as KubeObject) : change;
    const ref: Ref = { role: 'hosted', ...object, ...object.metadata };
    if ('gone' in change) store.delete(ref);
    else store.set(object);
    const keys = reconciler.requestsFor(ref, readerOf(store));
    return [...new Set(keys.map((key) => [key.namespace, key.name].filter(Boolean).join(' ')))].sort();
  };
}

test('a profile that says something new concerns every namespace; its status concerns itself', () => {
  const keysOf = setUp();
  const everything = ['a namespace', 'b namespace', 'policy', 'profile/team'];
  assert.deepEqual(keysOf(team), everything);
  assert.deepEqual(keysOf({ ...team, status: { copies: '0/1' } }), ['profile/team']);
  assert.deepEqual(keysOf({ ...team, status: { copies: '1/1' } }), ['profile/team']);
  assert.deepEqual(keysOf({ ...team, spec: { ...(team.spec as object), suspend: true } }), everything);
  assert.deepEqual(keysOf(team), everything);
  assert.deepEqual(keysOf({ gone: team }), ['a namespace', 'b namespace', 'policy', 'profile/team']);
  assert.deepEqual(keysOf(team), everything, 'made again as it was');
});

test('the same for a SidecarSet, whose annotations count too', () => {
  const keysOf = setUp();
  const everything = ['a namespace', 'b namespace', 'policy', 'sidecarset/side'];
  assert.deepEqual(keysOf(set), everything);
  assert.deepEqual(keysOf({ ...set, status: { matchedPods: 3 } }), ['sidecarset/side']);
  const annotations = { 'pullwright.dev/source-namespace': 'platform' };
  assert.deepEqual(keysOf({ ...set, metadata: { ...set.metadata, annotations } }), everything);
});

test('a source concerns the namespaces that are served; a copy its own one', () => {
  const keysOf = setUp();
  keysOf(team);
  assert.equal(team.apiVersion, PROFILE);
  assert.deepEqual(keysOf(source('platform/quay', ['quay.io', 'second.example'])), [
    'a namespace',
    'profile/team',
  ]);
  assert.deepEqual(keysOf(source('b/reg', ['quay.io'])), ['b namespace', 'profile/team']);
  assert.deepEqual(keysOf(source('b/unrelated', ['quay.io'])), []);
});

test('a Secret concerns the counts of the profiles that bring or use it, and of no other', () => {
  const keysOf = setUp();
  keysOf(team);
  keysOf(
    profile('other', { secrets: [{ name: 'reg-2', sources: [{ namespace: 'platform', name: 'hub' }] }] }),
  );
  assert.deepEqual(keysOf(source('b/reg', ['quay.io'])), ['b namespace', 'profile/team']);
  assert.deepEqual(keysOf(source('b/reg-2', ['quay.io'])), ['b namespace', 'profile/other']);
  assert.deepEqual(keysOf(source('platform/hub', ['quay.io'])), ['a namespace', 'profile/other']);
});
