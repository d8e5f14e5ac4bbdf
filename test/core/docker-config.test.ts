import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { parseDockerConfig } from '../../runtime/core/docker-config/pull-secret.ts';
import { redact, reveal } from '../../runtime/core/redacted.ts';
import { plantedAuth, plantedPassword } from '../support/canary.ts';
import { canonicalDockerConfig } from '../support/canonical-docker-config.ts';
import { forAll } from '../support/for-all.ts';
import { type Case, table, test } from '../support/suite.ts';

const AUTH = plantedAuth('config');
const entry = (body: string): string => `{"auths":{"r.io":${body}}}`;

interface Row extends Case {
  readonly text: string;
  /** Finding of the document, or of its only entry; undefined when there is none. */
  readonly found: string | undefined;
  readonly says?: RegExp;
}

const ROWS: readonly Row[] = [
  { name: 'empty', reason: 'a key without value', text: '', found: 'Empty', says: /is empty/ },
  { name: 'blank', reason: 'a newline is no document', text: ' \n', found: 'Empty' },
  {
    name: 'truncated',
    reason: 'a cut file',
    text: `{"auths":{"r.io":{"auth":"${AUTH}"`,
    found: 'NotJson',
    says: /unexpected end/,
  },
  { name: 'base64 twice', text: AUTH, found: 'NotJson', says: /beginning of value/ },
  { name: 'YAML', reason: 'not JSON', text: 'auths:\n  r.io: {}\n', found: 'NotJson' },
  { name: 'byte order mark', reason: 'editors of Windows', text: '\ufeff{"auths":{}}', found: 'NotJson' },
  { name: 'array', text: '[]', found: 'NotAnObject', says: /is an array/ },
  { name: 'null', text: 'null', found: 'NotAnObject', says: /is null/ },
  { name: 'auths is an array', text: '{"auths":[]}', found: 'AuthsNotAnObject', says: /"auths" as an array/ },
  { name: 'auths is a text', text: '{"auths":"x"}', found: 'AuthsNotAnObject' },
  { name: 'entry null', reason: 'docker writes it for a helper', text: entry('null'), found: 'NoCredential' },
  { name: 'entry empty', text: entry('{}'), found: 'NoCredential' },
  {
    name: 'only a token',
    reason: 'no consumer reads it alone',
    text: entry('{"identitytoken":"t"}'),
    found: 'NoCredential',
  },
  { name: 'entry text', text: entry(`"${AUTH}"`), found: 'EntryNotObject', says: /is a string/ },
  {
    name: 'auth a number',
    reason: 'poisons the whole document',
    text: entry('{"auth":1}'),
    found: 'FieldNotText',
    says: /"auth" as a number/,
  },
  {
    name: 'token a number',
    reason: 'poisons it for CRI-O',
    text: entry(`{"auth":"${AUTH}","identitytoken":1}`),
    found: 'FieldNotText',
  },
  {
    name: 'no colon',
    reason: 'a bare token',
    text: entry('{"auth":"bm9jb2xvbg=="}'),
    found: 'AuthWithoutColon',
    says: /colon/,
  },
  {
    name: 'URL-safe base64',
    reason: 'the wrong alphabet',
    text: entry('{"auth":"w7_Dvz8-OnB-"}'),
    found: 'AuthNotBase64',
    says: /byte 2/,
  },
  {
    name: 'not base64',
    reason: 'the password itself',
    text: entry(`{"auth":"robot:${plantedPassword('x')}"}`),
    found: 'AuthNotBase64',
  },
  { name: 'blank in the key', text: '{"auths":{"r io":{"auth":"dTpw"}}}', found: 'KeyInvalid' },
  { name: 'good', text: entry(`{"auth":"${AUTH}"}`), found: undefined },
  { name: 'unpadded', reason: 'the kubelet takes it', text: entry('{"auth":"dTpwcA"}'), found: undefined },
  {
    name: 'user and password',
    reason: 'the kubelet takes it',
    text: entry('{"username":"u","password":"p"}'),
    found: undefined,
  },
];

table(test, ROWS, ({ text, found, says }) => {
  const parsed = parseDockerConfig(redact(text));
  const fault = parsed.ok ? parsed.config.entries[0]?.fault : parsed.problem;
  assert.equal(fault?.reason, found);
  if (says !== undefined) assert.match(fault?.message ?? '', says);
});

test('a problem has its place', () => {
  const parsed = parseDockerConfig(redact('{\n  "auths": {\n    r.io: {}'));
  assert.deepEqual(!parsed.ok && parsed.problem.position, { line: 3, column: 5 });
  const good = parseDockerConfig(redact('{\n  "auths": {\n    "r.io": {} } }'));
  assert.deepEqual(good.ok && good.config.entries[0]?.position, { line: 3, column: 5 });
});

