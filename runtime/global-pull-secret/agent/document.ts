/**
 * The kubelet's `config.json` as the node agent sees it: what it means, whether its readers can read it, and how the wanted
 * one is made of a source and of what others put there. Pure.
 *
 * Source of the rule: requirement 1 ("Node-level synchronization"). The kubelet and CRI-O read the file with Go's decoder,
 * which refuses the whole file when one entry has a field of the wrong type: such a source would take all credentials from
 * the node, so it is refused here, and the node keeps what it has.
 */
import { createHash } from 'node:crypto';
import { PullwrightError } from '../../rules/errors.ts';
import { type Redacted, redact, reveal } from '../../rules/redacted.ts';
import { mergeThreeWays, type OwnedDigests, ownedAlso } from '../reconciler/three-way-merge.ts';

/** A docker config that its readers can read. */
export interface AgentDocument {
  /** Digest of what it says to its readers: the same for other white space, another order, and a user name beside its `auth`. */
  readonly digest: string;
  /** Number of registries. */
  readonly entries: number;
  readonly content: Redacted<Parts>;
  readonly bytes: Redacted<Uint8Array>;
}

/** The registries, and every other field of the document. */
interface Parts {
  readonly auths: ReadonlyMap<string, unknown>;
  readonly fields: ReadonlyMap<string, unknown>;
}

/** How entries of others are treated. */
export type Foreign = 'drop' | 'keep';

/**
 * Reads a docker config. `subject` names it in the error, which shows no value.
 *
 * @throws PullwrightError with code `SourceInvalid`
 * @example
 * ```ts
 * import { parseDocument } from './document.ts';
 * import { redact } from '../../rules/redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * const read = (text: string) => parseDocument(redact(new Uint8Array(Buffer.from(text))), 'test');
 * assert.equal(read('{"auths":{}}').digest, read(' { "auths" : { } }\n').digest);
 * assert.throws(() => read('{}'), /missing 'auths' key/);
 * ```
 */
export function parseDocument(bytes: Redacted<Uint8Array>, subject: string): AgentDocument {
  const document = parseObject(bytes, subject);
  if (!Object.hasOwn(document, 'auths')) throw invalid(subject, "missing 'auths' key");
  const auths = document['auths'] ?? {};
  if (!isRecord(auths)) throw invalid(subject, '"auths" is no object, wanted one entry per registry');
  for (const [index, [key, entry]] of Object.entries(auths).entries())
    checkEntry({ subject, key, index }, entry);
  const fields = Object.entries(document).filter(([name]) => name !== 'auths');
  return documentOf({ auths: new Map(Object.entries(auths)), fields: new Map(fields) }, bytes);
}

/** What is wanted where there is no source: nothing of ours. */
export const EMPTY_DOCUMENT: AgentDocument = parseDocument(
  redact(new Uint8Array(Buffer.from('{"auths":{}}'))),
  'no pull secret',
);

/** What should be in the file. */
export interface WantedDocument {
  readonly document: AgentDocument;
  /** Entries that others put into the file and that stay. */
  readonly foreign: readonly string[];
  /** Whether a registry of the present file is gone, or has another credential. */
  readonly removes: boolean;
  readonly ledgerDuring: OwnedDigests;
  readonly ledgerAfter: OwnedDigests;
}

/**
 * What should be in the file, given the source and what is there. Without entries of others, these are the very bytes of the
 * source. `present` is undefined when there is no file, or one that cannot be read.
 */
export function wantedDocument(
  source: AgentDocument,
  present: AgentDocument | undefined,
  options: { readonly foreign: Foreign; readonly ledger: OwnedDigests },
): WantedDocument {
  const ours = flat(reveal(source.content));
  const there = present === undefined ? new Map<string, unknown>() : flat(reveal(present.content));
  const merged = mergeThreeWays({ present: there, wanted: ours, owned: options.ledger, digest: digestOf });
  const keep = options.foreign === 'keep' && merged.foreign.length > 0;
  const entries = keep ? merged.entries : ours;
  return {
    document: keep ? serialized(unflat(entries)) : source,
    foreign: keep ? merged.foreign : [],
    removes: [...there].some(
      ([key, value]) =>
        key.startsWith(AUTH) && digestOf(meaningOf(value)) !== digestOf(meaningOf(entries.get(key))),
    ),
    ledgerDuring: ownedAlso(options.ledger, ours, digestOf),
    ledgerAfter: ownedAlso({}, ours, digestOf),
  };
}

