import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { lookupForContainers } from '../../runtime/core/docker-config/containers-keyring.ts';
import { kubeletKeyring, lookupForKubelet } from '../../runtime/core/docker-config/kubelet-keyring.ts';
import { type MergeResult, mergePullSecrets } from '../../runtime/core/docker-config/merge.ts';
import { registryKey } from '../../runtime/core/docker-config/registry-key.ts';
import { redact, reveal } from '../../runtime/core/redacted.ts';
import { plantedAuth } from '../support/canary.ts';
import { forAll } from '../support/for-all.ts';
import { type Case, table, test } from '../support/suite.ts';

const PLATFORM: string = plantedAuth('platform', 'platform');
const TENANT: string = plantedAuth('tenant', 'tenant');

/** A document with these keys, all with the same `auth`. */
function config(auth: string, keys: readonly string[], more: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ auths: Object.fromEntries(keys.map((key) => [key, { auth }])), ...more });
}

/** Merges two documents of good entries. */
function merge(platform: readonly string[], tenant: readonly string[]): Extract<MergeResult, { ok: true }> {
  const merged = mergePullSecrets({
    original: redact(config(PLATFORM, platform)),
    additional: redact(config(TENANT, tenant)),
  });
  assert.ok(merged.ok);
  return merged;
}

/** User names that the kubelet and CRI-O would use. */
function users(text: string, repository: string): { kubelet: readonly string[]; crio: string } {
  const source = { name: 'merged', format: 'config.json', text: redact(text) } as const;
  const keyring = kubeletKeyring({ secrets: [], node: source });
  assert.ok(keyring.ok);
  const found = lookupForContainers([source], repository);
  return {
    kubelet: lookupForKubelet(keyring.rings, repository).map(({ credential }) => credential.username),
    crio: found.found === 'credential' ? found.credential.username : found.found,
  };
}

interface Row extends Case {
  /** @default {'quay.io'} */
  readonly platform?: string;
  readonly tenant: string;
  /** @default {'Shadowed SpellingVariant'} */
  readonly verdict?: string;
  /** Key under which the tenant's entry is written. */
  readonly as?: string;
}

const ROWS: readonly Row[] = [
  { name: 'the same key', reason: 'original wins', tenant: 'quay.io', verdict: 'Shadowed OriginalWins' },
  { name: 'a scheme', reason: 'the kubelet drops it', tenant: 'https://quay.io' },
  { name: 'a scheme in capitals', reason: 'a spelling all the same', tenant: 'HTTP://quay.io' },
  { name: 'a slash', reason: 'the kubelet drops it', tenant: 'quay.io/' },
  { name: 'the API path', reason: 'the kubelet drops it', tenant: 'quay.io/v2/' },
  { name: 'capitals', reason: 'the same host', tenant: 'Quay.IO' },
  { name: 'the default port', reason: 'the same host', tenant: 'quay.io:443' },
  { name: 'the default port at the platform', platform: 'quay.io:443', tenant: 'quay.io' },
  { name: 'user info', reason: 'the kubelet drops it', tenant: 'x@quay.io' },
  {
    name: 'an escape',
    reason: 'the kubelet unescapes it',
    platform: 'quay.io/team',
    tenant: 'quay.io/%74eam',
  },
  {
    name: 'Docker Hub by another name',
    reason: 'would hide the fall-back',
    platform: 'https://index.docker.io/v1/',
    tenant: 'docker.io',
  },
  {
    name: 'a wildcard over Docker Hub',
    reason: 'would hide the fall-back',
    platform: 'https://index.docker.io/v1/',
    tenant: '*.io',
    verdict: 'Shadowed WildcardHidesHub',
  },
  {
    name: 'http with its port',
    reason: 'the platform wrote the other form',
    platform: 'http://r.io:80',
    tenant: 'r.io:80',
  },
  {
    name: 'a namespace below',
    reason: 'allowed on purpose',
    tenant: 'quay.io/team',
    verdict: 'Accepted Added',
    as: 'quay.io/team',
  },
  {
    name: 'a namespace with a scheme',
    reason: 'CRI-O would take it for the host',
    platform: 'https://quay.io',
    tenant: 'https://quay.io/team/',
    verdict: 'Accepted Rewritten',
    as: 'quay.io/team',
  },
  {
    name: 'another port',
    reason: 'another registry',
    tenant: 'quay.io:8443',
    verdict: 'Accepted Added',
    as: 'quay.io:8443',
  },
  {
    name: 'a host that begins alike',
    reason: 'another registry',
    tenant: 'quay.io.evil.example',
    verdict: 'Accepted Added',
    as: 'quay.io.evil.example',
  },
  {
    name: 'a key that matches nothing',
    reason: 'images have no tag in a look-up',
    tenant: 'quay.io/team/app:1',
    verdict: 'Rejected KeyInvalid',
  },
];

