import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type CredentialExpiry, credentialExpiry } from '../../runtime/core/docker-config/expiry.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { plantedPassword } from '../support/canary.ts';
import { forAll } from '../support/for-all.ts';
import { type Case, table, test } from '../support/suite.ts';

const END = 1_900_000_000;
const WRITTEN = '2030-03-17T17:46:40Z';

function jwt(claims: unknown, header: unknown = { alg: 'RS256', typ: 'JWT' }): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part(header)}.${part(claims)}.${Buffer.from(plantedPassword('signature')).toString('base64url')}`;
}

function ecr(fields: object): string {
  return Buffer.from(JSON.stringify({ payload: plantedPassword('ecr'), version: '2', ...fields })).toString(
    'base64',
  );
}

interface Row extends Case {
  /** @default {'me'} */
  readonly username?: string;
  readonly password: string;
  readonly identityToken?: string;
  /** @default {{ kind: 'lasting' }} */
  readonly wanted?: CredentialExpiry;
}

const rows: readonly Row[] = [
  {
    name: 'a token of a service account',
    reason: 'JSON Web Tokens say when they end',
    username: 'builder',
    password: jwt({ exp: END, iat: 1 }),
    wanted: { kind: 'jwt', expiresAt: WRITTEN },
  },
  {
    name: 'a token without an end',
    reason: "tokens of Red Hat's registry have none",
    username: '|uhc-pool-1',
    password: jwt({ iat: 1 }),
    wanted: { kind: 'jwt' },
  },
  {
    name: "a refresh token of Azure's registry as password",
    reason: 'the user is all zeros then',
    username: '00000000-0000-0000-0000-000000000000',
    password: jwt({ exp: END, grant_type: 'refresh_token' }),
    wanted: { kind: 'jwt', expiresAt: WRITTEN },
  },
  {
    name: 'an identity token',
    reason: 'it is what is sent, so that the password does not count',
    password: 'word',
    identityToken: jwt({ exp: END }),
    wanted: { kind: 'jwt', expiresAt: WRITTEN },
  },
  {
    name: "Amazon's token",
    reason: 'base64 of JSON with seconds',
    username: 'AWS',
    password: ecr({ type: 'DATA_KEY', expiration: END }),
    wanted: { kind: 'ecr-token', expiresAt: WRITTEN },
  },
  {
    name: "Amazon's token with an end that is no number",
    username: 'AWS',
    password: ecr({ expiration: '1900000000' }),
    wanted: { kind: 'ecr-token' },
  },
  {
    name: "Google's access token",
    reason: 'opaque: known to be short-lived, not until when',
    username: 'oauth2accesstoken',
    password: 'ya29.a0AfH6SMBx',
    wanted: { kind: 'google-access-token' },
  },
  {
    name: "Google's service account key",
    username: '_json_key',
    password: JSON.stringify({ type: 'service_account', private_key: plantedPassword('key') }),
  },
  {
    name: "Quay's robot",
    username: 'team+robot',
    password: plantedPassword('robot'),
  },
  {
    name: 'two dots that are no token',
    reason: 'a password may hold dots',
    password: 'a.b.c',
  },
  {
    name: 'an end beyond all time',
    reason: 'a date that cannot be written is none',
    password: jwt({ exp: 1e300 }),
    wanted: { kind: 'jwt' },
  },
  {
    name: 'the last second that can be written',
    password: jwt({ exp: 253_402_300_799 }),
    wanted: { kind: 'jwt', expiresAt: '9999-12-31T23:59:59Z' },
  },
  {
    name: 'a token with a part that is no base64url',
    reason: 'a password may look almost like a token',
    password: `${jwt({ exp: 1 }).split('.').slice(0, 2).join('.')}.not+this`,
  },
  { name: 'an end before all time', password: jwt({ exp: -5 }), wanted: { kind: 'jwt' } },
];

table(test, rows, ({ username = 'me', password, identityToken, wanted = { kind: 'lasting' } }) => {
  const found = credentialExpiry({
    username,
    password: redact(password),
    ...(identityToken === undefined ? {} : { identityToken: redact(identityToken) }),
  });
  assert.deepEqual(found, wanted);
});

test('is total', () => {
  const texts = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.json().map((text) => Buffer.from(text).toString('base64')),
    fc.tuple(fc.json(), fc.json()).map(([a, b]) => jwt(JSON.parse(a), JSON.parse(b))),
  );
  forAll({}, fc.constantFrom('AWS', 'me', ''), texts, (username, text) => {
    const { expiresAt } = credentialExpiry({ username, password: redact(text) });
    assert.ok(expiresAt === undefined || /^\d{4}-.*Z$/.test(expiresAt), 'no time');
  });
});
