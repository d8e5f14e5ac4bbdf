import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { CANARY_MARK, plantedAuth } from '../support/canary.ts';
import { type Case, suite, table } from '../support/suite.ts';
import { conditionOf, namespace, PROFILE, profile, ready, readyMessage, scene, source } from './scene.ts';

const test = suite('sources of a distribution: broken, missing, not granted');
const shop = namespace('shop', { team: 'a' });
const platform = namespace('platform');
const one = profile('team', {
  secrets: [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }],
});
const two = profile('team', {
  secrets: [
    {
      name: 'reg',
      sources: [
        { namespace: 'platform', name: 'quay' },
        { namespace: 'platform', name: 'ghcr' },
      ],
    },
  ],
});
const quay = source('platform/quay', ['quay.io']);
const ghcr = source('platform/ghcr', ['ghcr.io']);

interface BadCase extends Case {
  readonly change: KubeObject | { readonly gone: KubeObject };
  readonly condition: string;
}

const entry = (value: unknown): string => JSON.stringify({ auths: { 'quay.io': value } });

table<BadCase>(
  test,
  [
    {
      name: 'deleted',
      reason: 'an accident at the source',
      change: { gone: quay },
      condition: 'SourceMissing',
    },
    {
      name: 'turned into another type',
      reason: 'deleted and made again',
      change: { ...quay, type: 'Opaque' },
      condition: 'SourceMissing',
    },
    { name: 'without data', reason: 'emptied', change: { ...quay, data: {} }, condition: 'SourceEmpty' },
    {
      name: 'no registry',
      reason: 'emptied',
      change: source('platform/quay', '{"auths":{}}'),
      condition: 'SourceEmpty',
    },
    {
      name: 'an empty object',
      reason: 'emptied',
      change: source('platform/quay', '{}'),
      condition: 'SourceEmpty',
    },
    { name: 'no text', reason: 'emptied', change: source('platform/quay', ''), condition: 'SourceInvalid' },
    {
      name: 'not JSON',
      reason: 'poison',
      change: source('platform/quay', '{"auths":'),
      condition: 'SourceInvalid',
    },
    {
      name: 'auths is a list',
      reason: 'poison',
      change: source('platform/quay', '{"auths":[]}'),
      condition: 'SourceInvalid',
    },
    {
      name: 'auths is a text',
      reason: 'poison',
      change: source('platform/quay', '{"auths":"x"}'),
      condition: 'SourceInvalid',
    },
    {
      name: 'an entry is a text',
      reason: 'poison',
      change: source('platform/quay', entry('x')),
      condition: 'SourceInvalid',
    },
    {
      name: 'an entry is a list',
      reason: 'poison',
      change: source('platform/quay', entry([])),
      condition: 'SourceInvalid',
    },
    {
      name: 'auth is not base64',
      reason: 'poison',
      change: source('platform/quay', entry({ auth: '!!' })),
      condition: 'SourceInvalid',
    },
    {
      name: 'auth with a space',
      reason: 'poison',
      change: source('platform/quay', entry({ auth: 'dTpw dTpw' })),
      condition: 'SourceInvalid',
    },
    {
      name: 'auth is a number',
      reason: 'poison',
      change: source('platform/quay', entry({ auth: 1 })),
      condition: 'SourceInvalid',
    },
    {
      name: 'auth without a colon',
      reason: 'poison',
      change: source('platform/quay', entry({ auth: 'dXNlcg==' })),
      condition: 'SourceInvalid',
    },
    {
      name: 'username is a number',
      reason: 'poison',
      change: source('platform/quay', entry({ username: 1 })),
      condition: 'SourceInvalid',
    },
    {
      name: 'HttpHeaders is a text',
      reason: 'poison',
      change: source(
        'platform/quay',
        `{"auths":{"quay.io":{"auth":"${plantedAuth('x')}"}},"HttpHeaders":"x"}`,
      ),
      condition: 'SourceInvalid',
    },
    {
      name: 'HttpHeaders holds a number',
      reason: 'poison',
      change: source(
        'platform/quay',
        `{"auths":{"quay.io":{"auth":"${plantedAuth('x')}"}},"HttpHeaders":{"a":1}}`,
      ),
      condition: 'SourceInvalid',
    },
  ],
  ({ change, condition }) => {
    const before = scene([shop, platform, one, quay]);
    const body = before.secret('shop', 'reg')?.data;
    const after = before.after([change]);
    assert.deepEqual(after.secret('shop', 'reg')?.data, body, 'the last good copy stays');
    const status = after.status('PullSecretProfile', 'team');
    assert.equal(ready(status), `False ${condition}`);
    assert.equal(conditionOf(status, 'SourcesReady'), `False ${condition}`);
    assert.equal(
      after.status('PullStatus', 'namespace-shop', 'shop'),
      undefined,
      'no tenant can do anything',
    );
    assert.ok(!JSON.stringify(after.result).includes(CANARY_MARK));
    assert.equal(
      scene([shop, platform, one, ...('gone' in change ? [] : [change])]).secret('shop', 'reg'),
      undefined,
      'never written',
    );
    const mended = after.after([quay]);
    assert.equal(ready(mended.status('PullSecretProfile', 'team')), 'True Current');
  },
);

