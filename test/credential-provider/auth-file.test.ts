/** Auth files of namespaces: keys and credentials of entries, the choice for each source, and entries from the node's file. */
import assert from 'node:assert/strict';
import { registryKey } from '../../runtime/core/docker-config/registry-key.ts';
import { redact, reveal } from '../../runtime/core/redacted.ts';
import {
  authFile,
  type Choice,
  canonicalKey,
  chooseCredentials,
  collectOffers,
  credentialOf,
  type GlobalAuth,
  globalCovers,
  type NamespacePullSecret,
  NO_GLOBAL_AUTH,
  parseGlobalAuth,
  writerOf,
} from '../../runtime/credential-provider/auth-file.ts';
import { plantedAuth } from '../support/canary.ts';
import { jsonNode } from '../support/json-node.ts';
import { table, test } from '../support/suite.ts';

test('keys are spelled as the complete judgement spells them, host in lower case', () => {
  const schemes = ['', 'https://', 'http://', 'HTTPS://'];
  const hosts = [
    'quay.io',
    'Mirror.Example.com',
    'docker.io',
    'index.docker.io',
    'registry-1.docker.io',
    'localhost',
    '127.0.0.1',
  ];
  const ports = ['', ':5000'];
  const paths = ['', '/', '/v1/', '/v2/', '/v1', '/v2', '/v1x', '/team', '/team/', '/team/app', '/v2/team'];
  const keys = schemes.flatMap((scheme) =>
    hosts.flatMap((host) => ports.flatMap((port) => paths.map((path) => scheme + host + port + path))),
  );
  const differing = keys.filter((key) => {
    const { portable } = registryKey(key);
    const [host = '', ...rest] = portable.split('/');
    return canonicalKey(key) !== [host.toLowerCase(), ...rest].join('/');
  });
  assert.deepEqual(differing, []);
});

const base64 = (text: string): string => Buffer.from(text).toString('base64');
/** Entries, with the resulting `user:password` or the error. */
const ENTRIES: Readonly<Record<string, readonly [entry: unknown, gives: string | RegExp]>> = {
  padded: [{ auth: base64('u:p') }, 'u:p'],
  'a user name and a password': [{ username: 'u', password: 'p:q' }, 'u:p:q'],
  'a password without a user name': [{ username: '', password: 'p' }, /neither auth nor username/],
  'a user name without a password': [{ username: 'u', password: '' }, /neither auth nor username/],
  'a user name with a colon': [{ username: 'u:v', password: 'p' }, /neither auth nor username/],
  'without padding': [{ auth: base64('u:p1').replace(/=+$/, '') }, 'u:p1'],
  'the URL-safe alphabet': [{ auth: Buffer.from('u:??>>').toString('base64url') }, 'u:??>>'],
  'line breaks': [{ auth: `${base64('u:p').slice(0, 2)}\n${base64('u:p').slice(2)}` }, 'u:p'],
  'a colon in the password': [{ auth: base64('u:a:b') }, 'u:a:b'],
  'NUL at the end, which the runtime trims': [{ auth: base64('u:p\0\0') }, 'u:p'],
  'a password beyond ASCII': [{ username: 'u', password: 'pä' }, 'u:pä'],
  'broken auth beside user and password': [{ auth: '!', username: 'u', password: 'p' }, 'u:p'],
  'an identity token alone, which the runtime reads beside a pair only': [{ identitytoken: 't' }, '<token>:'],
  'no colon': [{ auth: base64('up') }, /not base64 of "user:password"/],
  'only a colon': [{ auth: base64(':') }, /not base64/],
  'no password': [{ auth: base64('u:') }, /not base64/],
  nothing: [{}, /neither auth nor username/],
  null: [null, /not an object/],
};
table(
  test,
  Object.entries(ENTRIES).map(([name, [entry, gives]]) => ({
    name,
    reason: 'tools write all of these, and an empty credential is never written',
    entry,
    gives,
  })),
  ({ entry, gives }) => {
    const credential = credentialOf(jsonNode(entry));
    if (typeof credential === 'string') assert.match(credential, gives as RegExp);
    else assert.equal(Buffer.from(reveal(credential.auth), 'base64').toString('utf8'), gives);
  },
);

const REPOSITORY = 'mirror.example.com/team/app';
const SOURCES = [{ repository: REPOSITORY, kind: 'mirror' }] as const;

/** A secret with an entry per key; the value names its credential. */
function secret(name: string, entries: Readonly<Record<string, string>>): NamespacePullSecret {
  const auths = Object.fromEntries(
    Object.entries(entries).map(([key, label]) => [key, { auth: plantedAuth(label) }]),
  );
  return {
    name,
    type: 'kubernetes.io/dockerconfigjson',
    body: redact(Buffer.from(JSON.stringify({ auths })).toString('base64')),
  };
}