test('a key that stands twice counts once, the last time, and is reported', () => {
  const parsed = parseDockerConfig(redact('{"auths":{"r.io":{"auth":"YTpi"},"r.io":{"auth":"Yzpk"}}}'));
  assert.ok(parsed.ok);
  assert.deepEqual(
    parsed.config.entries.map((one) => one.kubelet?.username),
    ['c'],
  );
  assert.deepEqual(
    parsed.config.warnings.map((one) => [one.reason, one.subject]),
    [['DuplicateKey', 'r.io']],
  );
});

test('"auths": null takes back what stood before it, as in the consumers, and what follows counts again', () => {
  const keys = (text: string): readonly string[] => {
    const parsed = parseDockerConfig(redact(text));
    assert.ok(parsed.ok);
    return parsed.config.entries.map(({ key }) => key.written);
  };
  const auths = (registry: string): string => `"auths":{"${registry}":{"auth":"${AUTH}"}}`;
  assert.deepEqual(keys(`{${auths('a.io')},"auths":null}`), []);
  assert.deepEqual(keys(`{${auths('a.io')},"auths":null,${auths('b.io')}}`), ['b.io']);
  assert.deepEqual(keys(`{${auths('a.io')},${auths('b.io')}}`), ['a.io', 'b.io']);
});

test('a field beside the auths that the kubelet cannot read is its fault, however good the entries are', () => {
  const entries = `"auths":{"r.io":{"auth":"${AUTH}"}}`;
  const faultOf = (text: string): string | undefined => {
    const parsed = parseDockerConfig(redact(text));
    assert.ok(parsed.ok);
    return parsed.config.kubeletFault;
  };
  assert.equal(faultOf(`{${entries}}`), undefined);
  assert.notEqual(faultOf(`{${entries},"HttpHeaders":[]}`), undefined);
});

test('AUTHS is read as the kubelet reads it, and reported', () => {
  const parsed = parseDockerConfig(redact('{"AUTHS":{"r.io":{"auth":"YTpi"}}}'));
  assert.ok(parsed.ok);
  assert.equal(parsed.config.entries.length, 1);
  assert.deepEqual(
    parsed.config.warnings.map((one) => one.reason),
    ['FieldCase'],
  );
});

test('a config shows no password', () => {
  const parsed = parseDockerConfig(redact(entry(`{"auth":"${AUTH}","password":"${plantedPassword('y')}"}`)));
  for (const shown of [inspect(parsed, { depth: 20 }), JSON.stringify(parsed)]) {
    assert.doesNotMatch(shown, /cAnArY/);
    assert.ok(!shown.includes(AUTH));
  }
});

test('the legacy format has its entries at the top', () => {
  const parsed = parseDockerConfig(redact('{"r.io":{"auth":"YTpi"},"auths":{}}'), 'dockercfg');
  assert.ok(parsed.ok);
  assert.deepEqual(
    parsed.config.entries.map((one) => one.key.written),
    ['r.io', 'auths'],
  );
});

const canonical = (text: string): string => {
  const parsed = parseDockerConfig(redact(text));
  return parsed.ok ? reveal(canonicalDockerConfig(parsed.config)) : text;
};

test('canonical form: auth in the spelling that both consumers read, other fields kept', () => {
  assert.equal(
    canonical(
      '{"x":12345678901234567890,"auths":{"b":{"auth":"dTpw\\ncA","n":1.50},"a":{"password":"p","username":"u"}}}',
    ),
    '{"auths":{"a":{"auth":"dTpw","password":"p","username":"u"},"b":{"auth":"dTpwcA==","n":1.5}},"x":12345678901234567890}',
  );
});

const document = fc.oneof(
  fc.json(),
  fc.string({ unit: 'binary' }),
  fc
    .dictionary(
      fc.string(),
      fc.oneof(
        fc.jsonValue(),
        fc.record({ auth: fc.base64String(), username: fc.string() }, { requiredKeys: [] }),
      ),
    )
    .map((auths) => JSON.stringify({ auths })),
);

test('every text gives a config or a problem, in both formats', () => {
  forAll({ numRuns: 500 }, document, fc.constantFrom('config.json', 'dockercfg'), (text, format) => {
    const parsed = parseDockerConfig(redact(text), format);
    assert.equal(
      typeof (parsed.ok ? parsed.config.hasAuths : parsed.problem.message),
      parsed.ok ? 'boolean' : 'string',
    );
  });
});

test('the canonical form is its own canonical form, and the kubelet reads all of it', () => {
  forAll({ numRuns: 500 }, document, (text) => {
    fc.pre(parseDockerConfig(redact(text)).ok);
    const once = canonical(text);
    assert.equal(canonical(once), once);
    const parsed = parseDockerConfig(redact(once));
    assert.ok(parsed.ok);
    assert.deepEqual([parsed.config.kubeletFault, parsed.config.containersFault], [undefined, undefined]);
  });
});
