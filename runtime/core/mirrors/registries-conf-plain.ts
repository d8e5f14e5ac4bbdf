/**
 * The plain form of `registries.conf`: one key per line, double-quoted strings without escapes, as the Machine Config
 * Operator and most people write it. It is read without a TOML parser, and in a large file only the tables that can match
 * the image are read at all: a thousand mirrors must not cost the start of every container.
 *
 * Text that is not of this form gives `undefined`, and the complete parser decides.
 */
import { type Registry, registriesOf } from './registries-conf.ts';

type Value = string | boolean | string[];
type Table = Record<string, Value | Table[]>;

const KEYS: readonly string[] = [
  'location',
  'prefix',
  'blocked',
  'insecure',
  'mirror-by-digest-only',
  'pull-from-mirror',
  'unqualified-search-registries',
  'short-name-mode',
];

/**
 * Parses plain text into the tables that a TOML parser would give, or gives `undefined` where the text uses anything else
 * (so also for every TOML error).
 */
export function parsePlain(text: string): Readonly<Record<string, unknown>> | undefined {
  const file: Table = {};
  const registries: Table[] = [];
  let registry: Table | undefined;
  let table = file;
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf('\n', start);
    const end = newline === -1 ? text.length : newline;
    const line = text.slice(start, end).trim();
    start = end + 1;
    if (line === '' || line.startsWith('#')) continue;
    if (line === '[[registry]]') {
      registry = table = {};
      registries.push(table);
    } else if (line === '[[registry.mirror]]') {
      if (registry === undefined) return undefined;
      table = {};
      const mirrors = registry['mirror'] as Table[] | undefined;
      if (mirrors === undefined) registry['mirror'] = [table];
      else mirrors.push(table);
    } else if (!addLine(table, line)) return undefined;
  }
  if (registries.length > 0) file['registry'] = registries;
  return file;
}

/** Adds `key = value`; false when the line is not of the plain form or repeats a key. */
function addLine(table: Table, line: string): boolean {
  const equals = line.indexOf('=');
  const key = line.slice(0, Math.max(0, equals)).trimEnd();
  if (!KEYS.includes(key) || key in table) return false;
  const value = plainValue(line.slice(equals + 1).trimStart());
  if (value === undefined) return false;
  table[key] = value;
  return true;
}

function plainValue(text: string): Value | undefined {
  if (text === 'true' || text === 'false') return text === 'true';
  if (text.startsWith('[') && text.endsWith(']')) return plainList(text.slice(1, -1).trim());
  return plainString(text);
}

function plainString(text: string): string | undefined {
  const last = text.length - 1;
  if (last < 1 || text.charCodeAt(0) !== 0x22 || text.indexOf('"', 1) !== last) return undefined;
  const inner = text.slice(1, -1);
  return PLAIN_TEXT.test(inner) ? inner : undefined;
}

