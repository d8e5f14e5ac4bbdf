/** Random configurations of registries, written in all the ways that TOML allows, and images that meet them. */
import fc from 'fast-check';
import { one, words } from '../pieces.ts';

/** Main file and drop-ins, and images to ask about. */
export interface ConfQuestion {
  readonly files: readonly string[];
  readonly images: readonly string[];
}

/** There in `often` of `often + 1` cases; in one of ten for 0. */
const maybe = <T>(value: fc.Arbitrary<T>, often: number): fc.Arbitrary<T | undefined> =>
  fc.oneof(
    { arbitrary: value, weight: often === 0 ? 1 : often },
    { arbitrary: fc.constant(undefined), weight: often === 0 ? 9 : 1 },
  );

// Few names, so that prefixes meet images, each other and mirrors.
const HOST = words('a.io b.a.io c.b.a.io docker.io localhost m.io a.io:5000 m.io:80 B.io [::1]:5');
const PATH = one('', '', '', '/team', '/team/app', '/te', '/library', '/team/', '//', '/v2', '/Team', '/a_b');
const PLACE = fc.tuple(HOST, PATH).map((parts) => parts.join(''));
const ODD_PLACE = one(
  '',
  '/',
  'https://a.io',
  'http://a.io/',
  'HTTPS://a.io',
  'a.io:x',
  'a.io:',
  '*.io',
  '*',
  '*.',
  '**.io',
  'a.*.io',
  'a.io/*',
  'a.io/team:1',
  `a.io/team@sha256:${'a'.repeat(64)}`,
  '.a.io',
  'a..io',
  'é.io',
  ' a.io',
  'a.io ',
  'team',
  'a-.io',
);
const LOCATION = fc.oneof({ arbitrary: PLACE, weight: 60 }, ODD_PLACE);
const WILDCARD = one('*.io', '*.a.io', '*.b.a.io', '*.docker.io', '*.localhost', '*.io/', '*.A.io');
const ODD_WILDCARD = one('*.a.io/team', '*.a.io:5000', '*.', '*.*.io');
const PREFIX = fc.oneof(
  { arbitrary: PLACE, weight: 60 },
  { arbitrary: WILDCARD, weight: 30 },
  ODD_WILDCARD,
  ODD_PLACE,
);

type Value = string | number | boolean | readonly Value[] | { readonly [key: string]: Value };
type Table = Readonly<Record<string, Value>>;

const record = (fields: Readonly<Record<string, fc.Arbitrary<Value | undefined>>>): fc.Arbitrary<Table> =>
  fc
    .record(fields)
    .map(
      (table) =>
        Object.fromEntries(Object.entries(table).filter(([, value]) => value !== undefined)) as Table,
    );

/** Now and then a value of a wrong type. */
const typed = <T extends Value>(value: fc.Arbitrary<T>): fc.Arbitrary<Value> =>
  fc.oneof(
    { arbitrary: value, weight: 1500 },
    fc.constantFrom<Value>(1, true, 'true', 1.5, [], ['a'], {}, 'x'),
  );
const rarely = (often: number): fc.Arbitrary<Value> =>
  typed(fc.oneof({ arbitrary: fc.constant(false), weight: often }, fc.constant(true)));
