/**
 * Merges the platform's pull secret with the tenant's.
 *
 * The platform's entry wins for every registry that it names, in any spelling of the tenant. Keys below a platform host
 * (`quay.io/team` next to `quay.io`) are allowed on purpose. An invalid entry of the tenant is skipped and reported; it blocks
 * neither other entries nor the platform.
 *
 * Source of the rule: requirement 1, "Registry Precedence and Conflict Resolution". Beyond upstream: keys are compared by
 * meaning (registry-key.ts), the platform's other top-level fields stay, and the result is in canonical form.
 */

import { compareBytes } from '../go/text.ts';
import type { EntryStatus } from '../kubernetes/pull-status.ts';
import { type Redacted, reveal } from '../redacted.ts';
import { counted } from '../text.ts';
import { type EncodedEntry, encodeConfig, encodeEntry, entrySize } from './encode.ts';
import { matchesImage } from './match-images.ts';
import {
  type ConfigProblem,
  type DockerConfig,
  type DockerConfigEntry,
  type EntryFault,
  parseDockerConfig,
  usableFields,
} from './pull-secret.ts';

// Which entries of the tenant's pull secret are merged, and the verdict on each for its owner.
// Source of the rule: requirement 1, "Registry Precedence and Conflict Resolution"; the kubelet's order of credentials.

/** An entry of the result. */
type PlacedEntry = EncodedEntry & MergedEntry;

interface TenantContext {
  /** All entries of the original secret; an invalid one still reserves its registry. */
  readonly original: readonly DockerConfigEntry[];
  /** Entries of an earlier merge, by the key they were written under. */
  readonly lastGood: ReadonlyMap<string, DockerConfigEntry>;
  /** Bytes left for entries. */
  readonly room: number;
}

/** Decides on every entry of the additional secret. */
function judgeAdditional(entries: readonly DockerConfigEntry[], context: TenantContext) {
  const judge = new Judge(context);
  // The choice between equal keys, and which entries still fit, must not depend on document order.
  for (const entry of entries.toSorted(byPreference)) judge.judge(entry);
  return {
    added: judge.added,
    conflicts: entries.flatMap((entry) => judge.conflicts.get(entry) ?? []),
    verdicts: entries.flatMap((entry) => judge.verdicts.get(entry) ?? []),
  };
}

function byPreference(a: DockerConfigEntry, b: DockerConfigEntry): number {
  const plain = (entry: DockerConfigEntry): number => (entry.key.written === entry.key.portable ? 0 : 1);
  return (
    compareBytes(a.key.portable, b.key.portable) ||
    plain(a) - plain(b) ||
    compareBytes(a.key.written, b.key.written)
  );
}

class Judge {
  readonly added: PlacedEntry[] = [];
  readonly verdicts = new Map<DockerConfigEntry, EntryStatus>();
  /** The keys of the additional secret and of the original one, for each entry with a conflict. */
  readonly conflicts = new Map<DockerConfigEntry, { readonly registry: string; readonly original: string }>();
  readonly #input: TenantContext;
  readonly #platform = new Map<string, string>();
  readonly #taken = new Map<string, string>();
  #room: number;

  constructor(input: TenantContext) {
    this.#input = input;
    this.#room = input.room;
    for (const { key } of input.original) {
      for (const identity of key.identities) this.#platform.set(identity, key.written);
    }
  }

  judge(entry: DockerConfigEntry): void {
    const { fault } = entry;
    if (fault?.reason === 'KeyInvalid') return this.#reject(entry, fault);
    const original = this.#platformKeyOf(entry);
    if (original !== undefined) return this.#shadow(entry, original);
    const hub = this.#hiddenHub(entry);
    if (hub !== undefined) return this.#shadow(entry, hub, 'WildcardHidesHub');
    const twin = this.#taken.get(entry.key.portable);
    if (twin !== undefined) {
      const message = `is the same registry as "${twin}" of this secret, which is used: remove one of them`;
      return this.#say(entry, 'Shadowed', 'DuplicateSpelling', message);
    }
    if (fault === undefined) return this.#take(entry, entry, 'additional');
    const last = this.#input.lastGood.get(entry.key.portable);
    if (last === undefined) return this.#reject(entry, fault);
    this.#take(entry, last, 'lastGood');
  }

