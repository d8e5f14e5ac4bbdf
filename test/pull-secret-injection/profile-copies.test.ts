/** Metadata of copies, and their handling when a source is deleted. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { readProfile } from '../../runtime/pull-secret-injection/kinds/profile.ts';
import { refOf } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';
import { namespace, profile, ready, type Scene, scene, source } from './scene.ts';

const shop = namespace('shop', { team: 'a' });
const quay = source('platform/quay', ['quay.io']);
const ghcr = source('platform/ghcr', ['ghcr.io']);
const from = (names: readonly string[]): readonly object[] =>
  names.map((name) => ({ namespace: 'platform', name }));
const team = (copies: unknown, names = ['quay']): KubeObject =>
  profile('team', { secrets: [{ name: 'reg', sources: from(names) }], copies });

/** Invalid values, and the message of the reader. */
const BAD: Readonly<Record<string, readonly [copies: unknown, text: string]>> = {
  'a slip': [
    { label: {} },
    'label: unknown field; must be one of "labels", "annotations", "onSourceDeleted", "removeAfter"',
  ],
  'a label that is a number': [{ labels: { a: 5 } }, 'labels["a"]: invalid value 5: must be a string'],
  'our own label': [
    { labels: { 'pullwright.dev/owner': 'me' } },
    'labels["pullwright.dev/owner"]: is reserved',
  ],
  'our own annotation': [
    { annotations: { 'pullwright.dev/profile': 'me' } },
    'annotations["pullwright.dev/profile"]: is reserved',
  ],
  'the mark of whoever manages it': [
    { labels: { 'app.kubernetes.io/managed-by': 'me' } },
    'labels["app.kubernetes.io/managed-by"]: is reserved',
  ],
  'a key with a space': [{ labels: { 'a b': 'c' } }, 'labels: "a b" is not a valid key'],
  'a value with a space': [{ labels: { a: 'b c' } }, 'labels: "a" has an invalid label value'],
  'too many': [
    { labels: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`k${at}`, 'v'])) },
    'labels: too many: 17: must have at most 16 items',
  ],
  'too long': [
    { annotations: { a: 'x'.repeat(1025) } },
    'annotations["a"]: too long: must have at most 1024 characters',
  ],
  'another option': [{ onSourceDeleted: 'remove' }, 'onSourceDeleted: "remove" is none of Keep, Remove'],
  'a delay without a removal': [{ removeAfter: '1h' }, 'removeAfter: requires onSourceDeleted: Remove'],
  'a delay in words': [
    { onSourceDeleted: 'Remove', removeAfter: 'soon' },
    'removeAfter: invalid value "soon": must be a duration such as "30m" or "24h"',
  ],
  'a negative delay': [
    { onSourceDeleted: 'Remove', removeAfter: '-1h' },
    'removeAfter: invalid value "-1h": must be a duration such as "30m" or "24h"',
  ],
};

for (const [name, [copies, text]] of Object.entries(BAD))
  test(`refused: ${name}`, () =>
    assert.deepEqual(readProfile(team(copies)), { ok: false, problems: [`spec.copies.${text}`] }));

test('labels and annotations are on the copies; ours stay', () => {
  const seen = scene([
    shop,
    quay,
    team({ labels: { tier: 'gold' }, annotations: { 'example.com/note': 'x y' } }),
  ]);
  const metadata = seen.secret('shop', 'reg')?.metadata;
  assert.equal(metadata?.labels?.['tier'], 'gold');
  assert.equal(metadata?.labels?.['pullwright.dev/owner'], 'pull-secret-injection');
  assert.equal(metadata?.annotations?.['example.com/note'], 'x y');
  assert.equal(metadata?.annotations?.['pullwright.dev/profile'], 'team');
});

test('what the profile no longer says leaves the copies', () => {
  const seen = scene([shop, quay, team({ labels: { tier: 'gold', team: 'red' } })]);
  const next = seen.after([team({ labels: { tier: 'iron' } })]);
  const labels = next.secret('shop', 'reg')?.metadata.labels ?? {};
  assert.equal(labels['tier'], 'iron');
  assert.equal('team' in labels, false);
});

