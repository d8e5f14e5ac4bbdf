/** What is refused before any Job: one table, and that nothing passes which the validator of pull secrets calls an error. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { redact } from '../../runtime/core/redacted.ts';
import { validateDockerConfig } from '../../runtime/diagnose/checks/docker-config.ts';
import { judgePullSecret, MAX_PULL_SECRET_BYTES } from '../../runtime/pull-secret-adapter/pull-secret.ts';
import { findPlanted, plantedAuth, plantedPassword } from '../support/canary.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('judgePullSecret');
const auth = plantedAuth('judge');

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** A good document of exactly this many bytes. */
function sized(bytes: number): string {
  const document = (pad: number): string =>
    JSON.stringify({ auths: { 'quay.io': { auth, email: 'x'.repeat(pad) } } });
  return document(bytes - document(0).length);
}

interface Row extends Case {
  readonly text: string;
  /** Absent: accepted. */
  readonly problem?: RegExp;
}

const entry = (value: unknown, key = 'quay.io'): string => JSON.stringify({ auths: { [key]: value } });
const secret = plantedPassword('judge');

const ROWS: readonly Row[] = [
  {
    name: 'quotes and newlines',
    reason: 'bytes are stored as given',
    text: `{\n "auths":\t{"quay.io": {"auth": "${auth}", "email": "a\\"b\\n"}}\n}\n`,
  },
  { name: '64 KiB', reason: 'the largest that fits', text: sized(MAX_PULL_SECRET_BYTES) },
  {
    name: 'one byte more',
    reason: 'refused by Secret Manager',
    text: sized(MAX_PULL_SECRET_BYTES + 1),
    problem: /has 65537 bytes: at most 65536/,
  },
  { name: '65 KiB', reason: 'refused by Secret Manager', text: sized(66_560), problem: /has 66560 bytes/ },
  {
    name: 'base64 of a good document',
    reason: 'copied out of a Secret',
    text: base64(entry({ auth })),
    problem: /it is base64 of a pull secret/,
  },
  {
    name: 'base64 in lines',
    reason: 'as the command writes it',
    text: `${base64(entry({ auth })).replaceAll(/.{20}/g, '$&\n')}\n`,
    problem: /it is base64 of a pull secret/,
  },
  {
    name: 'base64 of something else',
    reason: 'nothing is known',
    text: base64('{"a":1}'),
    problem: /^invalid JSON: [^;]*$/,
  },
  {
    name: 'a good document in a text',
    reason: 'encoded twice',
    text: JSON.stringify(entry({ auth })),
    problem: /it is JSON in a text/,
  },
  {
    name: 'a whole Secret',
    reason: 'the manifest instead of what is in it',
    text: JSON.stringify({ kind: 'Secret', data: { '.dockerconfigjson': base64(entry({ auth })) } }),
    problem: /it is a Secret of Kubernetes/,
  },
  {
    name: 'a whole Secret in YAML',
    reason: 'the same',
    text: `apiVersion: v1\nkind: Secret\ndata:\n  .dockerconfigjson: ${base64(entry({ auth }))}\n`,
    problem: /it is a Secret of Kubernetes/,
  },
  {
    name: 'entries without "auths"',
    reason: 'one level too deep',
    text: JSON.stringify({ 'quay.io': { auth } }),
    problem: /put them under "auths"/,
  },
  {
    name: 'half a character',
    reason: 'cannot be written as UTF-8',
    text: '{"auths":{"\ud800":{}}}',
    problem: /not valid Unicode/,
  },
  {
    name: 'a value in broken JSON',
    reason: 'the place, never the text',
    text: `{"auths":{"quay.io":{"auth":${secret}}}}`,
    problem: /^invalid JSON: .* at line 1, column 29$/,
  },
  { name: 'cut off', reason: 'half a paste', text: entry({ auth }).slice(0, -3), problem: /^invalid JSON/ },
  {
    name: 'a list',
    reason: 'no object',
    text: `["${secret}"]`,
    problem: /^invalid JSON: the pull secret is an array/,
  },
  {
    name: 'auths is a text',
    reason: 'no object',
    text: `{"auths":"${secret}"}`,
    problem: /^'auths' must be/,
  },
  {
    name: 'no auths',
    reason: 'another file',
    text: `{"token":"${secret}"}`,
    problem: /^missing 'auths' key/,
  },
  {
    name: 'entry is a text',
    reason: 'auth at the wrong level',
    text: entry(auth),
    problem: /^entry "quay.io" is a text, expected an object$/,
  },
  {
    name: 'auth is not base64',
    reason: 'clear text',
    text: entry({ auth: `robot:${secret}` }),
    problem: /^entry "quay.io" has an "auth" that is not base64/,
  },
  {
    name: 'auth without padding',
    reason: 'CRI-O refuses what the kubelet takes',
    text: entry({ auth: base64('robot:ab').replaceAll('=', '') }),
    problem: /cannot read|not base64/,
  },
  {
    name: 'auth without colon',
    reason: 'password only',
    text: entry({ auth: base64(secret) }),
    problem: /^entry "quay.io" has an "auth" without a colon/,
  },
  {
    name: 'no user',
    reason: 'CRI-O goes on without',
    text: entry({ auth: base64(`:${secret}`) }),
    problem: /^entry "quay.io" has no "auth" with a user name$/,
  },
  {
    name: 'user name and password only',
    reason: 'CRI-O reads no other field than auth',
    text: entry({ username: 'robot', password: secret }),
    problem: /has no "auth" with a user name/,
  },
  { name: 'no registry', reason: 'no image can match', text: entry({ auth }, ' '), problem: /^entry " "/ },
  {
    name: 'very long key',
    reason: 'a status has its limits',
    text: entry({ auth }, `a b${'x'.repeat(5000)}`),
    problem: /^.{1,400}$/,
  },
  {
    name: 'one bad of two',
    reason: 'what works in part would be reported as available',
    text: JSON.stringify({ auths: { 'quay.io': { auth }, 'r.io': {} } }),
    problem: /^entry "r.io" has no "auth"/,
  },
  {
    name: 'HttpHeaders of a wrong type',
    reason: 'the kubelet gives up the document',
    text: JSON.stringify({ auths: { 'quay.io': { auth } }, HttpHeaders: [secret] }),
    problem: /the kubelet discards/,
  },
];