  /** The platform's key with the same meaning. */
  #platformKeyOf({ key }: DockerConfigEntry): string | undefined {
    return key.identities
      .map((identity) => this.#platform.get(identity))
      .find((found) => found !== undefined);
  }

  /** The kubelet uses "index.docker.io" only if nothing else matches, so a wildcard for any host would hide it. */
  #hiddenHub({ key }: DockerConfigEntry): string | undefined {
    const hub = this.#platform.get('docker.io');
    if (hub === undefined || !key.portable.includes('*') || key.portable.includes('/')) return undefined;
    return matchesImage(key.portable, 'docker.io/library/any') ? hub : undefined;
  }

  #shadow(entry: DockerConfigEntry, original: string, why?: string): void {
    const { written, meaning } = entry.key;
    const exact = written === original;
    this.conflicts.set(entry, { registry: written, original });
    const what = exact
      ? 'is also in the original pull secret'
      : `means "${original}" of the original pull secret`;
    const hides = `would shadow "${original}" of the original pull secret`;
    const advice =
      why === undefined
        ? `use a longer key, such as "${meaning}/<namespace>", or remove the entry`
        : 'name the hosts explicitly';
    const reason = why ?? (exact ? 'OriginalWins' : 'SpellingVariant');
    this.#say(entry, 'Shadowed', reason, `${why === undefined ? what : hides}, which wins: ${advice}`);
  }

  /** Adds the value of `used`, which is `entry` or its last good version. */
  #take(entry: DockerConfigEntry, used: DockerConfigEntry, source: MergedEntry['source']): void {
    const { written, portable } = entry.key;
    const encoded = encodeEntry(used, portable);
    const size = entrySize(encoded);
    if (size > this.#room) {
      const message = `does not fit: the merged Secret would exceed the size limit by ${size - this.#room} bytes`;
      return this.#say(entry, 'Rejected', 'SecretFull', message);
    }
    this.#room -= size;
    this.#taken.set(portable, written);
    this.added.push({ ...encoded, source });
    if (entry.fault !== undefined) return this.#reject(entry, entry.fault, KEPT);
    const rewritten = written !== portable;
    this.#say(entry, 'Accepted', rewritten ? 'Rewritten' : 'Added', this.#useOf(entry));
  }

  #useOf({ key }: DockerConfigEntry): string {
    const below = this.#parentOf(key.meaning);
    const parts = [
      key.written === key.portable ? 'is used' : `is used as "${key.portable}"`,
      below === undefined ? '' : `before the platform's "${below}"`,
      key.portable.includes('*') ? '(by the kubelet only: CRI-O does not support wildcards)' : '',
    ];
    return parts.filter((part) => part !== '').join(' ');
  }

  #parentOf(meaning: string): string | undefined {
    for (let end = meaning.lastIndexOf('/'); end > 0; end = meaning.lastIndexOf('/', end - 1)) {
      const found = this.#platform.get(meaning.slice(0, end));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #reject(entry: DockerConfigEntry, fault: EntryFault, after = ''): void {
    this.verdicts.set(entry, rejection(entry.key.written, { ...fault, position: entry.position }, after));
  }

  #say(entry: DockerConfigEntry, verdict: EntryStatus['verdict'], reason: string, message: string): void {
    this.verdicts.set(entry, { subject: entry.key.written, verdict, reason, message });
  }
}

/** Warnings for the owner of the additional secret about the document, apart from its entries. */
function documentWarnings(config: DockerConfig): readonly EntryStatus[] {
  const ignored = reveal(config.fields).map((member) => ({
    reason: 'FieldIgnored',
    subject: `"${member.key}"`,
    message: 'is not merged: only "auths" of the additional pull secret is used',
  }));
  return [...config.warnings, ...ignored].map((warning) => ({ verdict: 'Warning', ...warning }));
}

