/** Claims on the name of a copy, and the effect of a withdrawn, deleted or missing consent. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { type Case, table, test } from '../support/suite.ts';
import { grant, namespace, profile, ready, readyMessage, type Scene, scene, source } from './scene.ts';

const shop = namespace('shop', { team: 'a' });
const brings = (name: string, from: string, more: Record<string, unknown> = {}): KubeObject =>
  profile(name, {
    secrets: [{ name: 'reg', sources: [{ namespace: from.split('/')[0], name: from.split('/')[1] }] }],
    ...more,
  });
const ours = brings('platform', 'platform/quay');
const quay = source('platform/quay', ['quay.io']);
const theirs = source('tenant/quay', ['evil.example']);

const made = (object: KubeObject, uid: string): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, uid },
});

const granted = (spec: Record<string, unknown> = {}): KubeObject =>
  grant({ profiles: [{ name: 'platform' }], namespaces: ['shop'], ...spec });

const reason = (seen: Scene, name: string): string | undefined =>
  ready(seen.status('PullSecretProfile', name));

interface RivalCase extends Case {
  readonly rival: KubeObject;
  readonly sources?: readonly KubeObject[];
  /** Message in the rival's status. */
  readonly says: RegExp;
}

table<RivalCase>(
  test,
  [
    {
      name: 'an order before everybody',
      reason: 'an author must not take what another holds',
      rival: brings('rival', 'tenant/quay', { order: -1_000_000 }),
      says: /"platform" delivers a different Secret "reg" to "shop"/,
    },
    {
      name: 'a source that is not there',
      rival: brings('rival', 'tenant/none', { order: -1_000_000 }),
      says: /does not exist/,
    },
    {
      name: 'suspended',
      rival: brings('rival', 'tenant/quay', { order: -1_000_000, suspend: true }),
      says: /suspend/,
    },
    {
      name: 'a source that is not granted',
      rival: brings('rival', 'tenant/quay', { order: -1_000_000 }),
      sources: [source('tenant/quay', ['evil.example'], '')],
      says: /is not granted/,
    },
  ],
  ({ rival, sources = [theirs], says }) => {
    const before = scene([shop, ours, quay]);
    const after = before.after([rival, ...sources]);
    assert.deepEqual(after.registries('shop', 'reg'), ['quay.io']);
    assert.equal(reason(after, 'platform'), 'True Current');
    assert.match(readyMessage(after.status('PullSecretProfile', 'rival')), says);
    const rotated = after.after([source('platform/quay', ['new.example'])]);
    assert.deepEqual(rotated.registries('shop', 'reg'), ['new.example'], 'a rotation goes through');
    const revoked = rotated.after([source('platform/quay', ['new.example'], 'elsewhere')]);
    assert.notDeepEqual(revoked.registries('shop', 'reg'), ['new.example'], 'a revocation removes');
  },
);

test('a free name goes to who was there first, whatever order says', () => {
  const at = (object: KubeObject, creationTimestamp: string): KubeObject => ({
    ...object,
    metadata: { ...object.metadata, creationTimestamp },
  });
  const old = at(ours, '2026-01-01T00:00:00Z');
  const young = at(brings('rival', 'tenant/quay', { order: -1 }), '2026-01-02T00:00:00Z');
  assert.deepEqual(scene([shop, old, young, quay, theirs]).registries('shop', 'reg'), ['quay.io']);
  assert.deepEqual(
    scene([shop, old, young, theirs]).registries('shop', 'reg'),
    ['evil.example'],
    'who has no source does not compete',
  );
});

test('the holder hands over to the successor that it names, in place', () => {
  const before = scene([shop, ours, quay]);
  const uid = before.secret('shop', 'reg')?.metadata.uid;
  const next = brings('next', 'tenant/quay');
  const both = before.after([next, theirs]);
  assert.deepEqual(both.registries('shop', 'reg'), ['quay.io']);
  const handed = both.after([brings('platform', 'platform/quay', { successor: 'next' })]);
  assert.deepEqual(handed.registries('shop', 'reg'), ['evil.example']);
  assert.equal(handed.secret('shop', 'reg')?.metadata.uid, uid);
  assert.equal(reason(handed, 'platform'), 'False Collision');
});

test('a profile that goes leaves its names to the next one', () => {
  const both = scene([shop, ours, quay]).after([brings('next', 'tenant/quay'), theirs]);
  assert.deepEqual(both.after([{ gone: ours }]).registries('shop', 'reg'), ['evil.example']);
  const without = scene([shop, ours, quay]).after([brings('next', 'tenant/none')]);
  assert.equal(
    without.after([{ gone: ours }]).secret('shop', 'reg'),
    undefined,
    'nobody keeps what it did not bring',
  );
});

