/**
 * `registries.conf` (version 2) as containers/image reads it: which registry has which mirrors, and which files are refused.
 *
 * Source of the rule: containers/image `sysregistriesv2`, whose answers are recorded in test/conformance/cases/crio. The
 * TOML parser is an argument: large files of the plain form that controllers write never reach it (registries-conf-plain.ts).
 *
 * Read as the decoder of the runtime reads it: keys have no case, a wrong alias refuses the file, a prefix of slashes alone
 * matches nothing.
 */
import { trimEndOf } from '../text/trim.ts';
import {
  asTable,
  flagOf,
  listOf,
  mismatch,
  refuse,
  stringOf,
  type Table,
  tablesOf,
} from './registries-conf-table.ts';
import { checkAliases } from './short-name-aliases.ts';

/** When a mirror may be used. */
export type PullFrom = 'all' | 'digest-only' | 'tag-only';

export interface Mirror {
  /** Host with optional port and path, no scheme, no trailing slash. */
  readonly location: string;
  readonly pullFrom: PullFrom;
  /** Whether it may be asked without a verified certificate. Absent: no. */
  readonly insecure?: boolean;
}

/** One `[[registry]]` table. */
export interface Registry {
  /** What an image is matched with: host and path, or `*.example.org`. */
  readonly prefix: string;
  /** What replaces the prefix; empty only for a wildcard prefix, which then is not rewritten. */
  readonly location: string;
  /** The location itself is never contacted; the mirrors are. */
  readonly blocked: boolean;
  readonly insecure: boolean;
  readonly mirrors: readonly Mirror[];
}

/** Text to tables; throws for text that is no TOML. */
export type TomlParser = (text: string) => unknown;

const PULL_FROM: readonly string[] = ['all', 'digest-only', 'tag-only'];
const SHORT_NAME_MODES: readonly string[] = ['', 'enforcing', 'permissive', 'disabled'];
const SEARCH_DOMAIN =
  /^(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*(?::[0-9]+)?$/;

/**
 * Reads one file. Gives its registries in file order, the first of equal prefixes only; throws a PullwrightError with the
 * runtime's own reason where the runtime refuses the file.
 *
 * @example
 * ```ts
 * import { parseRegistriesConf } from './registries-conf.ts';
 * import assert from 'node:assert/strict';
 *
 * const tables = { registry: [{ location: 'quay.io', mirror: [{ location: 'mirror.example.com/quay' }] }] };
 * const [registry] = parseRegistriesConf('(text)', () => tables);
 * assert.equal(registry?.prefix, 'quay.io');
 * assert.throws(() => parseRegistriesConf('', () => ({ registry: [{}] })), /both location and prefix are unset/);
 * ```
 */
export function parseRegistriesConf(text: string, parseToml: TomlParser): readonly Registry[] {
  let tables: unknown;
  try {
    tables = parseToml(text);
  } catch (error) {
    // A TOML error quotes the text around it; a registries.conf holds no secret.
    throw refuse(`toml: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : 'not TOML'}`);
  }
  return registriesOf(asTable(tables, 'the file'));
}

/** The registries of parsed tables; same refusals as {@link parseRegistriesConf}. */
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
  const seen = new Set<string>();
  return registries.filter(({ prefix }) => !seen.has(prefix) && seen.add(prefix));
}

function registryOf(table: Table): Registry {
  const location = locationOf(table, 'location');
  const written = stringOf(table, 'prefix');
  if (written === '' && location === '')
    throw refuse('invalid condition: both location and prefix are unset');
  // A prefix of slashes alone stays, and matches nothing.
  const prefix = written === '' ? location : withoutSlash(written);
  if (location === '' && !prefix.startsWith('*.'))
    throw refuse('invalid condition: location is unset and prefix is not in the format: *.example.com');
  if (stringOf(table, 'pull-from-mirror') !== '')
    throw refuse(`pull-from-mirror must not be set for a non-mirror registry "${prefix}"`);
  const digestOnly = flagOf(table, 'mirror-by-digest-only');
  return {
    prefix,
    location,
    blocked: flagOf(table, 'blocked'),
    insecure: flagOf(table, 'insecure'),
    mirrors: tablesOf(table, 'mirror').map((mirror) => mirrorOf(mirror, prefix, digestOnly)),
  };
}

function mirrorOf(table: Table, prefix: string, digestOnly: boolean): Mirror {
  const location = locationOf(table, 'location');
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
  const pullFrom = digestOnly ? 'digest-only' : from === '' ? 'all' : (from as PullFrom);
  return { location, pullFrom, ...(insecure ? { insecure } : {}) };
}

/** One location may be named by several prefixes, but not with different switches. */
function refuseContradictions(registries: readonly Registry[]): void {
  const first = new Map<string, Registry>();
  for (const registry of registries) {
    const place = registry.location || registry.prefix;
    const other = first.get(place);
    if (other === undefined) first.set(place, registry);
    else if (other.insecure !== registry.insecure)
      throw refuse(
        `registry '${registry.location}' is defined multiple times with conflicting 'insecure' setting`,
      );
    else if (other.blocked !== registry.blocked)
      throw refuse(
        `registry '${registry.location}' is defined multiple times with conflicting 'blocked' setting`,
      );
  }
}

function refuseVersion1(file: Table): void {
  const old = file['registries'];
  if (typeof old !== 'object' || old === null) return;
  const set = ['search', 'insecure', 'block'].some((part) => {
    const table = (old as Table)[part];
    return typeof table === 'object' && table !== null && 'registries' in table;
  });
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

function locationOf(table: Table, key: string): string {
  return withoutSlash(stringOf(table, key));
}

function withoutSlash(place: string): string {
  // Most places need neither; a pattern for each would be felt with a thousand mirrors.
  if (!place.endsWith('/') && !place.startsWith('http')) return place;
  const trimmed = trimEndOf(place, '/');
  if (!trimmed.startsWith('http://') && !trimmed.startsWith('https://')) return trimmed;
  throw refuse(`invalid location '${place}': URI schemes are not supported`);
}
