/**
 * The kubelet's `config.json` as the node agent sees it: what of it its readers can use, and how the desired one is made of a
 * source, of what is there, and of what others put there. Pure.
 *
 * Source of the rule: requirement 1 ("Node-level synchronization"). One entry that the kubelet or CRI-O cannot read costs the
 * node every credential of the file, so that such an entry is never written: it is ignored, or keeps its last valid value.
 */

import {
  digestOfNode,
  encodeUsable,
  meaningOf,
  unusableDigest,
  usableDigest,
} from '../../core/docker-config/encode.ts';
import {
  type DockerConfigEntry,
  MISSING_AUTHS,
  parseDockerConfig,
  usablePart,
} from '../../core/docker-config/pull-secret.ts';
import { registryKey } from '../../core/docker-config/registry-key.ts';
import { PullwrightError } from '../../core/errors.ts';
import type { JsonNode } from '../../core/go/json.ts';
import { decodeUtf8, goQuote } from '../../core/go/text.ts';
import { type Redacted, redact, reveal } from '../../core/redacted.ts';
import { withoutUserInfo } from '../../core/text.ts';
import { heldEntryRemoval, type PendingRemoval, type RemovalInput } from '../removal-guard.ts';

// Merges what we want into a map that others write to as well: ours are added and changed, what we put there earlier and no
// longer want is removed, and everything else stays.
// What is ours is known from a ledger: for each key the digests of the values that we wrote. A key whose value is not one of
// them was changed by another writer, who owns it from then on.

/** For each key, the digests of values that we wrote. */
export type OwnedDigests = Readonly<Record<string, readonly string[]>>;

/**
 * The merged map, and the keys in it that belong to others; both sorted by key. A key that both want is ours.
 *
 * @param digest by which alone values are compared
 */
export function mergeThreeWays<V>(
  present: ReadonlyMap<string, V>,
  wanted: ReadonlyMap<string, V>,
  owned: OwnedDigests,
  digest: (value: V) => string,
): { readonly entries: ReadonlyMap<string, V>; readonly foreign: readonly string[] } {
  const foreign = [...present].filter(([key, value]) => {
    if (wanted.has(key)) return false;
    const digests = Object.hasOwn(owned, key) ? owned[key] : undefined;
    return digests === undefined || !digests.includes(digest(value));
  });
  const entries = new Map([...foreign, ...wanted].sort(([a], [b]) => (a < b ? -1 : 1)));
  return { entries, foreign: foreign.map(([key]) => key).sort() };
}

/** The ledger for `entries`, with what `before` owned of them and of everything else. */
function ownedAlso(before: OwnedDigests, entries: Flat): OwnedDigests {
  const after = new Map(Object.entries(before));
  for (const [key, value] of entries)
    after.set(key, [...new Set([...(after.get(key) ?? []), digestOfNode(value)])]);
  return Object.fromEntries([...after].sort(([a], [b]) => (a < b ? -1 : 1)));
}

// How keys of registries and of fields begin.
const AUTH = 'auths/';
const FIELD = 'field/';

/** A docker config, as far as its readers can use it. */
export interface AgentDocument {
  /** Digest of what it says to its readers: the same for other white space, another order, and a user name beside its `auth`. */
  readonly digest: string;
  /** Number of registries. */
  readonly entries: number;
  /** What cannot be used, as texts for people; empty when all of it can. */
  readonly faults: readonly string[];
  /** Keys of the registries among it. */
  readonly broken: readonly string[];
  /** The registries, and every other field of the document. */
  readonly content: Redacted<Flat>;
  readonly bytes: Redacted<Uint8Array>;
}

/** How entries of others are treated. */
export type Foreign = 'drop' | 'keep';

/**
 * Reads a docker config. `subject` names it in the error, which shows no value.
 *
 * @throws PullwrightError with code `SourceInvalid` when nothing of it can be used
 */