const KEPT = '; the last valid one stays in use';

/** Verdict on an entry or a document with a fault. @param after what is used instead */
function rejection(
  subject: string,
  { reason, message, position }: Pick<ConfigProblem, 'message' | 'position'> & { readonly reason: string },
  after: string,
): EntryStatus {
  const place = position === undefined ? '' : ` (line ${position.line}, column ${position.column})`;
  return { subject, verdict: 'Rejected', reason, message: `${message}${place}${after}` };
}

/** Valid entries of an earlier merge. */
export interface LastGood {
  /** The merged document. */
  readonly text: Redacted<string>;
  /** Keys in it that came from the additional secret. */
  readonly keys: readonly string[];
}

export interface MergeInput {
  /** The platform's document. */
  readonly original: Redacted<string>;
  /** The tenant's document, if there is one. */
  readonly additional?: Redacted<string>;
  /** Fallback for single entries that have become unreadable; those of the platform prefer `lastOriginal`. */
  readonly lastGood?: LastGood;
  /** The platform's entries as last written: fallback for those that have become unreadable. */
  readonly lastOriginal?: readonly DockerConfigEntry[];
  /** Platform entries that are kept although its document no longer has them. */
  readonly heldOriginal?: readonly DockerConfigEntry[];
  /** Size limit of a Secret; entries that do not fit are skipped. @default {1048576} */
  readonly maxBytes?: number;
}

/** Origin of an entry of the result. */
export interface MergedEntry {
  /** Key in the result. */
  readonly key: string;
  readonly source: 'original' | 'additional' | 'lastGood';
}

/** Not `ok` if the original document is unusable: nothing can be written. */
export type MergeResult = Readonly<ReturnType<typeof mergePullSecrets>>;

/** Size limit of the API server for one Secret. */
export const MAX_SECRET_BYTES: number = 1024 * 1024;

/** Merges both documents. Never throws. */
export function mergePullSecrets(input: MergeInput) {
  const parsed = parseDockerConfig(input.original);
  if (!parsed.ok) return parsed;
  if (!parsed.config.hasAuths) return { ok: false as const, problem: AUTHS_MISSING };
  const held = input.heldOriginal ?? [];
  const config = { ...parsed.config, entries: [...parsed.config.entries, ...held] };
  const last = readLastGood(input.lastGood, input.lastOriginal);
  const platform = platformPart(config, last.platform);
  const { fields, leftOut } = usableFields(config);
  const alone = Buffer.byteLength(reveal(encodeConfig(platform.entries, fields)));
  const room = (input.maxBytes ?? MAX_SECRET_BYTES) - alone;
  const tenant = tenantPart(input.additional, {
    original: config.entries,
    lastGood: last.tenant,
    room,
  });
  const all = [...platform.entries, ...tenant.added];
  return {
    ok: true as const,
    /** The merged document in canonical form. */
    text: encodeConfig(all, fields),
    /** Sorted by key. */
    entries: all
      .map(({ key, source }): MergedEntry => ({ key, source }))
      .sort((a, b) => compareBytes(a.key, b.key)),
    conflicts: tenant.conflicts,
    /** One per entry of the additional secret, and one per warning about it; see `EntryStatus.subject`. */
    verdicts: tenant.verdicts,
    /** Problems of the platform's document; its invalid entries are skipped. */
    originalVerdicts: [...platform.verdicts, ...leftOutVerdicts(leftOut)],
    /** Why the additional document is unusable as a whole. */
    additionalProblem: tenant.problem,
  };
}

/** The problem of a document without an `auths` object. */
export const AUTHS_MISSING: ConfigProblem = {
  reason: 'AuthsMissing',
  message: 'has no "auths" object, expected one entry per registry',
  kubeletFault: undefined,
  containersFault: undefined,
};

