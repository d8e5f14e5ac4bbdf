import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { CANARY_MARK, findPlanted, plantedAuth, plantedPassword } from '../support/canary.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { conditionOf, namespace, profile, ready, readyMessage, scene, source } from './scene.ts';

const shop = namespace('shop', { team: 'a' });
const other = namespace('other');
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

test('a source appears in the selected namespaces only', () => {
  const seen = scene([shop, other, platform, one, quay]);
  assert.deepEqual(seen.registries('shop', 'reg'), ['quay.io']);
  assert.equal(seen.secret('other', 'reg'), undefined);
  assert.equal(ready(seen.status('PullSecretProfile', 'team')), 'True Current');
  assert.equal(seen.status('PullSecretProfile', 'team')?.copies, '1/1');
});

test('a single source is copied byte for byte', () => {
  const odd = `{ "auths" : {"quay.io":{"auth":"${plantedAuth('odd')}","email":"a@b"}} }\n`;
  const seen = scene([shop, one, source('platform/quay', odd)]);
  const data = (name: [string, string]) => seen.secret(...name)?.data?.['.dockerconfigjson'];
  assert.ok(data(['shop', 'reg']) !== undefined);
  assert.deepEqual(data(['shop', 'reg']), data(['platform', 'quay']));
});

test('several sources are merged, the first one wins', () => {
  const clash = source('platform/ghcr', ['ghcr.io', 'quay.io']);
  const seen = scene([shop, two, quay, clash]);
  assert.deepEqual(seen.registries('shop', 'reg'), ['ghcr.io', 'quay.io']);
});

test('a copy says where it comes from, and is kept out of the hands of GitOps tools', () => {
  const seen = scene([shop, two, quay, ghcr]);
  const annotations = seen.secret('shop', 'reg')?.metadata.annotations ?? {};
  assert.equal(annotations['pullwright.dev/sources'], 'platform/quay, platform/ghcr');
  assert.equal(annotations['pullwright.dev/profile'], 'team');
  assert.equal(annotations['argocd.argoproj.io/compare-options'], 'IgnoreExtraneous');
  assert.equal(
    seen.secret('shop', 'reg')?.metadata.labels?.['pullwright.dev/owner'],
    'pull-secret-injection',
  );
});

test('a rotation changes the body and keeps the object', () => {
  const first = scene([shop, one, quay]);
  const uid = first.secret('shop', 'reg')?.metadata.uid;
  const next = first.after([source('platform/quay', ['new.example'])]);
  assert.deepEqual(next.registries('shop', 'reg'), ['new.example']);
  assert.equal(next.secret('shop', 'reg')?.metadata.uid, uid);
});

test('a second run changes nothing', () => {
  const again = scene([shop, other, platform, two, quay, ghcr]).after([]);
  assert.deepEqual(
    again.result.objects.filter((object) => object.verb !== 'unchanged'),
    [],
  );
});

for (const [name, change] of Object.entries({
  'the profile goes': { gone: one },
  'the namespace is no longer selected': namespace('shop', { team: 'b' }),
  'the profile only injects from now on': profile('team', {
    mode: 'Inject',
    secrets: [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }],
  }),
}))
  test(`copies go: ${name}`, () => {
    const seen = scene([shop, platform, one, quay]);
    assert.ok(seen.secret('shop', 'reg') !== undefined);
    const after = seen.after([change]);
    assert.equal(after.secret('shop', 'reg'), undefined);
    assert.ok(after.secret('platform', 'quay') !== undefined, 'the source is never touched');
  });

const foreign = { ...source('shop/reg', ['theirs.example'], '') };

test('a foreign Secret of the same name is never touched', () => {
  const seen = scene([shop, one, quay, foreign]);
  assert.deepEqual(seen.registries('shop', 'reg'), ['theirs.example']);
  const status = seen.status('PullSecretProfile', 'team');
  assert.equal(ready(status), 'True BlockedByTenants', 'the platform can do nothing about it');
  assert.equal(conditionOf(status, 'TargetsFree'), 'False ForeignObject');
  assert.equal(seen.status('PullStatus', 'namespace-shop', 'shop')?.verdicts?.[0]?.reason, 'ForeignObject');
  const gone = seen.after([{ gone: one }]);
  assert.deepEqual(gone.registries('shop', 'reg'), ['theirs.example']);
});

