/**
 * `registries.conf` (version 2) as containers/image reads it: the mirrors of each registry, and which files are rejected.
 *
 * Source of the rule: containers/image `sysregistriesv2`, whose results are recorded in test/conformance/cases/crio.
 *
 * Like the runtime's decoder: keys ignore case, an invalid alias rejects the whole file, and a prefix of only slashes matches
 * nothing.
 */
import { parse } from 'smol-toml';
import { PullwrightError } from '../errors.ts';
import { goQuote } from '../go/text.ts';
import { parseWrittenReference } from '../image-reference.ts';
import { distinctBy, isRecord, recordOf } from '../record.ts';
import { trimEndOf } from '../text.ts';

// Values from the tables of a `registries.conf`, with the runtime's errors for wrong types.
// Source of the rule: BurntSushi/toml, with which containers/image reads the file. It ignores the case of keys.

/** A table from a TOML parser. */
export type Table = Readonly<Record<string, unknown>>;

/** Error for a file that the runtime rejects, with its reason. */
export function refuse(reason: string): PullwrightError {
  return new PullwrightError(reason, { code: 'RegistriesConfRefused', retryPolicy: 'terminal' });
}

export function stringOf(table: Table, key: string): string {
  const { [key]: value = '' } = table;
  if (typeof value !== 'string') throw mismatch(key, 'string', value);
  return value;
}

export function flagOf(table: Table, key: string): boolean {
  const { [key]: value = false } = table;
  if (typeof value !== 'boolean') throw mismatch(key, 'bool', value);
  return value;
}

export function listOf(table: Table, key: string): readonly unknown[] {
  const { [key]: value = [] } = table;
  if (!Array.isArray(value)) throw mismatch(key, 'array', value);
  return value;
}

export function tablesOf(table: Table, key: string): readonly Table[] {
  return listOf(table, key).map((entry) => asTable(entry, key));
}

/** A table with its keys in lower case; if a key has two spellings, the lower-case one wins. */
export function asTable(value: unknown, key: string): Table {
  if (!isRecord(value) || value instanceof Date) throw mismatch(key, 'table', value);
  for (const name in value) if (CAPITAL.test(name)) return lowered(value);
  return value;
}

const CAPITAL = /[A-Z]/;

function lowered(table: Table): Table {
  return {
    ...Object.fromEntries(Object.entries(table).map(([name, value]) => [name.toLowerCase(), value])),
    ...table,
  };
}

export function mismatch(key: string, wanted: string, found: unknown): PullwrightError {
  return refuse(
    `toml: incompatible types: ${key} is ${Array.isArray(found) ? 'array' : typeof found}, expected ${wanted}`,
  );
}

// The table `aliases` of a `registries.conf`: short names and their repositories. They do not affect fully qualified images, such
// as those from the kubelet, but an invalid alias makes the runtime reject the file.
// Source of the rule: containers/image `sysregistriesv2` (`validateShortName`, `parseShortNameValue`).

/**
 * Throws a PullwrightError, in the runtime's wording, for the first invalid alias.
 *
 * @param file parsed tables of the whole file
 */
export function checkAliases(file: Table): void {
  const aliases = file['aliases'];
  if (aliases === undefined) return;
  if (!isRecord(aliases)) throw mismatch('aliases', 'table', aliases);
  for (const [name, value] of Object.entries(aliases)) {
    if (typeof value !== 'string') throw mismatch(`aliases.${name}`, 'string', value);
    // An empty value removes an alias of an earlier file.
    const fault = aliasFault(name, 'short name') ?? (value === '' ? undefined : aliasFault(value, 'alias'));
    if (fault !== undefined) throw refuse(`validating short-name aliases: ${fault}`);
  }
}

/**
 * The images that CRI-O tries for a short name, in order: the target of its alias, otherwise one per registry in `search`.
 *
 * @param name as written in a pod: `nginx`, `team/app:1`
 * @param aliases merged from the files of a node, where later files override earlier ones; an empty value removes an alias
 * @param search `unqualified-search-registries`
 */