/** The platform's entries; an invalid one is replaced by its last good version, or skipped. */
function platformPart(config: DockerConfig, last: ReadonlyMap<string, DockerConfigEntry>) {
  const entries: PlacedEntry[] = [];
  const verdicts: EntryStatus[] = config.warnings.map((warning) => ({ verdict: 'Warning', ...warning }));
  const keys = platformKeys(config.entries);
  for (const entry of config.entries) {
    const key = keys.get(entry.key.written) ?? entry.key.written;
    const used = entry.fault === undefined ? entry : (last.get(key) ?? last.get(entry.key.written));
    if (used !== undefined)
      entries.push({ ...encodeEntry(used, key), source: used === entry ? 'original' : 'lastGood' });
    if (entry.fault === undefined) continue;
    const fault = { ...entry.fault, position: entry.position };
    verdicts.push(rejection(entry.key.written, fault, used === undefined ? '' : KEPT));
  }
  return { entries, verdicts };
}

/**
 * The platform's keys stay, except a namespace with a scheme (`https://quay.io/team`). CRI-O reads that as the whole host, but
 * only while no key names the host: a tenant's `quay.io` would replace it. It stays too if the plain spelling is taken, or would
 * no longer imply the port of the scheme.
 */
function platformKeys(entries: readonly DockerConfigEntry[]): ReadonlyMap<string, string> {
  const taken = new Set(entries.map((entry) => entry.key.written));
  const keys = new Map<string, string>();
  for (const { key } of entries.toSorted((a, b) => compareBytes(a.key.written, b.key.written))) {
    const misread = key.written.includes('://') && key.portable.includes('/') && key.identities.length === 1;
    const plain = misread && !taken.has(key.portable);
    if (plain) taken.add(key.portable);
    keys.set(key.written, plain ? key.portable : key.written);
  }
  return keys;
}

function tenantPart(text: Redacted<string> | undefined, context: TenantContext) {
  if (text === undefined) return { added: [], conflicts: [], verdicts: [] };
  const parsed = parseDockerConfig(text);
  if (parsed.ok && parsed.config.hasAuths) {
    const judged = judgeAdditional(parsed.config.entries, context);
    return { ...judged, verdicts: [...judged.verdicts, ...documentWarnings(parsed.config)] };
  }
  const problem = parsed.ok ? AUTHS_MISSING : parsed.problem;
  // The document is unreadable: keep all valid entries, checked against the platform's current keys.
  const kept = judgeAdditional([...context.lastGood.values()], context);
  const one = 'entry of the last valid one stays';
  const many = 'entries of the last valid one stay';
  const after = kept.added.length === 0 ? '' : `; ${counted(kept.added.length, one, many)} in use`;
  return {
    added: kept.added.map((entry) => ({ ...entry, source: 'lastGood' as const })),
    conflicts: kept.conflicts,
    verdicts: [rejection('.dockerconfigjson', problem, after)],
    problem,
  };
}

/** The entries of an earlier merge, by the key they were written under. */
function readLastGood(last: LastGood | undefined, original: readonly DockerConfigEntry[] = []) {
  const parsed = last === undefined ? undefined : parseDockerConfig(last.text);
  const good = parsed?.ok ? goodOf(parsed.config.entries) : [];
  const keys = new Set(last?.keys);
  const byKey = (entries: readonly DockerConfigEntry[]) =>
    entries.map((entry) => [entry.key.written, entry] as const);
  return {
    platform: new Map([
      ...byKey(good.filter((entry) => !keys.has(entry.key.written))),
      ...byKey(goodOf(original)),
    ]),
    tenant: new Map(byKey(good.filter((entry) => keys.has(entry.key.written)))),
  };
}

function goodOf(entries: readonly DockerConfigEntry[]): readonly DockerConfigEntry[] {
  return entries.filter((entry) => entry.fault === undefined);
}

function leftOutVerdicts(names: readonly string[]): readonly EntryStatus[] {
  return names.map((name) => ({
    subject: `"${name}"`,
    verdict: 'Rejected',
    reason: 'FieldInvalid',
    message:
      'is ignored: it must be an object with string values, or the kubelet or CRI-O rejects the whole document',
  }));
}