const PULL = typed(
  fc.oneof(
    { arbitrary: one('all', 'digest-only', 'tag-only', 'digest-only', ''), weight: 60 },
    one('never', 'ALL'),
  ),
);
const MIRROR = record({
  location: maybe(typed(LOCATION), 40),
  insecure: maybe(rarely(2), 1),
  'pull-from-mirror': maybe(PULL, 1),
});
const REGISTRY = record({
  prefix: maybe(typed(PREFIX), 1),
  location: maybe(typed(LOCATION), 60),
  blocked: maybe(rarely(6), 1),
  insecure: maybe(rarely(20), 1),
  'mirror-by-digest-only': maybe(rarely(20), 1),
  mirror: maybe(typed(fc.array(MIRROR, { maxLength: 3 })), 6),
  'pull-from-mirror': fc.oneof({ arbitrary: fc.constant(undefined), weight: 200 }, one('', 'all')),
  'some-future-key': maybe(fc.constant<Value>(7), 0),
});
const HOSTS = one('docker.io', 'a.io:5000', 'localhost', 'quay.io/', 'A.io');
const ODD_HOSTS = one('a.io/team', '', 'é.io', '-a.io', 'https://a.io');
const SEARCH = typed(
  fc.array(typed(fc.oneof({ arbitrary: HOSTS, weight: 60 }, ODD_HOSTS)), { maxLength: 3 }),
);
const MODE = fc.oneof(
  { arbitrary: one('enforcing', 'permissive', 'disabled'), weight: 40 },
  one('', 'Enforcing'),
);
const ALIAS_NAME = one('nginx', 'team/app', 'ubi8', 'a.io/x', 'nginx:1', 'Nginx', 'localhost/x', '');
const ALIAS = one('docker.io/library/nginx', 'a.io/x', 'nginx', '', 'a.io/x:1', 'a.io/X', 'https://a.io/x');
const GOOD_ALIASES = fc.constant<Table>({ nginx: 'docker.io/library/nginx', 'team/app': 'a.io/team/app' });
const ALIASES = fc.oneof(
  { arbitrary: GOOD_ALIASES, weight: 15 },
  fc.dictionary(ALIAS_NAME, typed(ALIAS), { maxKeys: 3 }).map((table) => table as Table),
);
const FILE = record({
  'unqualified-search-registries': maybe(SEARCH, 1),
  'short-name-mode': maybe(typed(MODE), 1),
  'credential-helpers': maybe(typed(fc.constant<Value>(['containers-auth.json'])), 0),
  aliases: maybe(ALIASES, 0),
  registry: typed(fc.array(REGISTRY, { maxLength: 5 })),
});

/** Random TOML style: quotes, spaces, comments, inline tables. Each choice comes from a list of numbers. */
type Roll = () => number;

const COMMENTS: readonly string[] = ['', '', '', ' # why', '\t#"[[registry]]"', ' '];

function stringIn(text: string, roll: Roll): string {
  const kind = roll() % 12;
  const basic = JSON.stringify(text);
  if (kind === 0 && !text.includes("'")) return `'${text}'`;
  if (kind === 1 && text !== '')
    return `"\\u${text.charCodeAt(0).toString(16).padStart(4, '0')}${basic.slice(2)}`;
  if (kind === 2) return `"""${basic.slice(1, -1)}"""`;
  if (kind === 3) return `'''\n${text}'''`;
  if (kind === 4) return `"""\\\n   ${basic.slice(1, -1).replace(/^ /, '\\u0020')}"""`;
  return basic;
}

function inline(value: Value, roll: Roll): string {
  if (typeof value === 'string') return stringIn(value, roll);
  if (typeof value !== 'object') return String(value);
  if (Array.isArray(value)) {
    const items = value.map((item) => inline(item as Value, roll));
    if (items.length === 0) return roll() % 2 === 0 ? '[]' : '[ # none\n]';
    return roll() % 3 === 0 ? `[\n  ${items.join(', # next\n  ')},\n]` : `[${items.join(', ')}]`;
  }
  const members = Object.entries(value).map(([key, item]) => `${keyIn(key, roll)} = ${inline(item, roll)}`);
  return `{ ${members.join(', ')} }`;
}

function keyIn(key: string, roll: Roll): string {
  if (!/^[A-Za-z0-9_-]+$/.test(key)) return JSON.stringify(key);
  const kind = roll() % 40;
  if (kind === 0) return `"${key}"`;
  if (kind === 1) return `'${key}'`;
  // The runtime's parser does not mind the case of a key.
  return kind === 2 ? key.replace(/^./, (letter) => letter.toUpperCase()) : key;
}