table(test, ROWS, ({ text, problem }) => {
  const { problems, registries } = judgePullSecret(redact(text));
  assert.equal(findPlanted(problems.join('\n')), undefined);
  if (problem === undefined) assert.deepEqual([problems, registries], [[], ['quay.io']]);
  else {
    assert.equal(problems.length, 1);
    assert.match(problems[0] ?? '', problem);
  }
});

test('nothing is accepted that the validator calls an error', () => {
  const value = fc.oneof(
    fc.record(
      {
        auth: fc.oneof(
          { weight: 6, arbitrary: fc.constant(base64('a:b')) },
          { weight: 1, arbitrary: fc.string() },
        ),
      },
      { requiredKeys: [] },
    ),
    fc.jsonValue(),
  );
  const key = fc.oneof(fc.constantFrom('quay.io', 'https://r.io/v1/', '*.example.com'), fc.string());
  const document = fc.oneof(fc.record({ auths: fc.dictionary(key, value, { maxKeys: 3 }) }), fc.jsonValue());
  let accepted = 0;
  fc.assert(
    fc.property(document, (given) => {
      const text = redact(JSON.stringify(given));
      if (judgePullSecret(text).problems.length > 0) return;
      accepted += 1;
      assert.deepEqual(
        validateDockerConfig(text).filter(({ severity }) => severity === 'error'),
        [],
      );
    }),
    { numRuns: 2000, seed: 9 },
  );
  assert.ok(accepted > 20, `only ${accepted} were accepted`);
});

test.run();
