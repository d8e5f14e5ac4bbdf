/** Random auth files, and the names that are looked up in them. */
import fc from 'fast-check';
import { join, one, words } from '../pieces.ts';

export interface AuthQuestion {
  readonly text: string;
  readonly legacy: boolean;
  readonly keys: readonly string[];
}

const HOST = words(
  'a.io a.io b.a.io docker.io index.docker.io registry-1.docker.io localhost:5000 a.io:443 A.io m.io',
);
const PATH = one(
  '',
  '',
  '',
  '',
  '/team',
  '/team/app',
  '/te',
  '/v1/',
  '/v2/',
  '/v1',
  '/',
  '/team/',
  '//team',
  '/library',
);
const SCHEME = one('', '', '', '', 'https://', 'http://', 'HTTPS://', 'http://https://', 'https://http://');
const KEY = fc.oneof(
  { arbitrary: join(SCHEME, HOST, PATH), weight: 20 },
  one('', '/', 'https://', '*', 'a.io/*', 'team'),
);

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const AUTH = fc.oneof(
  {
    arbitrary: fc.tuple(fc.nat(30), fc.nat(3)).map(([user, word]) => base64(`u${user}:p${word}`)),
    weight: 30,
  },
  one(
    '',
    'dTpw',
    'dTpwcA==',
    'dTpwcA',
    'dTpw\n',
    'dT\npw',
    ' dTpw',
    'bm9jb2xvbg==',
    'OnA=',
    'dTo=',
    'Og==',
    '!!',
    'dTo_Pz8=',
    'dTpwAAA=',
    'dTpwOnE6',
    'w6k6w6k=',
  ),
);
const word = (...words: readonly string[]): fc.Arbitrary<string> =>
  one(...words).map((text) => JSON.stringify(text));
const FIELD = fc.oneof(
  { arbitrary: AUTH.map((auth) => `"auth":${JSON.stringify(auth)}`), weight: 150 },
  { arbitrary: join(fc.constant('"identitytoken":'), word('t1', 't2', '')), weight: 20 },
  {
    arbitrary: join(one('"username":', '"password":', '"email":', '"registrytoken":'), word('u', 'p', '')),
    weight: 30,
  },
  one('"Auth":"dTpw"', '"IdentityToken":"t3"', '"auth":null', '"other":{"a":1}'),
  one('"auth":1', '"auth":{}', '"identitytoken":[]', '"auth":"dTpx","auth":"dTpy"'),
);
const ENTRY = fc.oneof(
  {
    arbitrary: fc.array(FIELD, { minLength: 1, maxLength: 2 }).map((fields) => `{${fields.join(',')}}`),
    weight: 150,
  },
  one('null', '{}', '"dTpw"', '1', '[]'),
);
const members = (entry: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .array(fc.tuple(KEY, entry), { maxLength: 6 })
    .map((list) => `{${list.map(([key, text]) => `${JSON.stringify(key)}:${text}`).join(',')}}`);
const HELPERS = fc
  .array(fc.tuple(fc.oneof(HOST, KEY), one('ecr', 'gcr', '')), { maxLength: 2 })
  .map((list) => `{${list.map(([host, name]) => `${JSON.stringify(host)}:"${name}"`).join(',')}}`);
const MEMBER = fc.oneof(
  { arbitrary: join(fc.constant('"auths":'), members(ENTRY)), weight: 150 },
  { arbitrary: join(fc.constant('"credHelpers":'), HELPERS), weight: 15 },
  join(one('"Auths":', '"AUTHS":'), members(ENTRY)),
  one(
    '"auths":null',
    '"credsStore":"desktop"',
    '"credHelpers":null',
    '"HttpHeaders":{"a":"b"}',
    '"auths":[]',
    '"credHelpers":{"a.io":1}',
  ),
);
const DOCUMENT = fc.oneof(
  {
    arbitrary: fc.array(MEMBER, { minLength: 1, maxLength: 2 }).map((list) => `{${list.join(',')}}`),
    weight: 80,
  },
  one('', 'null', '[]', '{', '{}', '{"auths":{}} x', '\ufeff{"auths":{}}'),
);
const ASKED = fc.oneof(
  {
    arbitrary: join(
      words('a.io a.io b.a.io docker.io index.docker.io localhost:5000 a.io:443 A.io m.io'),
      one('', '/team', '/team/app', '/team/app/deep', '/te', '/library/nginx', '/v1/x', '/v2'),
    ),
    weight: 20,
  },
  one('https://a.io', 'a.io/team:1', 'a.io/team@x', '', 'registry-1.docker.io/a/b', 'team'),
);

/** One auth file with some names. */
export const AUTH_QUESTION: fc.Arbitrary<AuthQuestion> = fc
  .record({
    legacy: fc.nat(9).map((roll) => roll === 0),
    document: DOCUMENT,
    entries: members(ENTRY),
    keys: fc.array(ASKED, { minLength: 1, maxLength: 5 }),
  })
  .map(({ legacy, document, entries, keys }) => ({ legacy, keys, text: legacy ? entries : document }));