table(test, ROWS, ({ platform = 'quay.io', tenant, verdict = 'Shadowed SpellingVariant', as }) => {
  const merged = merge([platform], [tenant]);
  assert.deepEqual(
    merged.verdicts.map((one) => `${one.verdict} ${one.reason}`),
    [verdict],
  );
  assert.deepEqual(
    merged.entries.filter((entry) => entry.source === 'additional').map((entry) => entry.key),
    as === undefined ? [] : [as],
  );
  assert.equal(merged.conflicts.length, verdict.startsWith('Shadowed') ? 1 : 0);
});

test('one bad entry holds up no other', () => {
  const additional = `{"auths":{"a.io":{"auth":"${TENANT}"},"b.io":{"auth":"!"},"c.io":7,"d.io":{"auth":"${TENANT}"}}}`;
  const merged = mergePullSecrets({
    original: redact(config(PLATFORM, ['r.io'])),
    additional: redact(additional),
  });
  assert.ok(merged.ok);
  assert.deepEqual(
    merged.entries.map((entry) => entry.key),
    ['a.io', 'd.io', 'r.io'],
  );
  assert.deepEqual(
    merged.verdicts.map((one) => one.verdict),
    ['Accepted', 'Rejected', 'Rejected', 'Accepted'],
  );
});

test('an unreadable additional document leaves the platform its own', () => {
  for (const text of ['', '{', '[]', 'null', '{}', '{"auths":[]}', '\ufeff{}', TENANT]) {
    const merged = mergePullSecrets({
      original: redact(config(PLATFORM, ['r.io'])),
      additional: redact(text),
    });
    assert.ok(merged.ok);
    assert.equal(reveal(merged.text), config(PLATFORM, ['r.io']));
    assert.deepEqual(
      merged.verdicts.map((one) => one.verdict),
      ['Rejected'],
    );
    assert.notEqual(merged.additionalProblem, undefined);
  }
});

test('other fields: those of the platform stay, those of the tenant do not run programs on nodes', () => {
  const merged = mergePullSecrets({
    original: redact(config(PLATFORM, ['p.io'], { HttpHeaders: { a: 1 }, credHelpers: { 'x.io': 'ecr' } })),
    additional: redact(config(TENANT, ['a.io'], { credHelpers: { 'p.io': 'evil' } })),
  });
  assert.ok(merged.ok);
  assert.deepEqual(JSON.parse(reveal(merged.text))['credHelpers'], { 'x.io': 'ecr' });
  assert.deepEqual(Object.keys(JSON.parse(reveal(merged.text))), ['auths', 'credHelpers']);
  assert.deepEqual(
    merged.verdicts.map((one) => one.subject),
    ['a.io', '"credHelpers"'],
  );
  assert.deepEqual(
    merged.originalVerdicts.map((one) => one.reason),
    ['FieldInvalid'],
  );
});