test('one bad source of two: a copy that holds it stays whole', () => {
  const before = scene([shop, two, quay, ghcr]);
  const after = before.after([
    source('platform/ghcr', '{"auths":"x"}'),
    source('platform/quay', ['new.example']),
  ]);
  assert.deepEqual(after.registries('shop', 'reg'), ['ghcr.io', 'quay.io']);
});

test('one bad source of two: a new namespace gets what is good, and is told', () => {
  const seen = scene([shop, two, quay, source('platform/ghcr', '{"auths":"x"}')]);
  assert.deepEqual(seen.registries('shop', 'reg'), ['quay.io']);
  assert.equal(ready(seen.status('PullSecretProfile', 'team')), 'False SourceInvalid');
  const later = seen.after([ghcr]);
  assert.deepEqual(later.registries('shop', 'reg'), ['ghcr.io', 'quay.io']);
});

test('a withdrawn grant takes its entries out even while another source is broken', () => {
  const before = scene([shop, two, quay, ghcr]);
  const after = before.after([
    source('platform/ghcr', '{"auths":"x"}'),
    source('platform/quay', ['quay.io'], 'nobody'),
  ]);
  assert.equal(after.secret('shop', 'reg'), undefined);
});

test('no grant, no copy; the namespace is told', () => {
  const seen = scene([shop, one, source('platform/quay', ['quay.io'], '')]);
  assert.equal(seen.secret('shop', 'reg'), undefined);
  assert.equal(ready(seen.status('PullSecretProfile', 'team')), 'False NotGranted');
});

const byLabel: KubeObject = {
  apiVersion: PROFILE,
  kind: 'PullSecretGrant',
  metadata: { name: 'by-label', namespace: 'platform' },
  spec: {
    secrets: [{ name: 'quay' }],
    profiles: [{ name: '*' }],
    namespaceSelector: { matchLabels: { team: 'a' } },
  },
};

test('a namespace that labels itself gets nothing that was not granted to it', () => {
  const thief = namespace('thief', { team: 'a' });
  const seen = scene([shop, thief, one, source('platform/quay', ['quay.io'], 'shop'), byLabel]);
  assert.ok(seen.secret('shop', 'reg') !== undefined);
  assert.equal(seen.secret('thief', 'reg'), undefined);
  const grants = seen.status('PullSecretGrant', 'by-label', 'platform');
  assert.match(readyMessage(grants), /label "team", which is not trusted/);
});

test('a label that the operator trusts may be granted to', () => {
  const objects = [shop, one, source('platform/quay', ['quay.io'], ''), byLabel];
  assert.ok(scene(objects, { trustedLabelKeys: ['team'] }).secret('shop', 'reg') !== undefined);
});

test.run();