export function shortNameCandidates(
  name: string,
  aliases: ReadonlyMap<string, string>,
  search: readonly string[],
): readonly string[] {
  const end = /[:@]/.exec(name)?.index ?? name.length;
  const alias = aliases.get(name.slice(0, end)) ?? '';
  if (alias !== '') return [alias + name.slice(end)];
  return search.map((registry) =>
    registry === 'docker.io' && !name.includes('/') ? `docker.io/library/${name}` : `${registry}/${name}`,
  );
}

/** Aliases of one file that passed {@link checkAliases}. */
export function aliasesOf(file: Table): ReadonlyMap<string, string> {
  return new Map(Object.entries((file['aliases'] ?? {}) as Readonly<Record<string, string>>));
}

/** A short name has no registry, its alias has one; neither has a tag or a digest. */
function aliasFault(text: string, kind: 'short name' | 'alias'): string | undefined {
  const parsed = parseWrittenReference(text);
  const reading = kind === 'alias' ? 'parsing alias' : 'cannot parse short name:';
  if (!parsed.ok) return `${reading} ${goQuote(text)}: ${parsed.goText}`;
  const { domain, tag, digest } = parsed.reference;
  const wrong = (reason: string): string => `invalid ${kind} ${goQuote(text)}: must ${reason}`;
  if (digest !== undefined) return wrong('not contain digest');
  if (tag !== undefined) return wrong('not contain tag');
  const hasRegistry = /[.:]/.test(domain) || domain === 'localhost';
  if (hasRegistry === (kind === 'alias')) return undefined;
  return wrong(hasRegistry ? 'not contain registry' : 'contain registry and repository');
}

/** Which images a mirror may serve. */
export type PullFrom = 'all' | 'digest-only' | 'tag-only';

export type Mirror = Readonly<ReturnType<typeof mirrorOf>>;

/** One `[[registry]]` table. */
export type Registry = Readonly<ReturnType<typeof registryOf>>;