// No backslash, no control character, nothing beyond ASCII: what TOML and this reader cannot read differently.
const PLAIN_TEXT = /^[ !#-[\]-~]*$/;

function plainList(inner: string): string[] | undefined {
  if (inner === '') return [];
  const items = inner.split(',').map((item) => plainString(item.trim()));
  return items.includes(undefined) ? undefined : (items as string[]);
}

/**
 * A line that starts like this is of a file that cannot be judged in parts. What is allowed: blank lines and comments before
 * a table, and whole tables with their keys in the usual order and with values that no rule refuses; key lines themselves are
 * covered by the table above them. `blocked` and `insecure` are left out because they can contradict another table.
 */
const PLACE = '"(?!https?://)[a-z0-9][a-z0-9.:/_-]*[a-z0-9]"';
const EOL = '[ \\t]*\\n[ \\t]*';
// What may follow a table or a blank line: the next table, a comment, a blank line, the end.
const NEXT = '(?=[ \\t]*(?:\\n[ \\t]*(?:\\[\\[registry|#|\\n)|\\n?[ \\t]*$(?![\\s\\S])))';
/** Made when the first large file is there: most runs never need it. */
function notPlainLine(): RegExp {
  return new RegExp(
    `^(?![ \\t]*(?:${[
      NEXT,
      `#[^\\n[]*${NEXT}`,
      `\\[\\[registry\\]\\]${EOL}(?:prefix = (?:""|"\\*\\.[a-z0-9.-]+"|${PLACE})${EOL})?location = ${PLACE}${NEXT}`,
      `\\[\\[registry\\.mirror\\]\\]${EOL}location = ${PLACE}(?:${EOL}pull-from-mirror = "(?:all|digest-only|tag-only)")?${NEXT}`,
      'location = ',
      'prefix = ',
      'pull-from-mirror = ',
    ].join('|')}))`,
    'm',
  );
}

/** Below this size the complete reading costs nothing worth saving. In characters. */
const LARGE = 4096;

/**
 * The registries of a large plain file whose prefix is one of `possible` exactly, in file order; `undefined` when the
 * file must be read completely, because it is small, not plain, or has switches that can contradict each other.
 */
export function findInPlain(
  text: string,
  possible: () => readonly string[],
): readonly Registry[] | undefined {
  if (text.length < LARGE) return undefined;
  const prefixes = possible();
  const first = text.indexOf('[[registry]]');
  const head = text.slice(0, Math.max(0, first));
  if (first === -1 || (first > 0 && text[first - 1] !== '\n')) return undefined;
  const search = parsePlain(head);
  const tables = text.slice(first);
  if (search === undefined || tables.search(notPlainLine()) !== -1) return undefined;
  const found = new Map<number, string>();
  for (const prefix of prefixes) collectTables(tables, `"${prefix}"`, found);
  const texts = [...found].sort(([a], [b]) => a - b).map(([, table]) => table);
  const registry = texts.flatMap(tablesOf);
  return registriesOf({ ...search, registry }).filter(({ prefix }) => prefixes.includes(prefix));
}

const MIRROR = '[[registry.mirror]]';
const LOCATION = '\nlocation = "';
const PULL_FROM = 'pull-from-mirror = "';

/**
 * One table, found not to break the plain form, as {@link parsePlain} gives it. Mirrors of nothing but a location and when
 * to use it are cut out in a few calls each, which with a thousand of them saves a tenth of a run.
 */
function tablesOf(text: string): readonly Table[] {
  const [head = '', ...rest] = text.split(MIRROR);
  const mirrors: (Table | undefined)[] = rest.map(mirrorOf);
  const whole = rest.length === 0 || mirrors.includes(undefined) ? parsePlain(text) : parsePlain(head);
  const tables = (whole?.['registry'] as Table[] | undefined) ?? [];
  const [table] = tables;
  if (table !== undefined && table['mirror'] === undefined && mirrors.length > 0)
    table['mirror'] = mirrors as Table[];
  return tables;
}

function mirrorOf(text: string): Table | undefined {
  const end = text.indexOf('"', LOCATION.length);
  if (end === -1 || !text.startsWith(LOCATION)) return undefined;
  const location = text.slice(LOCATION.length, end);
  const rest = text.slice(end + 1).trim();
  if (rest === '') return { location };
  const last = rest.length - 1;
  if (!rest.startsWith(PULL_FROM) || rest.indexOf('"', PULL_FROM.length) !== last) return undefined;
  return { location, 'pull-from-mirror': rest.slice(PULL_FROM.length, last) };
}

/** Every `[[registry]]` table, with its mirrors, in which `quoted` is a value of the table itself. */
function collectTables(text: string, quoted: string, found: Map<number, string>): void {
  for (let at = text.indexOf(quoted); at !== -1; at = text.indexOf(quoted, at + 1)) {
    const start = text.lastIndexOf('[[', at);
    if (!text.startsWith('[[registry]]', start) || found.has(start)) continue;
    const end = text.indexOf('[[registry]]', start + 1);
    found.set(start, text.slice(start, end === -1 ? text.length : end));
  }
}