/** The profile as the API server holds it, whose status says since when the source is gone. */
function goneSince(seen: Scene, since: string): KubeObject {
  const stored = seen.store.get(refOf('pullwright.dev/v1alpha1 PullSecretProfile', 'team'));
  assert.ok(stored !== undefined);
  return {
    ...stored,
    status: { ...(stored.status as object), missingSources: [{ source: 'platform/quay', since }] },
  };
}

interface GoneCase extends Case {
  readonly copies: unknown;
  readonly names?: readonly string[];
  /** Time that the status records; the scene is at 2026-11-21T00:00:00Z. */
  readonly since?: string;
  readonly left: readonly string[] | undefined;
}

table<GoneCase>(
  test,
  [
    { name: 'as usual', reason: 'an accident takes nothing', copies: undefined, left: ['quay.io'] },
    {
      name: 'Keep, after years',
      copies: { onSourceDeleted: 'Keep' },
      since: '2020-01-01T00:00:00Z',
      left: ['quay.io'],
    },
    {
      name: 'Remove, at once',
      reason: 'an accident may be put right within the delay',
      copies: { onSourceDeleted: 'Remove' },
      left: ['quay.io'],
    },
    {
      name: 'Remove, a second before the end',
      reason: 'the delay counts in full',
      copies: { onSourceDeleted: 'Remove' },
      since: '2026-11-20T00:00:01Z',
      left: ['quay.io'],
    },
    {
      name: 'Remove, after a day',
      copies: { onSourceDeleted: 'Remove' },
      since: '2026-11-20T00:00:00Z',
      left: undefined,
    },
    {
      name: 'Remove, after the delay that was asked for',
      copies: { onSourceDeleted: 'Remove', removeAfter: '10m' },
      since: '2026-11-20T23:50:00Z',
      left: undefined,
    },
    {
      name: 'Remove without a delay',
      copies: { onSourceDeleted: 'Remove', removeAfter: '0' },
      left: undefined,
    },
    {
      name: 'one of two sources',
      reason: 'the other one is still wanted',
      copies: { onSourceDeleted: 'Remove' },
      names: ['quay', 'ghcr'],
      since: '2026-11-20T00:00:00Z',
      left: ['ghcr.io'],
    },
    {
      name: 'a time that nobody can read',
      reason: 'a status is no authority',
      copies: { onSourceDeleted: 'Remove' },
      since: 'yesterday',
      left: ['quay.io'],
    },
  ],
  ({ copies, names, since, left }) => {
    const before = scene([shop, quay, ghcr, team(copies, names === undefined ? undefined : [...names])]);
    const remembered = since === undefined ? [] : [goneSince(before, since)];
    const after = before.after([{ gone: quay }, ...remembered]);
    assert.deepEqual(after.registries('shop', 'reg'), left);
    assert.equal(ready(after.status('PullSecretProfile', 'team')), 'False SourceMissing');
  },
);

test('a removal that was asked for is not held, however many copies go', () => {
  const shops = Array.from({ length: 20 }, (_, at) => namespace(`shop-${at}`, { team: 'a' }));
  const before = scene([...shops, quay, team({ onSourceDeleted: 'Remove', removeAfter: '0' })]);
  assert.ok(before.secret('shop-19', 'reg') !== undefined);
  const after = before.after([{ gone: quay }]);
  assert.ok(shops.every(({ metadata }) => after.secret(metadata.name, 'reg') === undefined));
});

test('a source that comes back is remembered no longer', () => {
  const before = scene([shop, quay, team({ onSourceDeleted: 'Remove' })]);
  const after = before.after([{ gone: quay }]);
  const missing = (seen: Scene): unknown =>
    (seen.status('PullSecretProfile', 'team') as { missingSources?: unknown } | undefined)?.missingSources;
  assert.deepEqual(missing(after), [{ source: 'platform/quay', since: '2026-11-21T00:00:00Z' }]);
  assert.deepEqual(missing(after.after([quay])), []);
});