test("one tenant's Secret does not hide what is wrong for everybody else", () => {
  const many = ['a', 'b', 'c'].map((name) => namespace(name, { team: 'a' }));
  const seen = scene([shop, ...many, one, quay, foreign]).after([{ gone: quay }]);
  const status = seen.status('PullSecretProfile', 'team');
  assert.equal(ready(status), 'False SourceMissing');
  assert.equal(conditionOf(status, 'SourcesReady'), 'False SourceMissing');
  assert.equal(conditionOf(status, 'TargetsFree'), 'False ForeignObject');
  assert.match(readyMessage(status), /\(3 of 4 namespaces\)/);
  assert.equal(seen.status('PullStatus', 'namespace-a', 'a'), undefined, 'said once, by the profile');
});

test('a profile that brings nothing, or selects nothing, does not say that all is well', () => {
  const bare = profile('bare', { secrets: [{ name: 'reg' }] });
  assert.equal(ready(scene([shop, bare]).status('PullSecretProfile', 'bare')), 'Unknown SecretsNotSeen');
  const brought = scene([shop, bare, source('shop/reg', ['quay.io'], '')]);
  assert.equal(ready(brought.status('PullSecretProfile', 'bare')), 'True Current');
  assert.equal(brought.status('PullSecretProfile', 'bare')?.copies, '-');
  assert.equal(
    ready(scene([other, one, quay]).status('PullSecretProfile', 'team')),
    'Unknown NothingSelected',
  );
});

test('a foreign Secret is taken over when its owner says so', () => {
  const offered = {
    ...foreign,
    metadata: { ...foreign.metadata, annotations: { 'pullwright.dev/adopt': 'true' } },
  };
  assert.deepEqual(scene([shop, one, quay, offered]).registries('shop', 'reg'), ['quay.io']);
});

test('two profiles that bring the same do not collide', () => {
  const twin = { ...one, metadata: { ...one.metadata, name: 'twin' } };
  const seen = scene([shop, one, twin, quay]);
  assert.equal(ready(seen.status('PullSecretProfile', 'twin')), 'True Current');
});

test('onCollision: Fail writes nothing when sources disagree', () => {
  const strict = profile('team', {
    secrets: [{ ...(two.spec as { secrets: object[] }).secrets[0], onCollision: 'Fail' }],
  });
  const clash = source('platform/ghcr', `{"auths":{"https://quay.io/":{"auth":"${plantedAuth('other')}"}}}`);
  const seen = scene([shop, strict, quay, clash]);
  assert.equal(seen.secret('shop', 'reg'), undefined);
  assert.match(
    readyMessage(seen.status('PullSecretProfile', 'team')),
    /"platform\/quay" and "platform\/ghcr" have/,
  );
  const same = source('platform/ghcr', `{"auths":{"https://quay.io/":{"auth":"${plantedAuth('quay.io')}"}}}`);
  assert.ok(
    scene([shop, strict, quay, same]).secret('shop', 'reg') !== undefined,
    'two spellings of one are none',
  );
});

test('a collision shows no user info of a registry key', () => {
  const sources = ['a', 'b'].map((name) => ({ namespace: 'platform', name }));
  const strict = profile('team', { secrets: [{ name: 'reg', sources, onCollision: 'Fail' }] });
  const key = `https://robot:${plantedPassword('key')}@quay.io`;
  const [a, b] = ['a', 'b'].map((name) =>
    source(`platform/${name}`, JSON.stringify({ auths: { [key]: { auth: plantedAuth(name) } } })),
  );
  assert.ok(a !== undefined && b !== undefined);
  const { conditions } = scene([shop, strict, a, b]).status('PullSecretProfile', 'team') ?? {};
  assert.match(JSON.stringify(conditions), /have different credentials for \\"https:\/\/quay\.io\\"/);
  assert.equal(findPlanted(JSON.stringify(conditions)), undefined);
});