test('a profile that cannot be read any more leaves its copies and keeps its names', () => {
  const broken = { ...ours, spec: { ...(ours.spec as object), mode: 'inject' } };
  const seen = scene([shop, ours, quay]).after([broken, brings('rival', 'tenant/quay'), theirs]);
  assert.deepEqual(seen.registries('shop', 'reg'), ['quay.io']);
  assert.equal(reason(seen, 'rival'), 'False Collision');
  const revoked = seen.after([source('platform/quay', ['quay.io'], 'elsewhere')]);
  assert.notDeepEqual(revoked.registries('shop', 'reg'), ['quay.io'], 'a revocation removes all the same');
});

interface RevokeCase extends Case {
  readonly change: readonly (KubeObject | { readonly gone: KubeObject })[];
}

const REVOKED: readonly KubeObject[] = [made(source('platform/quay', ['quay.io'], ''), 'first')];

table<RevokeCase>(
  test,
  [
    { name: 'the grant is deleted', reason: 'that is how it is taken back', change: REVOKED },
    {
      name: 'the grant names other namespaces',
      change: [made(source('platform/quay', ['quay.io'], 'elsewhere'), 'second')],
    },
    {
      name: 'suspended',
      reason: 'no trouble holds back a revocation',
      change: [...REVOKED, brings('platform', 'platform/quay', { suspend: true })],
    },
    {
      name: 'in collision',
      reason: 'no trouble holds back a revocation',
      change: [...REVOKED, brings('rival', 'tenant/none', { order: -5 })],
    },
    {
      name: 'the profile names another source, which is missing',
      reason: 'the copy still holds the first one',
      change: [...REVOKED, brings('platform', 'platform/other')],
    },
  ],
  ({ change }) => {
    const before = scene([shop, ours, made(quay, 'first')]);
    assert.ok(before.secret('shop', 'reg') !== undefined);
    assert.equal(before.after(change).secret('shop', 'reg'), undefined);
  },
);

const plain = source('platform/quay', ['quay.io'], '');

test('a PullSecretGrant outlives the Secret that it grants', () => {
  const before = scene([shop, ours, made(plain, 'first'), granted()]);
  assert.deepEqual(before.registries('shop', 'reg'), ['quay.io']);
  assert.equal(ready(before.status('PullSecretGrant', 'teams', 'platform')), 'True Granted');
  const replaced = before.after([made(source('platform/quay', ['new.example'], ''), 'second')]);
  assert.deepEqual(replaced.registries('shop', 'reg'), ['new.example']);
  const gone = replaced.after([{ gone: plain }]);
  assert.deepEqual(gone.registries('shop', 'reg'), ['new.example']);
  assert.equal(gone.after([{ gone: granted() }]).secret('shop', 'reg'), undefined, 'also without the Secret');
});

for (const [what, spec] of [
  ['another profile', { profiles: [{ name: 'other' }] }],
  ['another namespace', { namespaces: ['other'] }],
  ['another Secret', { secrets: [{ name: 'other' }] }],
  ['a label that is not trusted', { namespaces: [], namespaceSelector: { matchLabels: { team: 'a' } } }],
  ['a field that is spelled wrong', { namespaceselector: {} }],
] as const)
  test(`a grant to ${what} gives nothing, and narrowing to it takes the copy away`, () => {
    assert.equal(scene([shop, ours, plain, granted(spec)]).secret('shop', 'reg'), undefined);
    const before = scene([shop, ours, plain, granted()]);
    assert.equal(before.after([granted(spec)]).secret('shop', 'reg'), undefined);
  });

test('neither an annotation of the Secret nor a grant in the namespace that wants it is one', () => {
  const annotations = { 'pullwright.dev/grant-namespaces': '*' };
  const annotated = { ...plain, metadata: { ...plain.metadata, annotations } };
  const elsewhere = grant({ namespaces: ['*'] }, 'all', 'shop');
  assert.equal(scene([shop, ours, annotated, elsewhere]).secret('shop', 'reg'), undefined);
});

test('any profile may be meant', () => {
  const seen = scene([
    shop,
    ours,
    plain,
    granted({ profiles: [{ name: '*' }], namespaces: [], namespaceSelector: {} }),
  ]);
  assert.deepEqual(seen.registries('shop', 'reg'), ['quay.io']);
});