test('unknown fields of an entry survive', () => {
  const additional = redact(`{"auths":{"a.io":{"auth":"${TENANT}","expires":"2027","n":{"b":[1]}}}}`);
  const merged = mergePullSecrets({ original: redact(config(PLATFORM, ['p.io'])), additional });
  assert.ok(merged.ok);
  assert.deepEqual(JSON.parse(reveal(merged.text)).auths['a.io'], {
    auth: TENANT,
    expires: '2027',
    n: { b: [1] },
  });
});

test('entries that do not fit are left out, the same ones whatever the order', () => {
  const base = Buffer.byteLength(config(PLATFORM, ['p.io']));
  const one = Buffer.byteLength(`"a.io":{"auth":"${TENANT}"},`);
  for (const keys of [
    ['a.io', 'b.io'],
    ['b.io', 'a.io'],
  ]) {
    const merged = mergePullSecrets({
      original: redact(config(PLATFORM, ['p.io'])),
      additional: redact(config(TENANT, keys)),
      maxBytes: base + one,
    });
    assert.ok(merged.ok);
    assert.deepEqual(
      merged.entries.map(({ key }) => key),
      ['a.io', 'p.io'],
    );
    assert.ok(Buffer.byteLength(reveal(merged.text)) <= base + one);
  }
});

test('two spellings of one registry in one secret: one is used', () => {
  const merged = merge(['p.io'], ['https://a.io/', 'a.io']);
  assert.deepEqual(
    merged.entries.map(({ key }) => key),
    ['a.io', 'p.io'],
  );
  assert.deepEqual(
    merged.verdicts.map((one) => one.reason),
    ['DuplicateSpelling', 'Added'],
  );
});

test('a result shows no credential', () => {
  const shown = inspect(merge(['p.io', 'q.io'], ['a.io', 'https://q.io']), { depth: 20 });
  assert.ok(!shown.includes(PLATFORM) && !shown.includes(TENANT));
});

test('an unreadable original is a problem, never a document', () => {
  for (const text of ['', '{', '[]', 'null', '{}', '{"auths":null}', '{"auths":[]}']) {
    const merged = mergePullSecrets({ original: redact(text), additional: redact(config(TENANT, ['r.io'])) });
    assert.equal(merged.ok, false, text);
  }
});

test('a namespace that the platform writes with a scheme is read alike by both', () => {
  const merged = merge(['https://quay.io/team/'], ['quay.io']);
  assert.deepEqual(users(reveal(merged.text), 'quay.io/team/app'), {
    kubelet: ['platform', 'tenant'],
    crio: 'platform',
  });
});

test('two namespaces of the platform that differ by scheme alone: one gets the plain key, the other stays', () => {
  const { text, entries } = merge(['http://quay.io/team', 'https://quay.io/team'], []);
  assert.deepEqual(Object.keys(JSON.parse(reveal(text)).auths), ['https://quay.io/team', 'quay.io/team']);
  assert.deepEqual(
    entries.map(({ key }) => key),
    ['https://quay.io/team', 'quay.io/team'],
  );
});

test('a broken entry of the platform keeps its registry', () => {
  const merged = mergePullSecrets({
    original: redact('{"auths":{"quay.io":{"auth":"!"}}}'),
    additional: redact(config(TENANT, ['quay.io'])),
  });
  assert.ok(merged.ok);
  assert.equal(reveal(merged.text), '{"auths":{}}');
  assert.deepEqual(
    merged.verdicts.map((one) => one.verdict),
    ['Shadowed'],
  );
});

