/** Random questions for the oracle: pieces that matter to one of the parsers, put together at random. */
import fc from 'fast-check';
import { words } from '../pieces.ts';

export interface AskedSecret {
  readonly Name: string;
  readonly Type: string;
  readonly Key: string;
  readonly Data: string;
}

export type Question =
  | { readonly Ask: 'match'; readonly Text: string; readonly Other: string }
  | { readonly Ask: 'image' | 'base64' | 'document'; readonly Text: string }
  | {
      readonly Ask: 'lookup';
      readonly Text: string;
      readonly Secrets: readonly AskedSecret[];
      readonly Node?: string;
      readonly Plugin?: string;
    };

const jumble = (pieces: readonly string[], maxLength: number) =>
  fc.array(fc.constantFrom(...pieces), { maxLength }).map((parts) => parts.join(''));

const HOSTS = words(
  'quay.io r.io R.io x.r.io *.r.io *.io * docker.io index.docker.io registry-1.docker.io localhost localhost:5000 r.io:443 ' +
    'r.io:8443 r.io: [::1] [::1]:5000 [fe80::1%25en0] [::ffff:1.2.3.4] [1.2.3.4] [::1 x.*.io q?.io r.io. é.io %C3%A9.io ' +
    '%41.io u@r.io u%:p@r.io r.io\\ 10.0.0.1:5000 . a[b].io r.io:80:80 %zz.io *a*.io',
);
const PATHS = fc.oneof(
  fc.constant(''),
  words(
    '/ /a /a/b /team /team/ /te /v1/ /v2/ /v1 /v2 /v1/a /v2/a/b /library // /a%2fb /a% /%C3%A9 /é ?x /a?x=1 #f /a#f% /%2a /a%3fb',
  ),
);
const SCHEMES = fc.constantFrom(
  '',
  '',
  '',
  'https://',
  'http://',
  'HTTPS://',
  'ftp://',
  'https:/',
  'http://http://',
);
const KEYS = fc.tuple(SCHEMES, HOSTS, PATHS).map((parts) => parts.join(''));
const LITERALS = jumble(
  ['1', ':', '::', 'a', 'f', '.', '0', '%25', 'z', '%20', 'ffff', '12345', '1.2.3.4', '256'],
  9,
).map((inner) => `[${inner}]`);
const GLOBS = jumble(
  ['a', 'b', '.', '*', '-', '[', ']', ':', '1', '%', '25', '?', '\\', '^', 'é', '/', '@', '::'],
  8,
);

const DIGEST = `sha256:${'0123456789abcdef'.repeat(4)}`;
const IMAGES = words(
  'nginx a/b quay.io/team/app quay.io/team-b/x r.io/a/b/c x.r.io/a docker.io/library/nginx index.docker.io/a/b localhost/a ' +
    'localhost:5000/a/b r.io:443/a r.io:8443/a [::1]:5000/a [::1]/a R.io/a foo/bar/baz 10.0.0.1:5000/a/b r.io/v1/a r.io/library/x',
);
const TAGS = fc.constantFrom('', '', ':t', ':T.1', `@${DIGEST}`, `:t@${DIGEST}`);
const ODD_IMAGES = jumble(
  [
    'a',
    'B',
    '.',
    '/',
    '-',
    '_',
    '__',
    ':',
    '5',
    '@',
    'sha256:',
    'sha512:',
    'localhost',
    'r.io',
    '[',
    ']',
    DIGEST,
    'é',
    'f'.repeat(64),
  ],
  7,
);
const IMAGE = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(IMAGES, TAGS).map((parts) => parts.join('')) },
  ODD_IMAGES,
);

const BASE64 = jumble(['A', 'z', '+', '/', '=', '==', '\n', '\r', '-', '_', ' ', 'dTpw', 'é', '!'], 9);
const AUTHS = fc.constantFrom(
  'dTpw',
  'dTpwcA==',
  'dTpwcA',
  '!!',
  '',
  'bm9jb2xvbg==',
  'dTpw\n',
  ' dTpw',
  'w6k6w6k=',
  '/zr/',
  'dTr/',
  'OnA=',
);
const NUMBERS = words('1 -0 1.50 1e21 1e-7 12345678901234567890 1e999 5e-324 1e-6 -1.5E+3');

const FIELDS = fc.constantFrom(
  'auth',
  'AUTH',
  'username',
  'password',
  'email',
  'x',
  '<&>',
  '\u2028',
  'é',
  '\u{10000}',
  '\uffff',
  'auths',
  'aut\u017f',
);
const VALUE = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    AUTHS.map((text) => JSON.stringify(text)),
    NUMBERS,
    fc.constantFrom('null', 'true', '[]', '{}'),
    fc.array(tie('value'), { maxLength: 3 }).map((items) => `[${items.join(',')}]`),
    fc.array(fc.tuple(FIELDS, tie('value')), { maxLength: 3 }).map(object),
  ),
})).value;

