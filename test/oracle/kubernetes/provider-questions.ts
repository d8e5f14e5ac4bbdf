/** Random files for the kubelet's credential providers, responses of plugins, and durations. */
import fc from 'fast-check';
import { words } from '../pieces.ts';
import { PLAIN } from './yaml-questions.ts';

/** All forms of Go's durations, and near misses. */
export const DURATION: fc.Arbitrary<string> = fc.oneof(
  words(
    '0 0s -0 +0 1s -1s 1h30m 1.5h .5s 5.s . s 1 1x 1m1 1.1.1s 4.35s 0.3s 1us 1µs 1μs 1ns 999ns 1e3s +1s --1s 1h-1m 1d 60.000000001s ' +
      '9999999h 2562047h47m16.854775807s -2562047h47m16.854775808s 9223372036854775808ns 0.9223372036854775808h 1.00000000000000000001s',
  ),
  fc
    .array(fc.tuple(words('0 1 12 007 1.5 .25 3. 0.1 99.999 123456789'), words('ns us µs ms s m h')), {
      minLength: 1,
      maxLength: 3,
    })
    .map((parts) => parts.flat().join('')),
  fc.constantFrom('', ' 1s', '1s ', '1 s', '१s'),
);

const JSON_TEXT = (text: string): string => JSON.stringify(text);
const WRONG = words('null 1 true [] {} 1.5 ""');
/** Usually the given value, sometimes a wrong one. */
const mostly = (wanted: fc.Arbitrary<string>) => fc.oneof({ weight: 12, arbitrary: wanted }, WRONG);
const list = (item: fc.Arbitrary<string>, maxLength = 3) =>
  fc.array(item, { maxLength }).map((items) => `[${items.join(',')}]`);

const PATTERN = words(
  'docker.io *.io *.*.io a.io:5000 a.io:80a a.io/team a.io/ https://a.io [::1] [::1]:5000 A.io %zz.io a%20b.io * x/*/y é.io a.io:*',
);
const KEY = words(
  'x.io/a X.io/A a A.b_c x.io/ /a x.io/a/b -a a- x..io/a é x_y/a domain.io/identity-id ' +
    `${'n'.repeat(63)} ${'n'.repeat(64)} ${'p.'.repeat(127)}/a`,
);
const AUDIENCE = words('sts.amazonaws.com x');

type Field = readonly [string, fc.Arbitrary<string>];

/** Members in random order, most of them there, now and then one that is unknown, misspelt or there twice. */
function object(fields: readonly Field[]): fc.Arbitrary<string> {
  const member = ([name, value]: Field) =>
    fc
      .tuple(fc.nat(19), value)
      .map(([chance, text]) =>
        chance === 0 ? [] : [`${JSON_TEXT(chance === 1 ? odd(name) : name)}:${text}`],
      );
  return fc
    .tuple(...fields.map(member))
    .chain((members) => fc.shuffledSubarray(members.flat(), { minLength: members.flat().length }))
    .map((members) => `{${members.join(',')}}`);
}

function odd(name: string): string {
  return name.length % 2 === 0 ? name.toUpperCase() : `${name}x`;
}