/** The chosen key, its Secret, the Secrets not chosen, and the credential. */
function chosen(secrets: readonly NamespacePullSecret[], order: readonly string[] = []): readonly unknown[] {
  const { entries } = chooseCredentials(collectOffers(secrets), SOURCES, order);
  return entries.map(({ key, secret: from, passedOver, credential }) => ({
    key,
    from,
    passedOver,
    auth: reveal(credential.auth),
  }));
}

const KEY = 'mirror.example.com';

test('the order that is given counts, then the name, whatever order the secrets come in', () => {
  const secrets = ['c', 'a', 'd', 'b'].map((name) => secret(name, { [KEY]: name }));
  for (const given of [secrets, secrets.toReversed()]) {
    assert.deepEqual(chosen(given, ['d', 'b']), [
      { key: KEY, from: 'd', passedOver: ['b', 'a', 'c'], auth: plantedAuth('d') },
    ]);
    assert.deepEqual(chosen(given), [
      { key: KEY, from: 'a', passedOver: ['b', 'c', 'd'], auth: plantedAuth('a') },
    ]);
  }
});

test('a secret that says the same is not passed over', () => {
  const secrets = [
    secret('a', { [KEY]: 'one' }),
    secret('b', { [KEY]: 'one' }),
    secret('c', { [KEY]: 'two' }),
  ];
  assert.deepEqual(chosen(secrets), [{ key: KEY, from: 'a', passedOver: ['c'], auth: plantedAuth('one') }]);
});

test('two spellings in one secret: the canonical one counts, in any position', () => {
  const odd = `https://${KEY}/`;
  for (const entries of [
    { [odd]: 'odd', [KEY]: 'plain' },
    { [KEY]: 'plain', [odd]: 'odd' },
  ])
    assert.deepEqual(chosen([secret('a', entries)]), [
      { key: KEY, from: 'a', passedOver: [], auth: plantedAuth('plain') },
    ]);
});

test('two spellings in one secret, neither canonical: the first counts', () => {
  const entries = { [`https://${KEY}/`]: 'first', [`http://${KEY}`]: 'second' };
  assert.deepEqual(chosen([secret('a', entries)]), [
    { key: KEY, from: 'a', passedOver: [], auth: plantedAuth('first') },
  ]);
});

test('the most specific key wins, also of a secret that comes later', () => {
  const secrets = [secret('a', { [KEY]: 'host' }), secret('b', { [`${KEY}/team`]: 'team' })];
  assert.deepEqual(chosen(secrets), [
    { key: `${KEY}/team`, from: 'b', passedOver: [], auth: plantedAuth('team') },
  ]);
});

test('a document is read as the kubelet reads it: other cases of letters, the last of equal keys', () => {
  const body = (text: string): NamespacePullSecret => ({
    name: 'a',
    type: 'kubernetes.io/dockerconfigjson',
    body: redact(btoa(text)),
  });
  const [one, two] = [plantedAuth('one'), plantedAuth('two')];
  const twice = `{"AUTHS":{"${KEY}":{"auth":"${two}"},"${KEY}":{"AUTH":"${one}"}}}`;
  assert.deepEqual(chosen([body(twice)]), [{ key: KEY, from: 'a', passedOver: [], auth: one }]);
  for (const [text, said] of [
    ['{"auths":[]}', 'not a JSON object with entries'],
    ['{', 'not a JSON object with entries'],
    ['{"other":1}', 'it has no entries'],
  ] as const)
    assert.match(collectOffers([body(text)]).skipped.join(), new RegExp(said), text);
});

const TEAM = plantedAuth('team');
const NODE = plantedAuth('node');

/** A credential of the namespace for this key, which serves the repository. */
function choice(key: string): Choice {
  const credential = { auth: redact(TEAM) };
  return {
    entries: [{ key, secret: 'pull', credential, passedOver: [] }],
    keyBySource: new Map([[REPOSITORY, key]]),
    skipped: [],
  };
}

function node(document: unknown): GlobalAuth {
  const read = parseGlobalAuth(redact(JSON.stringify(document)));
  assert.ok(read !== undefined);
  return read;
}

/** Owner of each entry of the file. */
function entries(file: ReturnType<typeof authFile>): Readonly<Record<string, string>> {
  const { auths } = JSON.parse(reveal(file.text)) as { auths: Record<string, { auth: string }> };
  return Object.fromEntries(
    Object.entries(auths).map(([key, { auth }]) => [key, auth === TEAM ? 'team' : 'node']),
  );
}

const OTHER = 'quay.io/acme/app';

/** The file for an image with two pull sources: the namespace's mirror, and another registry. */
function written(key: string, document: unknown): ReturnType<typeof authFile> {
  const sources = [
    { repository: REPOSITORY, kind: 'mirror' },
    { repository: OTHER, kind: 'primary' },
  ] as const;
  return authFile({ choice: choice(key), sources, global: node(document) });
}