export function parseDocument(bytes: Redacted<Uint8Array>, subject: string): AgentDocument {
  const text = redact(decodeUtf8(reveal(bytes)));
  const parsed = parseDockerConfig(text);
  if (!parsed.ok) throw invalid(subject, `it ${parsed.problem.message}`);
  // HyperShift's agent wants the key spelled exactly, and so do some readers.
  if (!parsed.config.spelled) throw invalid(subject, MISSING_AUTHS);
  const { whole, entries, broken, fields, leftOut } = usablePart(parsed.config);
  const faults = [...broken.map(entryFault), ...leftOut.map(fieldFault)];
  if (entries.length === 0 && broken.length > 0) throw invalid(subject, faults.slice(0, 1).join());
  const parts = new Map([
    ...entries.map(({ key, value }) => [AUTH + key.written, reveal(value)] as const),
    ...fields.map(({ key, value }) => [FIELD + key, value] as const),
  ]);
  if (whole) return documentOf(parts, bytes);
  return {
    ...documentOf(parts, bytes),
    digest: unusableDigest(reveal(bytes)),
    faults: faults.length > 0 ? faults : ['an entry stands twice, and its first form cannot be read'],
    broken: broken.map(({ key }) => key.written),
  };
}

function entryFault({ key, fault }: DockerConfigEntry): string {
  return `entry ${shortQuote(withoutUserInfo(key.written))} ${fault?.message ?? 'cannot be read'}`;
}

function fieldFault(name: string): string {
  return `field ${shortQuote(name)} must be an object with string values`;
}

function shortQuote(text: string): string {
  return goQuote(text.slice(0, 100));
}

/** The desired document without a source: nothing of ours. */
export const EMPTY_DOCUMENT: AgentDocument = parseDocument(
  redact(new Uint8Array(Buffer.from('{"auths":{}}'))),
  'no pull secret',
);

/** What should be in the file. */
export interface WantedDocument {
  readonly document: AgentDocument;
  /** Foreign entries of the file that stay. */
  readonly foreign: readonly string[];
  /** Whether a registry of the present file is gone, or has another credential. */
  readonly removes: boolean;
  readonly ledgerDuring: OwnedDigests;
  readonly ledgerAfter: OwnedDigests;
  /** Entries that the source no longer has and that are held. */
  readonly held?: PendingRemoval;
}

/** What decides about a removal besides the documents; what was held before is in the ledger. */
export type RemovalGuard = Pick<RemovalInput, 'confirmed' | 'options' | 'now'>;

/** How the desired file is made. */
export interface WantedFileOptions {
  readonly foreign: Foreign;
  readonly ledger: OwnedDigests;
  /** Absent: the writer of the source has checked its removals. */
  readonly guard?: RemovalGuard | undefined;
}

/**
 * What should be in the file, given the source and what is there. Without entries of others, and when all of the source can
 * be used, these are the very bytes of the source. An entry of it that cannot be used stays as the file has it. `present` is
 * undefined without a file, or for one without usable content.
 */
export function wantedDocument(
  source: AgentDocument,
  present: AgentDocument | undefined,
  options: WantedFileOptions,
): WantedDocument {
  const there: Flat = present === undefined ? new Map() : reveal(present.content);
  const given = new Map([...lastGood(source, there), ...reveal(source.content)]);
  const before = beforeOf(options);
  const foreign = (wanted: Flat): ReturnType<typeof mergeThreeWays<JsonNode>> => {
    if (options.foreign === 'drop') return { entries: wanted, foreign: [] };
    const owned = { ...options.ledger };
    const present = new Map(there);
    // What ours had replaced comes back with the end of ours.
    for (const [key, value] of before === undefined ? [] : reveal(before.content)) {
      const held = there.get(key);
      if (wanted.has(key) || held === undefined || !owned[key]?.includes(digestOfNode(held))) continue;
      present.set(key, value);
      delete owned[key];
    }
    return mergeThreeWays(present, wanted, owned, digestOfNode);
  };
  const held = heldOf(
    there,
    [...foreign(given).entries.keys(), ...source.broken.map((key) => AUTH + key)],
    options,
  );
  const stay = [...there].filter(
    ([key]) => held?.keys.includes(key.slice(AUTH.length)) && key.startsWith(AUTH),
  );
  const ours = new Map([...given, ...stay]);
  const merged = foreign(ours);
  const keep = merged.foreign.length > 0;
  const { entries } = merged;
  const restored = ours.size === 0 && before?.digest === serialized(entries).digest ? before : undefined;
  const ledger = withoutHeld(options.ledger);
  const first = rememberFirst(options, present, ours);
  const memory = held === undefined ? {} : { [HELD + held.hash]: [held.since] };
  return {
    document:
      restored ?? (keep || stay.length > 0 || source.faults.length > 0 ? serialized(entries) : source),
    ...(held === undefined ? {} : { held }),
    foreign: merged.foreign,
    removes: [...there].some(
      ([key, value]) => key.startsWith(AUTH) && meaningDigest(value) !== meaningDigest(entries.get(key)),
    ),
    ledgerDuring: { ...ownedAlso(ledger, ours), ...memory, ...first },
    ledgerAfter: { ...ownedAlso({}, ours), ...memory, ...(ours.size === 0 ? {} : first) },
  };
}

