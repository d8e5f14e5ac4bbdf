import assert from 'node:assert/strict';
import { redact, reveal } from '../../runtime/core/redacted.ts';
import {
  chooseCredentials,
  collectOffers,
  type NamespacePullSecret,
} from '../../runtime/credential-provider/auth-file.ts';
import { plantedAuth } from '../support/canary.ts';
import { suite } from '../support/suite.ts';

const test = suite('credentials of a namespace');
const SOURCES = [{ repository: 'mirror.example.com/team/app', kind: 'mirror' }] as const;

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

/** The chosen key, its secret, the ones that were passed over, and which credential it is. */
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

test('two spellings in one secret: the canonical one counts, wherever it stands', () => {
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
    ['{"auths":[]}', 'no JSON object with entries'],
    ['{', 'no JSON object with entries'],
    ['{"other":1}', 'it has no entries'],
  ] as const)
    assert.match(collectOffers([body(text)]).skipped.join(), new RegExp(said), text);
});

test.run();