test('a suspended profile leaves its copies as they are', () => {
  const before = scene([shop, one, quay]);
  const after = before.after([
    { ...one, spec: { ...(one.spec as object), suspend: true } },
    source('platform/quay', ['new.example']),
  ]);
  assert.deepEqual(after.registries('shop', 'reg'), ['quay.io']);
  assert.equal(ready(after.status('PullSecretProfile', 'team')), 'False Suspended');
});

test('nothing is written into a namespace that goes away', () => {
  const leaving = { ...shop, status: { phase: 'Terminating' } };
  assert.equal(scene([leaving, one, quay]).secret('shop', 'reg'), undefined);
});

test('an invalid profile is reported and does not block others', () => {
  const broken = profile('broken', { secrets: [{ name: 'No Name' }], mode: 'inject' });
  const seen = scene([shop, one, broken, quay]);
  assert.ok(seen.secret('shop', 'reg') !== undefined);
  const status = seen.status('PullSecretProfile', 'broken');
  assert.equal(ready(status), 'False Invalid');
  assert.match(
    status?.conditions[0]?.message ?? '',
    /spec\.mode: "inject" is none of .*; spec\.secrets\[0\]\.name/,
  );
});

test('a merge that does not fit into a Secret is not written', () => {
  const big = (name: string, host: string): KubeObject =>
    source(
      name,
      JSON.stringify({
        auths: Object.fromEntries(
          Array.from({ length: 12_000 }, (_, at) => [`${host}${at}.example`, { auth: plantedAuth('') }]),
        ),
      }),
    );
  const seen = scene([shop, two, big('platform/quay', 'a'), big('platform/ghcr', 'b')]);
  assert.equal(seen.secret('shop', 'reg'), undefined);
  assert.equal(ready(seen.status('PullSecretProfile', 'team')), 'False TooLarge');
});

test('the source namespace itself is not given a copy of its own Secret', () => {
  const all = profile('all', {
    namespaceSelector: {},
    selector: {},
    secrets: [{ name: 'quay', sources: [{ namespace: 'platform', name: 'quay' }] }],
  });
  const seen = scene([shop, platform, all, quay]);
  assert.deepEqual(
    seen.secret('platform', 'quay'),
    quay === undefined ? undefined : seen.secret('platform', 'quay'),
  );
  assert.equal(ready(seen.status('PullSecretProfile', 'all')), 'True Current');
  assert.equal(seen.secret('platform', 'quay')?.metadata.labels, undefined);
});

test('a namespace opts out by label, and those of the cluster are served only by name', () => {
  const all = profile('all', {
    namespaceSelector: {},
    selector: {},
    secrets: [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }],
  });
  const out = namespace('out', { 'pullwright.dev/distribute': 'false' });
  const system = namespace('kube-system');
  const own = namespace('pullwright-system');
  const seen = scene([shop, out, system, own, all, quay]);
  assert.deepEqual(seen.registries('shop', 'reg'), ['quay.io']);
  for (const name of ['out', 'kube-system', 'pullwright-system'])
    assert.equal(seen.secret(name, 'reg'), undefined, name);
  assert.equal(seen.status('PullSecretProfile', 'all')?.copies, '1/1');
  const values = ['kube-system'];
  const named = profile('all', {
    ...(all.spec as object),
    namespaceSelector: { matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values }] },
    selector: {},
  });
  assert.deepEqual(seen.after([named]).registries('kube-system', 'reg'), ['quay.io']);
  const left = seen.after([namespace('shop', { team: 'a', 'pullwright.dev/distribute': 'false' })]);
  assert.equal(left.secret('shop', 'reg'), undefined, 'who opts out later gives the copy back');
});

test('a SidecarSet that names a source namespace has its Secrets brought', () => {
  const set = {
    ...meta('apps.kruise.io/v1beta1 SidecarSet', {
      name: 'log',
      annotations: { 'pullwright.dev/source-namespace': 'platform' },
    }),
    spec: {
      selector: { matchLabels: { app: 'web' } },
      namespaceSelector: { matchLabels: { team: 'a' } },
      imagePullSecrets: [{ name: 'quay' }],
    },
  };
  assert.deepEqual(scene([shop, other, platform, set, quay]).registries('shop', 'quay'), ['quay.io']);
});

const entry = (value: unknown): string => JSON.stringify({ auths: { 'quay.io': value } });
const poison = (HttpHeaders: unknown): string =>
  JSON.stringify({ auths: { 'quay.io': { auth: plantedAuth('x') } }, HttpHeaders });

