/** Keys and credentials of one entry: the provider's short way agrees with the complete judgement of keys, and refuses what is empty. */
import assert from 'node:assert/strict';
import { registryKey } from '../../runtime/core/docker-config/registry-key.ts';
import { reveal } from '../../runtime/core/redacted.ts';
import { canonicalKey, credentialOf } from '../../runtime/credential-provider/auth-file.ts';
import { jsonNode } from '../support/json-node.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('entries of auth files');

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

interface Entry extends Case {
  readonly entry: unknown;
  /** `user:password` as it is written, or what is said. */
  readonly gives: string | RegExp;
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const entries: readonly Entry[] = [
  { name: 'padded', reason: 'the usual form', entry: { auth: base64('u:p') }, gives: 'u:p' },
  {
    name: 'a user name and a password',
    reason: 'the long form',
    entry: { username: 'u', password: 'p:q' },
    gives: 'u:p:q',
  },
  {
    name: 'a password without a user name',
    reason: 'half a pair is none',
    entry: { username: '', password: 'p' },
    gives: /neither auth nor username/,
  },
  {
    name: 'a user name without a password',
    reason: 'half a pair is none',
    entry: { username: 'u', password: '' },
    gives: /neither auth nor username/,
  },
  {
    name: 'a user name with a colon',
    reason: 'the border would move',
    entry: { username: 'u:v', password: 'p' },
    gives: /neither auth nor username/,
  },
  {
    name: 'unpadded',
    reason: 'some tools leave the padding out',
    entry: { auth: base64('u:p1').replace(/=+$/, '') },
    gives: 'u:p1',
  },
  {
    name: 'URL-safe',
    reason: 'some tools use that alphabet',
    entry: { auth: Buffer.from('u:??>>').toString('base64url') },
    gives: 'u:??>>',
  },
  {
    name: 'line breaks',
    reason: 'base64 of the command line has them',
    entry: { auth: `${base64('u:p').slice(0, 2)}\n${base64('u:p').slice(2)}` },
    gives: 'u:p',
  },
  {
    name: 'colon in the password',
    reason: 'the first colon counts',
    entry: { auth: base64('u:a:b') },
    gives: 'u:a:b',
  },
  {
    name: 'NUL at the end',
    reason: 'the runtime trims it',
    entry: { auth: base64('u:p\0\0') },
    gives: 'u:p',
  },
  { name: 'user and password', reason: 'no auth', entry: { username: 'u', password: 'pä' }, gives: 'u:pä' },
  {
    name: 'broken auth beside user and password',
    reason: 'the usable one counts',
    entry: { auth: '!', username: 'u', password: 'p' },
    gives: 'u:p',
  },
  {
    name: 'identity token alone',
    reason: 'the runtime reads it beside a pair only',
    entry: { identitytoken: 't' },
    gives: '<token>:',
  },
  {
    name: 'no colon',
    reason: 'never an empty credential',
    entry: { auth: base64('up') },
    gives: /no base64 of "user:password"/,
  },
  {
    name: 'only a colon',
    reason: 'never an empty credential',
    entry: { auth: base64(':') },
    gives: /no base64/,
  },
  {
    name: 'no password',
    reason: 'the runtime sends nothing for it',
    entry: { auth: base64('u:') },
    gives: /no base64/,
  },
  { name: 'nothing', reason: 'never an empty credential', entry: {}, gives: /neither auth nor username/ },
  { name: 'null', reason: 'no object', entry: null, gives: /no object/ },
];
table(test, entries, ({ entry, gives }) => {
  const credential = credentialOf(jsonNode(entry));
  if (typeof credential === 'string') assert.match(credential, gives as RegExp);
  else assert.equal(Buffer.from(reveal(credential.auth), 'base64').toString('utf8'), gives);
});

test.run();