test('of the node’s entries there are those that another place of the image needs, and no others', () => {
  const auths = Object.fromEntries(
    ['quay.io', 'quay.io/acme', 'quay.io/other', 'https://quay.io/v1/', 'ghcr.io', 'quay.io.example.com'].map(
      (name) => [name, { auth: NODE, email: 'e' }],
    ),
  );
  const file = written('mirror.example.com', { auths, extra: 1 });
  assert.deepEqual(entries(file), {
    'https://quay.io/v1/': 'node',
    'mirror.example.com': 'team',
    'quay.io': 'node',
    'quay.io/acme': 'node',
  });
  assert.equal(file.entries, 4);
  const whole = JSON.parse(reveal(file.text)) as { auths: Record<string, unknown> };
  assert.deepEqual(whole.auths['quay.io'], { auth: NODE, email: 'e' });
  assert.deepEqual(Object.keys(whole), ['auths']);
});

test('an entry of the node for a place that the namespace serves gives way, however it is spelled', () => {
  for (const spelled of [
    'mirror.example.com',
    'mirror.example.com/team',
    REPOSITORY,
    'https://mirror.example.com',
    'http://mirror.example.com/v1/',
  ])
    for (const key of ['mirror.example.com', 'mirror.example.com/team'])
      assert.deepEqual(entries(written(key, { auths: { [spelled]: { auth: NODE } } })), { [key]: 'team' });
});

test('a key that is a URL counts by its host', () => {
  const file = written('mirror.example.com', { auths: { 'https://quay.io/elsewhere': { auth: NODE } } });
  assert.deepEqual(entries(file), { 'https://quay.io/elsewhere': 'node', 'mirror.example.com': 'team' });
});

test('credential helpers: those of hosts that the namespace does not serve and the image needs', () => {
  const credHelpers = { 'mirror.example.com': 'x', 'quay.io': 'y', 'ghcr.io': 'z' };
  const { text } = written('mirror.example.com', { auths: {}, credHelpers });
  assert.deepEqual(JSON.parse(reveal(text)).credHelpers, { 'quay.io': 'y' });
});

test('a record says who wrote the file, and the runtime passes it over', () => {
  const { text } = authFile({
    choice: choice('mirror.example.com'),
    sources: [],
    global: NO_GLOBAL_AUTH,
    by: 'team-a/app',
  });
  assert.equal(writerOf(text), 'team-a/app');
  for (const other of ['{', '[]', 'null', '{"auths":{}}', '{"pullwright.dev/record":{"by":1}}'])
    assert.equal(writerOf(redact(other)), undefined, other);
});

test("the node's file: no auths and null are none, everything else is no file", () => {
  for (const none of [{}, { auths: null }]) assert.equal(reveal(node(none).auths).size, 0);
  for (const text of ['{"auths":[]}', '{"auths":"x"}', '{"auths":1}', '[]', 'null', '{'])
    assert.equal(parseGlobalAuth(redact(text)), undefined, text);
});

test('what the runtime would give the file up for is not copied into it', () => {
  const auths = { 'quay.io': { auth: 5 }, 'quay.io/acme': 'x', 'quay.io/acme/app': { auth: NODE, x: [1] } };
  const file = written('mirror.example.com', { auths, credHelpers: { 'quay.io': 5 } });
  const whole = JSON.parse(reveal(file.text)) as { auths: Record<string, unknown> };
  assert.deepEqual(Object.keys(whole), ['auths']);
  assert.deepEqual(whole.auths, { 'mirror.example.com': { auth: TEAM }, [OTHER]: { auth: NODE } });
});

test('names of fields are read as the runtime reads them: without regard to case, the second adds to the first', () => {
  const text = `{"Auths":{"quay.io":{"auth":"${NODE}"}},"auths":{"quay.io/acme":{"Auth":"${NODE}"}},"CREDHELPERS":{"quay.io":"y"}}`;
  const global = parseGlobalAuth(redact(text));
  assert.deepEqual([...reveal(global?.auths ?? NO_GLOBAL_AUTH.auths).keys()], ['quay.io', 'quay.io/acme']);
  assert.deepEqual([...reveal(global?.helpers ?? NO_GLOBAL_AUTH.helpers)], [['quay.io', 'y']]);
});

test('the node covers a source by an entry for it or above it, or by a helper of its host', () => {
  const covers = (document: unknown): boolean => globalCovers(node(document), SOURCES);
  assert.ok(covers({ auths: { 'mirror.example.com/team': { auth: NODE } } }));
  assert.ok(covers({ auths: { 'https://mirror.example.com': { auth: NODE } } }));
  assert.ok(covers({ credHelpers: { 'mirror.example.com': 'x' } }));
  assert.ok(!covers({ auths: { 'mirror.example.com/other': { auth: NODE } } }));
  assert.ok(!covers({ auths: { 'quay.io': { auth: NODE } }, credHelpers: { 'quay.io': 'x' } }));
  assert.ok(!globalCovers(NO_GLOBAL_AUTH, SOURCES));
});