const isTables = (value: Value): value is readonly Table[] =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.every((item) => typeof item === 'object' && !Array.isArray(item));

function tableIn(table: Table, path: readonly string[], roll: Roll): string {
  const [plain, nested]: [string[], string[]] = [[], []];
  const end = (): string => `${COMMENTS[roll() % COMMENTS.length] ?? ''}${roll() % 9 === 0 ? '\r\n' : '\n'}`;
  for (const [key, value] of Object.entries(table)) {
    const below = [...path, keyIn(key, roll)];
    if (isTables(value) && roll() % 6 !== 0) {
      for (const item of value)
        nested.push(
          `${roll() % 4 === 0 ? '\n' : ''}[[${below.join(roll() % 9 === 0 ? ' . ' : '.')}]]${end()}${tableIn(item, below, roll)}`,
        );
    } else if (typeof value === 'object' && !Array.isArray(value) && roll() % 3 !== 0) {
      nested.push(`[${below.join('.')}]${end()}${tableIn(value as Table, below, roll)}`);
    } else {
      const equals = ['=', ' = ', ' =', '  =\t'][roll() % 4] ?? '=';
      plain.push(`${roll() % 8 === 0 ? '  ' : ''}${keyIn(key, roll)}${equals}${inline(value, roll)}${end()}`);
    }
  }
  return [...plain, ...nested].join('');
}

const DAMAGE = one(
  '"',
  '[',
  ']',
  '\n',
  '=',
  '#',
  '\\',
  "'",
  '\u0000',
  '\u007f',
  '\ufeff',
  'é',
  '.',
  '[[registry]]\n',
  '\r',
  '{',
  ',',
  '\t',
);

const TEXT = fc
  .tuple(FILE, fc.infiniteStream(fc.nat(5000)), fc.nat(60), fc.nat(4000), DAMAGE, fc.boolean())
  .map(([file, rolls, luck, place, piece, isLarge]) => {
    let text = tableIn(file, [], () => rolls.next().value);
    // Beyond this size only the image's own tables are read.
    if (isLarge && luck > 5 && !/^\W*Registry/m.test(text))
      text += Array.from(
        { length: 90 },
        (_, index) => `\n[[registry]]\nlocation = "filler-${index}.example.net"\n`,
      ).join('');
    if (luck > 0) return text;
    const at = place % (text.length + 1);
    return text.slice(0, at) + piece + text.slice(at + (place % 2));
  });

const DIGEST = `sha256:${'0123456789abcdef'.repeat(4)}`;
const IMAGE = fc
  .tuple(
    one(
      'a.io',
      'b.a.io',
      'c.b.a.io',
      'x.c.b.a.io',
      'docker.io',
      'a.io:5000',
      'm.io',
      'm.io:80',
      'localhost',
      'B.io',
      '[::1]:5',
      'b.a.io:5000',
      'x.io.io',
    ),
    one(
      '/team/app',
      '/team',
      '/te',
      '/library/nginx',
      '/nginx',
      '/team/app/deep',
      '/v2/x',
      '/a_b/c',
      '/b.a.io/x',
    ),
    one('', ':1', `@${DIGEST}`, `:1@${DIGEST}`),
  )
  .map((parts) => parts.join(''));
const SHORT = one(
  'nginx',
  'team/app',
  'library/nginx:1',
  'index.docker.io/nginx',
  'index.docker.io/team/app:1',
  'localhost/x',
);

/** One configuration with some images. */
export const CONF_QUESTION: fc.Arbitrary<ConfQuestion> = fc.record({
  files: fc.array(TEXT, { minLength: 1, maxLength: 3 }),
  images: fc.array(fc.oneof({ arbitrary: IMAGE, weight: 6 }, SHORT), { minLength: 1, maxLength: 4 }),
});
