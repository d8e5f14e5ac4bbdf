/**
 * The kubelet's `config.json` for the node agent: parses the usable part of a docker config, and merges the source, the present
 * file and foreign entries into the desired document. Pure.
 *
 * Source of the rule: requirement 1 ("Node-level synchronization"). One entry that the kubelet or CRI-O cannot parse costs the
 * node every credential of the file. Such an entry is never written: it is ignored, or keeps its last valid value.
 */

import {
  digestOfNode,
  encodeUsable,
  meaningOf,
  type Nodes,
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
import type { OwnedEntries } from '../../node/task.ts';
import { heldEntryRemoval, type RemovalInput } from '../removal-guard.ts';

// Three-way merge into a map with other writers: our entries are added and updated, entries that we wrote and that are no longer
// desired are removed, and all other entries are kept.
// Ownership is recorded: for each key, the digests of the values that we wrote. A key with any other value was changed by
// another writer, which owns it from then on.

/**
 * Returns the merged map and its foreign keys, both sorted by key. A key in `wanted` is ours.
 *
 * @param digest two values are equal when their digests are
 */
export function mergeThreeWays<V>(
  present: ReadonlyMap<string, V>,
  wanted: ReadonlyMap<string, V>,
  owned: OwnedEntries,
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

/** Adds the digests of `entries` to those in `before`. */
function ownedAlso(before: OwnedEntries, entries: Flat): OwnedEntries {
  const after = new Map(Object.entries(before));
  for (const [key, value] of entries)
    after.set(key, [...new Set([...(after.get(key) ?? []), digestOfNode(value)])]);
  return Object.fromEntries([...after].sort(([a], [b]) => (a < b ? -1 : 1)));
}

// Key prefixes of registries and of other fields.
const AUTH = 'auths/';
const FIELD = 'field/';

/** The usable part of a docker config. */
export interface AgentDocument {
  /** Digest of the content, independent of white space, order, and a user name in addition to `auth`. */
  readonly digest: string;
  /** Number of registries. */
  readonly entries: number;
  /** Messages about unusable parts; empty when the whole document is usable. */
  readonly faults: readonly string[];
  /** Registry keys of unusable entries. */
  readonly broken: readonly string[];
  /** The registries, and all other fields of the document. */
  readonly content: Redacted<Flat>;
  readonly bytes: Redacted<Uint8Array>;
}

/** Policy for foreign entries. */
export type Foreign = 'drop' | 'keep';

/**
 * Parses a docker config. `subject` names the document in the error, which contains no values.
 *
 * @throws PullwrightError with code `SourceInvalid` when no part is usable
 */
export function parseDocument(bytes: Redacted<Uint8Array>, subject: string): AgentDocument {
  const text = redact(decodeUtf8(reveal(bytes)));
  const parsed = parseDockerConfig(text);
  if (!parsed.ok) throw invalid(subject, `it ${parsed.problem.message}`);
  // HyperShift's agent and some other readers match the key "auths" case-sensitively.
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
    faults: faults.length > 0 ? faults : ['an entry is duplicated, and its first occurrence is invalid'],
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

/** The desired document without a source. */
export const EMPTY_DOCUMENT: AgentDocument = parseDocument(
  redact(new Uint8Array(Buffer.from('{"auths":{}}'))),
  'no pull secret',
);

/** Input of the removal check besides the documents. Earlier holds are in `owned`. */
export type RemovalGuard = Pick<RemovalInput, 'confirmed' | 'options' | 'now'>;

/** Options of {@link wantedDocument}. */
export interface WantedFileOptions {
  readonly foreign: Foreign;
  readonly owned: OwnedEntries;
  /** Absent: the writer of the source has checked its removals. */
  readonly guard?: RemovalGuard | undefined;
}

/**
 * Computes the desired file from the source and the current file. Without foreign entries, and with a fully usable source, the
 * result has exactly the bytes of the source. An unusable entry of the source keeps its value from the file. `present` is
 * undefined when the file is missing or unusable.
 */
export function wantedDocument(
  source: AgentDocument,
  present: AgentDocument | undefined,
  options: WantedFileOptions,
) {
  const there: Flat = present === undefined ? new Map() : reveal(present.content);
  const given = new Map([...lastGood(source, there), ...reveal(source.content)]);
  const before = beforeOf(options);
  const foreign = (wanted: Flat): ReturnType<typeof mergeThreeWays<JsonNode>> => {
    if (options.foreign === 'drop') return { entries: wanted, foreign: [] };
    const owned = { ...options.owned };
    const present = new Map(there);
    // Restore the foreign values that our entries had replaced.
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
  const first = rememberFirst(options, present, ours);
  const memory = held === undefined ? {} : { [HELD + held.hash]: [held.since] };
  return {
    document:
      restored ?? (keep || stay.length > 0 || source.faults.length > 0 ? serialized(entries) : source),
    /** Entries removed from the source whose removal is held. */
    held,
    /** Foreign entries that stay in the file. */
    foreign: merged.foreign,
    /** Whether a registry of the current file is removed or gets another credential. */
    removes: [...there].some(
      ([key, value]) => key.startsWith(AUTH) && meaningDigest(value) !== meaningDigest(entries.get(key)),
    ),
    ownedDuring: { ...ownedAlso(withoutHeld(options.owned), ours), ...memory, ...first },
    ownedAfter: { ...ownedAlso({}, ours), ...memory, ...(ours.size === 0 ? {} : first) },
  };
}

/** Key of `owned`: the file before our first write, in base64. */
const BEFORE = 'before';

function beforeOf({ owned }: WantedFileOptions): AgentDocument | undefined {
  const text = owned[BEFORE]?.[0];
  return text === undefined
    ? undefined
    : parseDocument(redact(new Uint8Array(Buffer.from(text, 'base64'))), 'the earlier file');
}

/** A file that already has one of our entries is not backed up: without the record, a restore could revive a revoked entry. */
function rememberFirst(
  { foreign, owned }: WantedFileOptions,
  present: AgentDocument | undefined,
  ours: Flat,
): OwnedEntries {
  const { [BEFORE]: known } = owned;
  if (known !== undefined) return { [BEFORE]: known };
  if (foreign === 'drop' || present === undefined || present.faults.length > 0 || ours.size === 0) return {};
  if (Object.keys(withoutHeld(owned)).length > 0) return {};
  const there = reveal(present.content);
  if ([...ours].some(([key, value]) => meaningDigest(there.get(key)) === meaningDigest(value))) return {};
  return { [BEFORE]: [Buffer.from(reveal(present.bytes)).toString('base64')] };
}

/** Registries and fields in one map, so that both share one merge and one record. */
type Flat = ReadonlyMap<string, JsonNode>;

/** Key prefix in `owned`: hash of the held removal, with the start of the hold. */
const HELD = 'held/';

/** Checks which entries the file would lose. */
function heldOf(there: Flat, after: readonly string[], options: WantedFileOptions) {
  const { guard, owned } = options;
  if (guard === undefined) return undefined;
  const [name, since] = Object.entries(owned).find(([key]) => key.startsWith(HELD)) ?? [];
  const held =
    name === undefined || since?.[0] === undefined
      ? undefined
      : { hash: name.slice(HELD.length), since: since[0] };
  return heldEntryRemoval({
    ...guard,
    held,
    before: registriesOf(there.keys()),
    after: registriesOf(after),
  });
}

function registriesOf(keys: Iterable<string>): RemovalInput['before'] {
  return [...keys]
    .filter((key) => key.startsWith(AUTH))
    .map((key) => ({ key: registryKey(key.slice(AUTH.length)) }));
}

function withoutHeld(owned: OwnedEntries): OwnedEntries {
  return Object.fromEntries(Object.entries(owned).filter(([key]) => !key.startsWith(HELD)));
}

/** The present values of the source's unusable entries. */
function lastGood({ broken }: AgentDocument, there: Flat): readonly (readonly [string, JsonNode])[] {
  return broken.flatMap((name) => {
    const value = there.get(AUTH + name);
    return value === undefined ? [] : [[AUTH + name, value] as const];
  });
}

/** Entries under the prefix, with the prefix stripped. */
function under(entries: Flat, prefix: string): Nodes {
  const found = [...entries].filter(([key]) => key.startsWith(prefix));
  return found.map(([key, value]) => ({ key: key.slice(prefix.length), value }));
}

function serialized(entries: Flat): AgentDocument {
  const text = encodeUsable(under(entries, AUTH), under(entries, FIELD));
  return documentOf(entries, redact(new Uint8Array(Buffer.from(reveal(text)))));
}

function documentOf(content: Flat, bytes: Redacted<Uint8Array>): AgentDocument {
  const auths = under(content, AUTH);
  return {
    digest: usableDigest(auths, under(content, FIELD)),
    entries: auths.length,
    faults: [],
    broken: [],
    content: redact(content),
    bytes,
  };
}

/** An absent value gets a digest that matches no value. */
function meaningDigest(value: JsonNode | undefined): string {
  return value === undefined ? '' : digestOfNode(meaningOf(value));
}

function invalid(subject: string, state: string): PullwrightError {
  return new PullwrightError(`Cannot use ${subject}: invalid docker config.json content: ${state}`, {
    code: 'SourceInvalid',
    hint: 'The node keeps the current file. Fix the mounted Secret',
  });
}