function object(members: readonly (readonly [string, string])[]): string {
  return `{${members.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`;
}

const GOOD_ENTRY = fc
  .tuple(fc.nat(30), fc.nat(3), fc.boolean(), fc.constantFrom('', ',"email":"e<@x"'))
  .map(([user, password, padded, email]) => {
    const auth = Buffer.from(`u${user}:p${password}`).toString('base64');
    return `{"auth":"${padded ? auth : auth.replace(/=+$/, '')}"${email}}`;
  });
const ENTRY = fc.oneof(
  { weight: 4, arbitrary: GOOD_ENTRY },
  AUTHS.map((auth) => `{"auth":${JSON.stringify(auth)}}`),
  fc
    .tuple(fc.nat(5), fc.nat(5))
    .map(([user, password]) => `{"username":"n${user}","password":"p${password}"}`),
  VALUE,
);
const auths = (entry: fc.Arbitrary<string>) => fc.array(fc.tuple(KEYS, entry), { maxLength: 6 }).map(object);
const GOOD_DOCUMENT = auths(GOOD_ENTRY).map((body) => `{"auths":${body}}`);
const MEMBER = fc.oneof(
  auths(ENTRY).map((body) => `"auths":${body}`),
  auths(GOOD_ENTRY).map((body) => `"auths":${body}`),
  fc
    .tuple(fc.constantFrom('AUTHS', 'aut\u017f', 'authss', 'httpheaders'), VALUE)
    .map(([key, body]) => `"${key}":${body}`),
  fc.constantFrom('{"a":"b"}', '{"a":1}', '{"a":null}', 'null', '[]').map((body) => `"HttpHeaders":${body}`),
);
const DOCUMENT = fc.array(MEMBER, { minLength: 1, maxLength: 3 }).map((members) => `{${members.join(',')}}`);
const DAMAGE = fc.constantFrom(
  ...'{ } [ ] , : " \\ \\u \\ud800 \\ud83d\\ude00 é \u0001 t tru nul - 1. 1e 0 01 \ufeff \' \u007f x /'.split(
    ' ',
  ),
  '\n',
);
const DAMAGED = fc
  .tuple(fc.oneof(DOCUMENT, VALUE), fc.nat(1000), fc.nat(3), DAMAGE)
  .map(([text, place, cut, piece]) => {
    const at = place % (text.length + 1);
    return cut === 3 ? text.slice(0, at) : text.slice(0, at) + piece + text.slice(at + cut);
  });

const SECRET = fc.oneof(
  {
    weight: 5,
    arbitrary: GOOD_DOCUMENT.map((Data) => ({
      Type: 'kubernetes.io/dockerconfigjson',
      Key: '.dockerconfigjson',
      Data,
    })),
  },
  {
    weight: 2,
    arbitrary: auths(GOOD_ENTRY).map((Data) => ({
      Type: 'kubernetes.io/dockercfg',
      Key: '.dockercfg',
      Data,
    })),
  },
  DOCUMENT.map((Data) => ({ Type: 'kubernetes.io/dockerconfigjson', Key: '.dockerconfigjson', Data })),
  GOOD_DOCUMENT.map((Data) => ({ Type: 'Opaque', Key: '.dockerconfigjson', Data })),
  fc.constant({ Type: 'kubernetes.io/dockerconfigjson', Key: '.dockerconfigjson', Data: '' }),
);
export const LOOKUP: fc.Arbitrary<Extract<Question, { Ask: 'lookup' }>> = fc.record(
  {
    Ask: fc.constant('lookup' as const),
    Text: IMAGE,
    Secrets: fc
      .array(SECRET, { maxLength: 3 })
      .map((list) => list.map((secret, index) => ({ ...secret, Name: `s${index}` }))),
    Node: GOOD_DOCUMENT,
    Plugin: DOCUMENT,
  },
  { requiredKeys: ['Ask', 'Text', 'Secrets'] },
);
const TARGET = fc.oneof(
  fc.tuple(HOSTS, PATHS).map((parts) => parts.join('')),
  IMAGES,
  GLOBS,
);

/** All kinds of questions, look-ups and documents more often. */
export const QUESTION: fc.Arbitrary<Question> = fc.oneof(
  { weight: 3, arbitrary: LOOKUP },
  fc.record({ Ask: fc.constant('match' as const), Text: fc.oneof(KEYS, LITERALS, GLOBS), Other: TARGET }),
  fc.record({ Ask: fc.constant('image' as const), Text: IMAGE }),
  fc.record({ Ask: fc.constant('base64' as const), Text: BASE64 }),
  {
    weight: 2,
    arbitrary: fc.record({ Ask: fc.constant('document' as const), Text: fc.oneof(DOCUMENT, DAMAGED) }),
  },
);
