/** Specs that are rejected before any Job: a table, and a check that the pull secret validator finds no error in accepted ones. */

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { redact } from '../../runtime/core/redacted.ts';
import { validateDockerConfig } from '../../runtime/diagnose/checks/docker-config.ts';
import { judgePullSecret, MAX_PULL_SECRET_BYTES } from '../../runtime/pull-secret-adapter/pull-secret.ts';
import { findPlanted, plantedAuth, plantedPassword } from '../support/canary.ts';
import { forAll } from '../support/for-all.ts';
import { table, test } from '../support/suite.ts';

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

const entry = (value: unknown, key = 'quay.io'): string => JSON.stringify({ auths: { [key]: value } });
const secret = plantedPassword('judge');

/** Name, text, and the problem; absent: accepted. */
const ROWS: readonly (readonly [name: string, text: string, problem?: RegExp])[] = [
  ['quotes and newlines', `{\n "auths":\t{"quay.io": {"auth": "${auth}", "email": "a\\"b\\n"}}\n}\n`],
  ['64 KiB', sized(MAX_PULL_SECRET_BYTES)],
  ['one byte more', sized(MAX_PULL_SECRET_BYTES + 1), /has 65537 bytes: at most 65536/],
  ['65 KiB', sized(66_560), /has 66560 bytes/],
  ['base64 of a good document', base64(entry({ auth })), /the value is base64-encoded/],
  [
    'base64 in lines',
    `${base64(entry({ auth })).replaceAll(/.{20}/g, '$&\n')}\n`,
    /the value is base64-encoded/,
  ],
  ['base64 of something else', base64('{"a":1}'), /^invalid JSON: [^;]*$/],
  ['a good document in a text', JSON.stringify(entry({ auth })), /the value is a JSON string/],
  [
    'a whole Secret',
    JSON.stringify({ kind: 'Secret', data: { '.dockerconfigjson': base64(entry({ auth })) } }),
    /the value is a Kubernetes Secret/,
  ],
  [
    'a whole Secret in YAML',
    `apiVersion: v1\nkind: Secret\ndata:\n  .dockerconfigjson: ${base64(entry({ auth }))}\n`,
    /the value is a Kubernetes Secret/,
  ],
  ['entries without "auths"', JSON.stringify({ 'quay.io': { auth } }), /put them under "auths"/],
  ['half a character', '{"auths":{"\ud800":{}}}', /not valid Unicode/],
  [
    'a value in broken JSON',
    `{"auths":{"quay.io":{"auth":${secret}}}}`,
    /^invalid JSON: .* at line 1, column 29$/,
  ],
  ['cut off', entry({ auth }).slice(0, -3), /^invalid JSON/],
  ['a list', `["${secret}"]`, /^invalid JSON: the pull secret is an array/],
  ['auths is a text', `{"auths":"${secret}"}`, /^'auths' must be/],
  ['no auths', `{"token":"${secret}"}`, /^missing 'auths' key/],
  ['entry is a text', entry(auth), /^entry "quay.io" is a string, expected an object$/],
  [
    'auth is not base64',
    entry({ auth: `robot:${secret}` }),
    /^entry "quay.io" has an "auth" that is not base64/,
  ],
  ['auth without padding', entry({ auth: base64('robot:ab').replaceAll('=', '') }), /cannot read|not base64/],
  ['auth without colon', entry({ auth: base64(secret) }), /^entry "quay.io" has an "auth" without a colon/],
  ['no user', entry({ auth: base64(`:${secret}`) }), /^entry "quay.io" has no "auth" with a user name$/],
  [
    'user name and password only',
    entry({ username: 'robot', password: secret }),
    /has no "auth" with a user name/,
  ],
  ['no registry', entry({ auth }, ' '), /^entry " "/],
  ['very long key', entry({ auth }, `a b${'x'.repeat(5000)}`), /^.{1,400}$/],
  [
    'one bad of two',
    JSON.stringify({ auths: { 'quay.io': { auth }, 'r.io': {} } }),
    /^entry "r.io" has no "auth"/,
  ],
  [
    'HttpHeaders of a wrong type',
    JSON.stringify({ auths: { 'quay.io': { auth } }, HttpHeaders: [secret] }),
    /the kubelet discards/,
  ],
];

const CASES = ROWS.map(([name, text, problem]) => ({
  name,
  reason: 'named, and never shown',
  text,
  problem,
}));

table(test, CASES, ({ text, problem }) => {
  const problems = judgePullSecret(redact(text));
  assert.equal(findPlanted(problems.join('\n')), undefined);
  if (problem === undefined) assert.deepEqual(problems, []);
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
  forAll({ numRuns: 2000, seed: 9 }, document, (given) => {
    const text = redact(JSON.stringify(given));
    if (judgePullSecret(text).length > 0) return;
    accepted += 1;
    assert.deepEqual(
      validateDockerConfig(text).filter(({ severity }) => severity === 'error'),
      [],
    );
  });
  assert.ok(accepted > 20, `only ${accepted} were accepted`);
});