/** Change of a source (its document, or the change itself), and the resulting message of the profile. */
const BAD: Readonly<Record<string, readonly [string | KubeObject | { readonly gone: KubeObject }, string]>> =
  {
    deleted: [{ gone: quay }, 'SourceMissing'],
    'turned into another type': [{ ...quay, type: 'Opaque' }, 'SourceMissing'],
    'without data': [{ ...quay, data: {} }, 'SourceEmpty'],
    'no registry': ['{"auths":{}}', 'SourceEmpty'],
    'an empty object': ['{}', 'SourceEmpty'],
    'no text': ['', 'SourceInvalid'],
    'not JSON': ['{"auths":', 'SourceInvalid'],
    'auths is a list': ['{"auths":[]}', 'SourceInvalid'],
    'auths is a text': ['{"auths":"x"}', 'SourceInvalid'],
    'an entry is a text': [entry('x'), 'SourceInvalid'],
    'an entry is a list': [entry([]), 'SourceInvalid'],
    'auth is not base64': [entry({ auth: '!!' }), 'SourceInvalid'],
    'auth with a space': [entry({ auth: 'dTpw dTpw' }), 'SourceInvalid'],
    'auth is a number': [entry({ auth: 1 }), 'SourceInvalid'],
    'auth without a colon': [entry({ auth: 'dXNlcg==' }), 'SourceInvalid'],
    'username is a number': [entry({ username: 1 }), 'SourceInvalid'],
    'HttpHeaders is a text': [poison('x'), 'SourceInvalid'],
    'HttpHeaders holds a number': [poison({ a: 1 }), 'SourceInvalid'],
  };

for (const [name, [bad, condition]] of Object.entries(BAD))
  test(`a source that is bad (${name}): the last good copy stays, and nothing new is written`, () => {
    const change = typeof bad === 'string' ? source('platform/quay', bad) : bad;
    const before = scene([shop, platform, one, quay]);
    const body = before.secret('shop', 'reg')?.data;
    const after = before.after([change]);
    assert.deepEqual(after.secret('shop', 'reg')?.data, body);
    const status = after.status('PullSecretProfile', 'team');
    assert.equal(ready(status), `False ${condition}`);
    assert.equal(conditionOf(status, 'SourcesReady'), `False ${condition}`);
    const told = after.status('PullStatus', 'namespace-shop', 'shop');
    assert.equal(told, undefined, 'no tenant can do anything');
    assert.ok(!JSON.stringify(after.result).includes(CANARY_MARK));
    const fresh = scene([shop, platform, one, ...('gone' in change ? [] : [change])]);
    assert.equal(fresh.secret('shop', 'reg'), undefined);
    const mended = after.after([quay]);
    assert.equal(ready(mended.status('PullSecretProfile', 'team')), 'True Current');
  });

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

for (const [type, spec, says] of [
  ['Ready', { ...(one.spec as object), mode: 'Distribute' }, /The selected namespace has the Secrets/],
  [
    'SecretsPresent',
    { mode: 'Inject', secrets: [{ name: 'reg' }] },
    /is not seen in 1 of 1 namespace, first in "shop"/,
  ],
  [
    'SourcesReady',
    { secrets: ['a', 'b'].map((name) => ({ name, sources: [{ namespace: 'platform', name: 'gone' }] })) },
    /\(1 of 1 namespace\)$/,
  ],
] as const)
  test(`one namespace is said in the singular: ${type}`, () => {
    const seen = scene([platform, shop, quay, profile('team', spec)]);
    const { conditions = [] } = seen.status('PullSecretProfile', 'team') ?? {};
    assert.match(conditions.find((one) => one.type === type)?.message ?? '', says);
    const messages = conditions.map(({ message }) => message).join('\n');
    assert.doesNotMatch(messages, /\b1 (namespaces|of 1 namespaces)\b/);
    // The number is in the condition: an event is not sent again for each of them.
    const notes = seen.result.reports.flatMap((report) => report.events.map(({ note }) => note));
    assert.doesNotMatch(notes.join('\n'), /of \d+ namespaces?/);
  });