/** In the ledger, beside what is ours: the file as others had left it before the first write, in base64. */
const BEFORE = 'before';

function beforeOf({ ledger }: WantedFileOptions): AgentDocument | undefined {
  const text = ledger[BEFORE]?.[0];
  return text === undefined
    ? undefined
    : parseDocument(redact(new Uint8Array(Buffer.from(text, 'base64'))), 'the earlier file');
}

/** A file that holds one of ours already is none of others alone: the ledger was lost, and a revoked entry must not come back. */
function rememberFirst(
  { foreign, ledger }: WantedFileOptions,
  present: AgentDocument | undefined,
  ours: Flat,
): OwnedDigests {
  const { [BEFORE]: known } = ledger;
  if (known !== undefined) return { [BEFORE]: known };
  if (foreign === 'drop' || present === undefined || present.faults.length > 0 || ours.size === 0) return {};
  if (Object.keys(withoutHeld(ledger)).length > 0) return {};
  const there = reveal(present.content);
  if ([...ours].some(([key, value]) => meaningDigest(there.get(key)) === meaningDigest(value))) return {};
  return { [BEFORE]: [Buffer.from(reveal(present.bytes)).toString('base64')] };
}

/** Registries and fields in one map, so that one merge and one ledger serve. */
type Flat = ReadonlyMap<string, JsonNode>;

/** In the ledger, beside what is ours: which removal is held, and since when. */
const HELD = 'held/';

/** Judges what the file would lose. */
function heldOf(
  there: Flat,
  after: readonly string[],
  options: WantedFileOptions,
): PendingRemoval | undefined {
  const { guard, ledger } = options;
  if (guard === undefined) return undefined;
  const [name, since] = Object.entries(ledger).find(([key]) => key.startsWith(HELD)) ?? [];
  const held =
    name === undefined || since?.[0] === undefined
      ? {}
      : { held: { hash: name.slice(HELD.length), since: since[0] } };
  return heldEntryRemoval({
    ...guard,
    ...held,
    before: registriesOf(there.keys()),
    after: registriesOf(after),
  });
}

function registriesOf(keys: Iterable<string>): RemovalInput['before'] {
  return [...keys]
    .filter((key) => key.startsWith(AUTH))
    .map((key) => ({ key: registryKey(key.slice(AUTH.length)) }));
}

function withoutHeld(ledger: OwnedDigests): OwnedDigests {
  return Object.fromEntries(Object.entries(ledger).filter(([key]) => !key.startsWith(HELD)));
}

/** The last usable form of the entries that the source has in a form that cannot be used. */
function lastGood({ broken }: AgentDocument, there: Flat): readonly (readonly [string, JsonNode])[] {
  return broken.flatMap((name) => {
    const value = there.get(AUTH + name);
    return value === undefined ? [] : [[AUTH + name, value] as const];
  });
}

/** Those whose keys begin so, without the beginning. */
function under(entries: Flat, prefix: string): Flat {
  const found = [...entries].filter(([key]) => key.startsWith(prefix));
  return new Map(found.map(([key, value]) => [key.slice(prefix.length), value]));
}

function serialized(entries: Flat): AgentDocument {
  const text = encodeUsable(under(entries, AUTH), under(entries, FIELD));
  return documentOf(entries, redact(new Uint8Array(Buffer.from(reveal(text)))));
}

function documentOf(content: Flat, bytes: Redacted<Uint8Array>): AgentDocument {
  const auths = under(content, AUTH);
  return {
    digest: usableDigest(auths, under(content, FIELD)),
    entries: auths.size,
    faults: [],
    broken: [],
    content: redact(content),
    bytes,
  };
}

/** An absent value has a digest that no value has. */
function meaningDigest(value: JsonNode | undefined): string {
  return value === undefined ? '' : digestOfNode(meaningOf(value));
}

function invalid(subject: string, state: string): PullwrightError {
  return new PullwrightError(`Cannot use ${subject}: invalid docker config.json content: ${state}`, {
    code: 'SourceInvalid',
    hint: 'The node keeps what it has. Correct the Secret that is mounted here',
  });
}
