import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { mergePullSecrets } from '../../runtime/core/docker-config/merge.ts';
import { redact, reveal } from '../../runtime/core/redacted.ts';
import { suite, table } from '../support/suite.ts';
import { config, merge, PLATFORM, TENANT } from './merge-case.ts';

const test = suite('mergePullSecrets');
interface Row {
  readonly name: string;
  readonly reason: string;
  readonly platform: string;
  readonly tenant: string;
  readonly verdict: string;
  /** Key under which the tenant's entry is written. */
  readonly as?: string;
}

const ROWS: readonly Row[] = [
  {
    name: 'the same key',
    reason: 'original wins',
    platform: 'quay.io',
    tenant: 'quay.io',
    verdict: 'Shadowed OriginalWins',
  },
  {
    name: 'a scheme',
    reason: 'the kubelet drops it',
    platform: 'quay.io',
    tenant: 'https://quay.io',
    verdict: 'Shadowed SpellingVariant',
  },
  {
    name: 'a scheme in capitals',
    reason: 'a spelling all the same',
    platform: 'quay.io',
    tenant: 'HTTP://quay.io',
    verdict: 'Shadowed SpellingVariant',
  },
  {
    name: 'a slash',
    reason: 'the kubelet drops it',
    platform: 'quay.io',
    tenant: 'quay.io/',
    verdict: 'Shadowed SpellingVariant',
  },
  {
    name: 'the API path',
    reason: 'the kubelet drops it',
    platform: 'quay.io',
    tenant: 'quay.io/v2/',
    verdict: 'Shadowed SpellingVariant',
  },
  {
    name: 'capitals',
    reason: 'the same host',
    platform: 'quay.io',
    tenant: 'Quay.IO',
    verdict: 'Shadowed SpellingVariant',
  },
  {
    name: 'the default port',
    reason: 'the same host',
    platform: 'quay.io',
    tenant: 'quay.io:443',
    verdict: 'Shadowed SpellingVariant',
  },
  {
    name: 'the default port at the platform',
    reason: 'both ways',
    platform: 'quay.io:443',
    tenant: 'quay.io',
    verdict: 'Shadowed SpellingVariant',
  },
  {
    name: 'user info',
    reason: 'the kubelet drops it',
    platform: 'quay.io',
    tenant: 'x@quay.io',
    verdict: 'Shadowed SpellingVariant',
  },
  {
    name: 'an escape',
    reason: 'the kubelet unescapes it',
    platform: 'quay.io/team',
    tenant: 'quay.io/%74eam',
    verdict: 'Shadowed SpellingVariant',
  },
  {
    name: 'Docker Hub by another name',
    reason: 'would hide the fall-back',
    platform: 'https://index.docker.io/v1/',
    tenant: 'docker.io',
    verdict: 'Shadowed SpellingVariant',
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
    verdict: 'Shadowed SpellingVariant',
  },
  {
    name: 'a namespace below',
    reason: 'allowed on purpose',
    platform: 'quay.io',
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
    platform: 'quay.io',
    tenant: 'quay.io:8443',
    verdict: 'Accepted Added',
    as: 'quay.io:8443',
  },
  {
    name: 'a host that begins alike',
    reason: 'another registry',
    platform: 'quay.io',
    tenant: 'quay.io.evil.example',
    verdict: 'Accepted Added',
    as: 'quay.io.evil.example',
  },
  {
    name: 'a key that matches nothing',
    reason: 'images have no tag in a look-up',
    platform: 'quay.io',
    tenant: 'quay.io/team/app:1',
    verdict: 'Rejected KeyInvalid',
  },
];

table(test, ROWS, ({ platform, tenant, verdict, as }) => {
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

test.run();
