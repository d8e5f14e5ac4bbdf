/**
 * The auth file that the container runtime uses for one pull instead of the node's own: what the namespace has for the places
 * that the image is pulled from, and for the other places what the node has. Nothing else is in it: the less a file holds that
 * nobody took away, the better.
 *
 * Source of the rule: requirement "CRIOCredentialProviderConfig", auth file generation; containers/image look-up order.
 */

import type { PullSource } from '../mirrors/pull-sources.ts';
import { isRecord } from '../record.ts';
import { type Redacted, redact, reveal } from '../redacted.ts';
import { canonicalKey, firstLookupKey, type RegistryCredential } from './auth-file-entry.ts';
import type { Choice } from './namespace-credentials.ts';

type Entries = Record<string, unknown>;

/** The node's own auth file, read. */
export interface GlobalAuth {
  /** Everything but `auths`, unchanged: `credHelpers` and whatever else is there. */
  readonly rest: Redacted<Readonly<Entries>>;
  readonly auths: Redacted<Readonly<Entries>>;
}

/** No file, or none that can be used. */
export const NO_GLOBAL_AUTH: GlobalAuth = { rest: redact({}), auths: redact({}) };

/** Reads the node's auth file; undefined when it is no JSON object with an `auths` object. */
export function parseGlobalAuth(text: Redacted<string>): GlobalAuth | undefined {
  try {
    const whole: unknown = JSON.parse(reveal(text));
    if (!isRecord(whole)) return undefined;
    const { auths = {}, ...rest } = whole;
    if (auths !== null && !isRecord(auths)) return undefined;
    return { rest: redact(rest), auths: redact(auths ?? {}) };
  } catch {
    return undefined;
  }
}

/** Whether the node's own file has something for one of the sources: then a pull can succeed without the namespace. */
export function globalCovers(global: GlobalAuth, sources: readonly PullSource[]): boolean {
  const keys = new Set(Object.keys(reveal(global.auths)).map(canonicalKey));
  const helpers = reveal(global.rest)['credHelpers'];
  return sources.some(
    ({ repository }) =>
      firstLookupKey(repository, (key) => keys.has(key)) !== undefined ||
      (isRecord(helpers) && Object.hasOwn(helpers, hostOf(repository))),
  );
}

/** What is to be written. */
export interface AuthFile {
  readonly text: Redacted<string>;
  readonly entries: number;
}

/** Who wrote a file, so that nobody else takes it away: in a field of the file that the runtime passes over. */
export interface AuthFileRecord {
  /** `<namespace>/<service account>`. */
  readonly by: string;
  /** RFC 3339: a pull that has not come by then does not come. */
  readonly until: string;
}

const RECORD = 'pullwright.dev/record';

/** What a file is made of. */
export interface AuthFileParts {
  readonly choice: Choice;
  /** Every place that the image is pulled from. */
  readonly sources: readonly PullSource[];
  readonly global: GlobalAuth;
  /** Absent in a file that is only looked at. */
  readonly record?: AuthFileRecord;
}

/**
 * The file: tab-indented JSON, entries sorted, as the file has always looked, and the record. Of the node's file those entries
 * and helpers are taken that the runtime would look at for a place that the namespace has nothing for. None of them can stand
 * before an entry of the namespace: a key above both places would serve both.
 *
 * @example
 * ```ts
 * import { authFile, NO_GLOBAL_AUTH, recordIn } from './namespace-auth-file.ts';
 * import { redact, reveal } from '../redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * const credential = { auth: redact(btoa('user:pass')) };
 * const entries = [{ key: 'mirror.example.com', secret: 'pull', credential, passedOver: [] }];
 * const sources = [{ repository: 'mirror.example.com/a', kind: 'mirror' }] as const;
 * const { text } = authFile({
 *   choice: { entries, keyBySource: new Map([['mirror.example.com/a', 'mirror.example.com']]), skipped: [] },
 *   sources,
 *   global: NO_GLOBAL_AUTH,
 *   record: { by: 'team-a/app', until: '2026-01-01T00:30:00.000Z' },
 * });
 * assert.match(reveal(text), /^{\n\t"auths": {\n\t\t"mirror.example.com": {\n\t\t\t"auth": "dXNlcjpwYXNz"\n\t\t}\n\t},\n/);
 * assert.equal(recordIn(text)?.by, 'team-a/app');
 * ```
 */
export function authFile({ choice, sources, global, record }: AuthFileParts): AuthFile {
  const own = choice.entries.map(({ key, credential }) => [key, entryJson(credential)] as const);
  const unserved = sources.filter(({ repository }) => !choice.keyBySource.has(repository));
  const auths = sorted([...neededEntries(reveal(global.auths), unserved), ...own]);
  const helpers = neededHelpers(reveal(global.rest)['credHelpers'], unserved, choice);
  const fields = [
    ['auths', auths],
    ...(helpers.length === 0 ? [] : [['credHelpers', sorted(helpers)] as const]),
    ...(record === undefined ? [] : [[RECORD, record] as const]),
  ];
  const text = JSON.stringify(Object.fromEntries(fields), null, '\t');
  return {
    text: redact(`${text.replace(/[<>&\u2028\u2029]/g, escaped)}\n`),
    entries: Object.keys(auths).length,
  };
}

/** The record of a file; undefined where it has none, as files of other programs. */
export function recordIn(text: Redacted<string>): AuthFileRecord | undefined {
  try {
    const whole: unknown = JSON.parse(reveal(text));
    const record = isRecord(whole) ? whole[RECORD] : undefined;
    if (!isRecord(record)) return undefined;
    const { by, until } = record;
    return typeof by === 'string' && typeof until === 'string' ? { by, until } : undefined;
  } catch {
    return undefined;
  }
}

function neededEntries(
  present: Readonly<Entries>,
  unserved: readonly PullSource[],
): readonly (readonly [string, unknown])[] {
  const entries = Object.entries(present);
  if (entries.length === 0 || unserved.length === 0) return [];
  const looked = new Set<string>();
  for (const { repository } of unserved) firstLookupKey(repository, (key) => !looked.add(key));
  return entries.filter(([spelled]) => {
    const key = canonicalKey(spelled);
    // Of a key that is a URL the runtime takes the host alone, when nothing else is there.
    return looked.has(key) || (spelled.includes('://') && looked.has(hostOf(key)));
  });
}

/** A helper of a host is asked before any entry, so one of a host that the namespace serves would overrule it. */
function neededHelpers(
  helpers: unknown,
  unserved: readonly PullSource[],
  choice: Choice,
): readonly (readonly [string, unknown])[] {
  if (!isRecord(helpers)) return [];
  const served = new Set([...choice.keyBySource.keys()].map(hostOf));
  const wanted = new Set(unserved.map(({ repository }) => hostOf(repository)));
  return Object.entries(helpers).filter(([host]) => wanted.has(host) && !served.has(host));
}

function entryJson(credential: RegistryCredential): Entries {
  const auth = reveal(credential.auth);
  return credential.identityToken === undefined
    ? { auth }
    : { auth, identitytoken: reveal(credential.identityToken) };
}

function hostOf(repository: string): string {
  const slash = repository.indexOf('/');
  return slash === -1 ? repository : repository.slice(0, slash);
}

function sorted(entries: readonly (readonly [string, unknown])[]): Entries {
  return Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