const AUTH = 'auths/';
const FIELD = 'field/';

/** One map for both, so that one merge and one ledger serve. */
function flat(parts: Parts): ReadonlyMap<string, unknown> {
  return new Map([
    ...[...parts.auths].map(([key, value]) => [AUTH + key, value] as const),
    ...[...parts.fields].map(([key, value]) => [FIELD + key, value] as const),
  ]);
}

function unflat(entries: ReadonlyMap<string, unknown>): Parts {
  const under = (prefix: string): ReadonlyMap<string, unknown> =>
    new Map(
      [...entries]
        .filter(([key]) => key.startsWith(prefix))
        .map(([key, value]) => [key.slice(prefix.length), value]),
    );
  return { auths: under(AUTH), fields: under(FIELD) };
}

function serialized(parts: Parts): AgentDocument {
  return documentOf(parts, redact(new Uint8Array(Buffer.from(canonical(asObject(parts))))));
}

function documentOf(parts: Parts, bytes: Redacted<Uint8Array>): AgentDocument {
  return {
    digest: digestOf(asObject(meaningOfAll(parts))),
    entries: parts.auths.size,
    content: redact(parts),
    bytes,
  };
}

function meaningOfAll({ auths, fields }: Parts): Parts {
  return { auths: new Map([...auths].map(([key, value]) => [key, meaningOf(value)])), fields };
}

/**
 * An entry as its readers take it: where there is an `auth`, the kubelet prefers it to user name and password, and CRI-O reads
 * nothing else. `kubectl create secret docker-registry` writes all three. The ledger keeps entries as they are written.
 */
function meaningOf(entry: unknown): unknown {
  if (!isRecord(entry) || typeof entry['auth'] !== 'string' || !isPair(entry['auth'])) return entry;
  const { username: _username, password: _password, ...rest } = entry;
  return rest;
}

/** Whether the text is base64 of a user name and a password. */
function isPair(auth: string): boolean {
  return /^[A-Za-z0-9+/]+={0,2}$/.test(auth) && Buffer.from(auth, 'base64').includes(':');
}

function asObject(parts: Parts): unknown {
  return Object.fromEntries([...parts.fields, ['auths', Object.fromEntries(parts.auths)]]);
}

function parseObject(bytes: Redacted<Uint8Array>, subject: string): Readonly<Record<string, unknown>> {
  let document: unknown;
  try {
    document = JSON.parse(Buffer.from(reveal(bytes)).toString('utf8'));
  } catch {
    // The parser's own words quote the text.
    throw invalid(subject, reveal(bytes).length === 0 ? 'it is empty' : 'it is no JSON');
  }
  // Go reads null as an object without keys.
  if (document === null) return {};
  if (isRecord(document)) return document;
  throw invalid(subject, 'it is no JSON object');
}

const TEXTS: readonly string[] = ['auth', 'username', 'password', 'email', 'identitytoken', 'registrytoken'];

function checkEntry(place: { subject: string; key: string; index: number }, entry: unknown): void {
  if (entry === null) return;
  const name = `entry ${place.index + 1} (${JSON.stringify(place.key.slice(0, 100))})`;
  if (!isRecord(entry)) throw invalid(place.subject, `${name} is no object`);
  for (const field of TEXTS) {
    const value = entry[field] ?? '';
    if (typeof value !== 'string') throw invalid(place.subject, `"${field}" of ${name} is no text`);
  }
}

function invalid(subject: string, state: string): PullwrightError {
  return new PullwrightError(`Cannot use ${subject}: invalid docker config.json content: ${state}`, {
    code: 'SourceInvalid',
    hint: 'The node keeps what it has. Correct the Secret that is mounted here',
  });
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(canonical(value)).digest('hex');
}

/** JSON with sorted keys and no white space. An absent value gives a text that no value has. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (!isRecord(value)) return JSON.stringify(value) ?? '';
  const members = Object.keys(value).sort();
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(',')}}`;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