test('what was good stays in use when it turns bad, entry by entry', () => {
  const lastGood = {
    text: redact(config(PLATFORM, ['p.io', 'q.io', 'a.io', 'b.io'])),
    keys: ['a.io', 'b.io'],
  };
  const original = redact(`{"auths":{"p.io":{"auth":"!"},"q.io":{"auth":"${PLATFORM}"}}}`);
  const additional = redact(`{"auths":{"a.io":{"auth":"!"},"c.io":{"auth":"${TENANT}"}}}`);
  const merged = mergePullSecrets({ original, additional, lastGood });
  assert.ok(merged.ok);
  assert.deepEqual(
    merged.entries.map(({ key, source }) => `${key} ${source}`),
    ['a.io lastGood', 'c.io additional', 'p.io lastGood', 'q.io original'],
  );
  assert.match(merged.verdicts[0]?.message ?? '', /last valid one stays in use/);
  assert.match(merged.originalVerdicts[0]?.message ?? '', /last valid one stays in use/);
  const unreadable = mergePullSecrets({ original, additional: redact('{'), lastGood });
  assert.deepEqual(unreadable.ok && unreadable.entries.map(({ key }) => key), [
    'a.io',
    'b.io',
    'p.io',
    'q.io',
  ]);
});

test('the last good entry of the tenant yields to what the platform names now', () => {
  const lastGood = { text: redact(config(TENANT, ['a.io'])), keys: ['a.io'] };
  const merged = mergePullSecrets({
    original: redact(config(PLATFORM, ['https://a.io'])),
    additional: redact('{'),
    lastGood,
  });
  assert.deepEqual(merged.ok && merged.entries.map(({ key, source }) => [key, source]), [
    ['https://a.io', 'original'],
  ]);
});

const KEY = fc
  .tuple(
    fc.constantFrom('', '', 'https://', 'http://', 'HTTPS://'),
    fc.constantFrom(
      'quay.io',
      'Quay.io',
      'r.io',
      'r.io:443',
      'r.io:80',
      'docker.io',
      'index.docker.io',
      '*.io',
      'a.r.io',
    ),
    fc.constantFrom('', '', '/', '/v1/', '/v2', '/team', '/team/', '/team/app', '//'),
  )
  .map((parts) => parts.join(''));
const KEYS = fc.uniqueArray(KEY, { maxLength: 6 });
const IMAGES = [
  'quay.io/team/app',
  'quay.io/x',
  'r.io/team/app',
  'r.io/x',
  'docker.io/library/nginx',
  'docker.io/team/app',
  'a.r.io/x',
];

test('merging the result again changes nothing', () => {
  forAll({}, KEYS, KEYS, (platform, tenant) => {
    const once = reveal(merge(platform, tenant).text);
    const again = mergePullSecrets({ original: redact(once), additional: redact(config(TENANT, tenant)) });
    assert.equal(again.ok && reveal(again.text), once);
  });
});

test('the original always wins: every entry of it is in the result, and no other of the same meaning', () => {
  forAll({}, KEYS, KEYS, (platform, tenant) => {
    const { auths } = JSON.parse(reveal(merge(platform, tenant).text)) as {
      auths: Record<string, { auth: string }>;
    };
    const mine = new Set(platform.map((key) => registryKey(key).meaning));
    for (const key of platform) {
      const { portable } = registryKey(key);
      assert.equal((auths[key] ?? auths[portable])?.auth, PLATFORM);
    }
    for (const [key, { auth }] of Object.entries(auths)) {
      if (auth === TENANT) assert.ok(!mine.has(registryKey(key).meaning), key);
    }
  });
});

test('where the platform alone names the host, its credential is the first one tried', () => {
  fc.assert(
    fc.property(KEYS, KEYS, fc.constantFrom(...IMAGES), (platform, tenant, image) => {
      const hostOnly = tenant.filter((key) => !registryKey(key).meaning.includes('/'));
      const exact = platform.filter((key) => !key.includes('*') && registryKey(key).identities.length === 1);
      // If the platform has two spellings of a key, CRI-O's choice is random even before the merge.
      fc.pre(new Set(exact.map((key) => registryKey(key).portable)).size === exact.length);
      const before = users(reveal(merge(exact, []).text), image);
      const after = users(reveal(merge(exact, hostOnly).text), image);
      assert.equal(before.kubelet.length > 0 ? after.kubelet[0] : 'platform', 'platform');
      if (before.crio === 'platform') assert.equal(after.crio, 'platform');
    }),
    { numRuns: 400 },
  );
});