const TOKEN = object([
  ['serviceAccountTokenAudience', mostly(AUDIENCE.map(JSON_TEXT))],
  ['cacheType', mostly(words('Token ServiceAccount token <Token>').map(JSON_TEXT))],
  ['requireServiceAccount', mostly(words('true false'))],
  ['requiredServiceAccountAnnotationKeys', mostly(list(KEY.map(JSON_TEXT)))],
  ['optionalServiceAccountAnnotationKeys', mostly(list(KEY.map(JSON_TEXT)))],
]);
const VERSION = words('v1 v1 v1 v1 v1beta1 v1alpha1 v2').map(
  (version) => `credentialprovider.kubelet.k8s.io/${version}`,
);
const PROVIDER_FIELDS: readonly Field[] = [
  ['name', mostly(words('a b crio-credential-provider . .. a/b A').map(JSON_TEXT))],
  ['matchImages', mostly(list(mostly(PATTERN.map(JSON_TEXT))))],
  ['defaultCacheDuration', mostly(DURATION.map(JSON_TEXT))],
  ['apiVersion', mostly(VERSION.map(JSON_TEXT))],
];
const ENV = object([
  ['name', mostly(fc.constant('"A"'))],
  ['value', mostly(PLAIN.map(JSON_TEXT))],
]);
const PROVIDER = fc.oneof(
  object(PROVIDER_FIELDS),
  object([...PROVIDER_FIELDS, ['tokenAttributes', mostly(TOKEN)]]),
  object([...PROVIDER_FIELDS, ['args', mostly(list(PLAIN.map(JSON_TEXT)))], ['env', mostly(list(ENV, 2))]]),
);
const FILE_JSON = object([
  [
    'apiVersion',
    mostly(words('v1 v1 v1 v1beta1 v1alpha1 v9').map((version) => `"kubelet.config.k8s.io/${version}"`)),
  ],
  ['kind', mostly(fc.constant('"CredentialProviderConfig"'))],
  ['providers', mostly(list(mostly(PROVIDER), 2))],
]);

/** A good provider, where the YAML decides what its texts are. */
const FILE_YAML = fc.tuple(PLAIN, PLAIN, PLAIN, PLAIN).map(
  ([name, value, duration, require]) => `apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: a
  matchImages:
  - ${name}
  defaultCacheDuration: ${duration.length % 3 === 0 ? duration : '1s'}
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  env:
  - name: A
    value: ${value}
  tokenAttributes:
    serviceAccountTokenAudience: x
    cacheType: Token
    requireServiceAccount: ${require}
`,
);

/** One file of the kubelet: JSON, the same read as YAML, and YAML. */
export const PROVIDER_FILE: fc.Arbitrary<string> = fc.oneof(
  FILE_JSON,
  FILE_JSON.map((text) => `# as YAML\n${text}`),
  FILE_YAML,
);

const HOST = words('{host} *.{host} x.{host} {host}/team {host}:5000 other.io').map((text) =>
  text.replace('*.', ''),
);
const ENTRY = fc.oneof(
  { weight: 6, arbitrary: fc.constant('{"username":"u","password":"p"}') },
  words('null {} {"username":"u"} {"username":1} {"username":null} {"auth":"x"} {"Username":"u"} []'),
);
const AUTH = fc
  .array(fc.tuple(HOST, ENTRY), { maxLength: 2 })
  .map((members) => `{${members.map(([key, value]) => `${JSON_TEXT(key)}:${value}`).join(',')}}`);
const CACHED = words('0s 1h -1s 1x 0 1h30m').map(JSON_TEXT);

/** Output of a plugin. */
export const RESPONSE: fc.Arbitrary<string> = fc
  .tuple(
    object([
      ['kind', mostly(fc.constant('"CredentialProviderResponse"'))],
      ['apiVersion', mostly(fc.constant('"credentialprovider.kubelet.k8s.io/v1"'))],
      ['cacheKeyType', mostly(words('Image Registry Global Image Registry Global Pod').map(JSON_TEXT))],
      ['cacheDuration', mostly(CACHED)],
      ['auth', mostly(AUTH)],
    ]),
    fc.nat(24),
    words('x {} , log'),
  )
  .map(([text, chance, junk]) => {
    if (chance === 0) return `${junk}\n${text}`;
    if (chance === 1) return `${text}\n${junk}`;
    if (chance === 2) return text.replace(/"cacheKeyType":"[^"]*"/, '$&,$&');
    return chance === 3 ? `\n ${text} \n` : text;
  });

/** Pulls of one plugin, one after the other: repository and pod. */
export const PULLS: fc.Arbitrary<readonly (readonly [string, string])[]> = fc.array(
  fc.tuple(words('{host}/a {host}/b {host}/a/c {host}'), words('p q')),
  { minLength: 1, maxLength: 4 },
);
