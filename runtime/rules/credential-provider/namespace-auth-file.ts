/**
 * The auth file that the container runtime uses for one pull instead of the node's own: what the namespace has for the places
 * that the image is pulled from, and for the other places what the node has. Nothing else is in it: the less a file holds that
 * nobody took away, the better.
 *
 * Source of the rule: requirement "CRIOCredentialProviderConfig", auth file generation; containers/image look-up order.
 */

import { readEntryMembers } from '../docker-config/entry-members.ts';
import { fieldOf, wrongTextField } from '../docker-config/fields.ts';
import type { JsonMember, JsonNode } from '../go/json.ts';
import type { PullSource } from '../mirrors/pull-sources.ts';
import { isRecord } from '../record.ts';
import { type Redacted, redact, reveal } from '../redacted.ts';
import { canonicalKey, firstLookupKey, type RegistryCredential } from './auth-file-entry.ts';
import type { Choice } from './namespace-credentials.ts';

/** Texts by the names of their fields. */
type Texts = Readonly<Record<string, string>>;

/** The node's own auth file, read: what of it may be written for the container runtime. */
export interface GlobalAuth {
  /** Credential helpers by host; closed as well, because a broken file may have anything there. */
  readonly helpers: Redacted<ReadonlyMap<string, string>>;
  /** Entries by key, each with its fields that are texts: the runtime reads no others. */
  readonly auths: Redacted<ReadonlyMap<string, Texts>>;
}

/** No file, or none that can be used. */
export const NO_GLOBAL_AUTH: GlobalAuth = { helpers: redact(new Map()), auths: redact(new Map()) };

/**
 * Reads the node's auth file; undefined when it is no JSON object with an `auths` object. What is neither an entry nor a
 * helper, or is one of the wrong type, is left out: the runtime would give up the whole file for it.
 */
export function parseGlobalAuth(text: Redacted<string>): GlobalAuth | undefined {
  const found = readEntryMembers(reveal(text), 'config.json');
  if (found === undefined) return undefined;
  const helpers = found.fields.filter(({ key }) => fieldOf(key, ['credHelpers']) !== undefined);
  return {
    helpers: redact(new Map(helpers.flatMap(({ value }) => Object.entries(textsOf(value))))),
    auths: redact(new Map([...found.entries.values()].flatMap(usableEntry))),
  };
}

function usableEntry({ key, value }: JsonMember): readonly [string, Texts][] {
  if (value.kind !== 'object' || wrongTextField(value) !== undefined) return [];
  return [[key, textsOf(value)]];
}

/** The members that are texts; the last of equal names counts. */
function textsOf(node: JsonNode): Texts {
  const members = node.kind === 'object' ? node.members : [];
  return Object.fromEntries(
    members.flatMap(({ key, value }) => (value.kind === 'string' ? [[key, value.value]] : [])),
  );
}

/** Whether the node's own file has something for one of the sources: then a pull can succeed without the namespace. */
export function globalCovers(global: GlobalAuth, sources: readonly PullSource[]): boolean {
  const keys = new Set([...reveal(global.auths).keys()].map(canonicalKey));
  return sources.some(
    ({ repository }) =>
      firstLookupKey(repository, (key) => keys.has(key)) !== undefined ||
      reveal(global.helpers).has(hostOf(repository)),
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
  const helpers = neededHelpers(reveal(global.helpers), unserved, choice);
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
  present: ReadonlyMap<string, Texts>,
  unserved: readonly PullSource[],
): readonly (readonly [string, Texts])[] {
  if (present.size === 0 || unserved.length === 0) return [];
  const entries = [...present].map((entry) => ({ entry, key: canonicalKey(entry[0]) }));
  // Of a repository of thousands of segments only such keys as can be there: to hash each of its beginnings takes time quadratic in it.
  const lengths = new Set(entries.flatMap(({ key }) => [key.length, hostOf(key).length]));
  const looked = new Set<string>();
  for (const { repository } of unserved)
    firstLookupKey(repository, (key) => {
      if (lengths.has(key.length)) looked.add(key);
      return false;
    });
  return entries
    .filter(({ entry: [spelled], key }) => {
      // Of a key that is a URL the runtime takes the host alone, when nothing else is there.
      return looked.has(key) || (spelled.includes('://') && looked.has(hostOf(key)));
    })
    .map(({ entry }) => entry);
}

/** A helper of a host is asked before any entry, so one of a host that the namespace serves would overrule it. */
function neededHelpers(
  helpers: ReadonlyMap<string, string>,
  unserved: readonly PullSource[],
  choice: Choice,
): readonly (readonly [string, string])[] {
  const served = new Set([...choice.keyBySource.keys()].map(hostOf));
  const wanted = new Set(unserved.map(({ repository }) => hostOf(repository)));
  return [...helpers].filter(([host]) => wanted.has(host) && !served.has(host));
}

function entryJson(credential: RegistryCredential): Texts {
  const auth = reveal(credential.auth);
  return credential.identityToken === undefined
    ? { auth }
    : { auth, identitytoken: reveal(credential.identityToken) };
}

function hostOf(repository: string): string {
  const slash = repository.indexOf('/');
  return slash === -1 ? repository : repository.slice(0, slash);
}

function sorted(entries: readonly (readonly [string, unknown])[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