const PULL_FROM: readonly string[] = ['all', 'digest-only', 'tag-only'];
const SHORT_NAME_MODES: readonly string[] = ['', 'enforcing', 'permissive', 'disabled'];
const SEARCH_DOMAIN =
  /^(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*(?::[0-9]+)?$/;

/**
 * Parses one file. Returns its registries in file order, only the first of duplicate prefixes. Throws a PullwrightError with the
 * runtime's reason if the runtime rejects the file.
 */
export function parseRegistriesConf(text: string): readonly Registry[] {
  return registriesOf(confTable(text));
}

/** Parses the tables of a file, without validation. @throws PullwrightError for invalid TOML */
export function confTable(text: string): Table {
  let tables: unknown;
  try {
    tables = parse(text);
  } catch (error) {
    // A TOML error quotes the text around it; a registries.conf holds no secret.
    throw refuse(`toml: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : 'not TOML'}`);
  }
  return asTable(tables, 'the file');
}

/** The registries of parsed tables; throws like {@link parseRegistriesConf}. */
export function registriesOf(file: Table): readonly Registry[] {
  refuseVersion1(file);
  const registries = tablesOf(file, 'registry').map(registryOf);
  refuseContradictions(registries);
  checkSearch(file);
  const wrong = registries.find(({ prefix }) => prefix.startsWith('*.') && /[/@:]/.test(prefix));
  if (wrong !== undefined) {
    throw refuse(
      `Wildcarded prefix should be in the format: *.example.com. Current prefix "${wrong.prefix}" is incorrectly formatted`,
    );
  }
  checkAliases(file);
  return distinctBy(registries, ({ prefix }) => prefix);
}

function registryOf(table: Table) {
  const location = withoutSlash(stringOf(table, 'location'));
  const written = stringOf(table, 'prefix');
  if (written === '' && location === '')
    throw refuse('invalid condition: both location and prefix are unset');
  // A prefix of only slashes stays, and matches nothing.
  const prefix = written === '' ? location : withoutSlash(written);
  if (location === '' && !prefix.startsWith('*.'))
    throw refuse('invalid condition: location is unset and prefix is not in the format: *.example.com');
  if (stringOf(table, 'pull-from-mirror') !== '')
    throw refuse(`pull-from-mirror must not be set for a non-mirror registry "${prefix}"`);
  const digestOnly = flagOf(table, 'mirror-by-digest-only');
  const mirrors: readonly Mirror[] = tablesOf(table, 'mirror').map((mirror) =>
    mirrorOf(mirror, prefix, digestOnly),
  );
  return {
    /** What an image is matched against: host and path, or `*.example.org`. */
    prefix,
    /** Replacement for the prefix; empty only for a wildcard prefix, which is then not rewritten. */
    location,
    /** The runtime contacts only the mirrors, never the location itself. */
    blocked: flagOf(table, 'blocked'),
    insecure: flagOf(table, 'insecure'),
    mirrors,
  };
}

function mirrorOf(table: Table, prefix: string, digestOnly: boolean) {
  /** Host with optional port and path, no scheme, no trailing slash. */
  const location = withoutSlash(stringOf(table, 'location'));
  if (location === '') throw refuse('invalid condition: mirror location is unset');
  const insecure = flagOf(table, 'insecure');
  const from = stringOf(table, 'pull-from-mirror');
  if (digestOnly && from !== '') {
    throw refuse(
      `cannot set mirror usage mirror-by-digest-only for the registry ("${prefix}") and pull-from-mirror for per-mirror ("${location}") at the same time`,
    );
  }
  if (from !== '' && !PULL_FROM.includes(from))
    throw refuse(`unsupported pull-from-mirror value "${from}" for mirror "${location}"`);
  const pullFrom: PullFrom = digestOnly ? 'digest-only' : from === '' ? 'all' : (from as PullFrom);
  // `insecure`: plain HTTP and unverified certificates are accepted. Absent: no.
  return { location, pullFrom, ...(insecure ? { insecure } : {}) };
}

/** Several prefixes may share a location, but not with different `insecure` or `blocked`. */
function refuseContradictions(registries: readonly Registry[]): void {
  const first = new Map<string, Registry>();
  for (const registry of registries) {
    const place = registry.location || registry.prefix;
    const other = first.get(place) ?? registry;
    first.set(place, other);
    for (const flag of ['insecure', 'blocked'] as const)
      if (other[flag] !== registry[flag])
        throw refuse(
          `registry '${registry.location}' is defined multiple times with conflicting '${flag}' setting`,
        );
  }
}

function refuseVersion1(file: Table): void {
  const old = recordOf(file['registries']);
  const set = ['search', 'insecure', 'block'].some((part) => 'registries' in recordOf(old[part]));
  if (set) throw refuse('registries.conf must be in v2 format but is in v1');
}

function checkSearch(file: Table): void {
  for (const entry of listOf(file, 'unqualified-search-registries')) {
    if (typeof entry !== 'string') throw mismatch('unqualified-search-registries', 'string', entry);
    const place = withoutSlash(entry);
    if (!SEARCH_DOMAIN.test(place)) throw refuse(`Invalid unqualified-search-registries entry "${place}"`);
  }
  const mode = stringOf(file, 'short-name-mode');
  if (!SHORT_NAME_MODES.includes(mode)) throw refuse(`invalid short-name mode: "${mode}"`);
}

function withoutSlash(place: string): string {
  // Fast path: most locations stay unchanged, and a pattern for each would be slow with a thousand mirrors.
  if (!place.endsWith('/') && !place.startsWith('http')) return place;
  const trimmed = trimEndOf(place, '/');
  if (!trimmed.startsWith('http://') && !trimmed.startsWith('https://')) return trimmed;
  throw refuse(`invalid location '${place}': URI schemes are not supported`);
}

/** Merges the registries of several files: a later entry replaces the whole entry of the same prefix. */
export function mergeRegistries(files: readonly (readonly Registry[])[]): readonly Registry[] {
  return [...new Map(files.flat().map((registry) => [registry.prefix, registry])).values()];
}
