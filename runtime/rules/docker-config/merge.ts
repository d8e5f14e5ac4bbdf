/**
 * The merge of the platform's pull secret with the tenant's.
 *
 * The platform's entry wins for every registry that it names, in whatever spelling the tenant writes it. Keys below a
 * platform's host (`quay.io/team` next to `quay.io`) are allowed on purpose. A bad entry of the tenant is left out and
 * reported; it never holds up the others, nor the platform.
 *
 * Source of the rule: requirement 1, "Registry Precedence and Conflict Resolution". Beyond upstream: keys are compared by
 * meaning (registry-key.ts), the platform's other top-level fields stay, and the result is in canonical form.
 */

import { compareBytes } from '../go/bytes.ts';
import type { Verdict } from '../kubernetes/pull-status.ts';
import { type Redacted, reveal } from '../redacted.ts';
import {
  type AddedEntry,
  type AdditionalResult,
  documentVerdict,
  documentWarnings,
  judgeAdditional,
  type MergeConflict,
} from './additional.ts';
import { type EncodedEntry, encodeConfig, encodeEntry, usableFields } from './canonical.ts';
import {
  type ConfigProblem,
  type DockerConfig,
  type DockerConfigEntry,
  type EntryFault,
  parseDockerConfig,
} from './docker-config.ts';

export type { MergeConflict } from './additional.ts';

/** Entries that were good in an earlier merge. */
export interface LastGood {
  /** The merged document. */
  readonly text: Redacted<string>;
  /** Keys in it that came from the additional secret. */
  readonly keys: readonly string[];
}

export interface MergeInput {
  /** The platform's document. */
  readonly original: Redacted<string>;
  /** The tenant's document; absent when there is none. */
  readonly additional?: Redacted<string>;
  /** Stands in, entry by entry, for what the tenant has made unreadable since. */
  readonly lastGood?: LastGood;
  /** The platform's document as it was last written: stands in for what the platform has made unreadable since. */
  readonly lastOriginal?: Redacted<string>;
  /** Entries of the platform that stay although its document no longer has them. */
  readonly heldOriginal?: readonly DockerConfigEntry[];
  /** What a Secret holds at most; entries that do not fit are left out. @default {1048576} */
  readonly maxBytes?: number;
}

/** Where an entry of the result comes from. */
export interface MergedEntry {
  /** As it stands in the result. */
  readonly key: string;
  readonly source: 'original' | 'additional' | 'lastGood';
}

export type MergeResult =
  | {
      readonly ok: true;
      /** The merged document, canonical. */
      readonly text: Redacted<string>;
      /** Sorted by key. */
      readonly entries: readonly MergedEntry[];
      readonly conflicts: readonly MergeConflict[];
      /** One per entry of the additional secret, and one for each thing to know about it; see `Verdict.subject`. */
      readonly verdicts: readonly Verdict[];
      /** What is wrong in the platform's own document; its bad entries are left out. */
      readonly originalVerdicts: readonly Verdict[];
      /** The additional document cannot be used at all. */
      readonly additionalProblem?: ConfigProblem;
    }
  /** The original document cannot be used: there is nothing to write. */
  | { readonly ok: false; readonly problem: ConfigProblem };

/** What the API server takes in one Secret. */
export const MAX_SECRET_BYTES: number = 1024 * 1024;

/**
 * Merges. Total: never throws, whatever the texts are.
 *
 * @example
 * ```ts
 * import { mergePullSecrets } from './merge.ts';
 * import { redact, reveal } from '../redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * const merged = mergePullSecrets({
 *   original: redact('{"auths":{"quay.io":{"auth":"b3JpZzpw"}}}'),
 *   additional: redact('{"auths":{"https://quay.io/":{"auth":"bWU6cA=="},"quay.io/team":{"auth":"bWU6cA=="},"r.io":{"auth":"-"}}}'),
 * });
 * assert.ok(merged.ok);
 * assert.equal(reveal(merged.text), '{"auths":{"quay.io":{"auth":"b3JpZzpw"},"quay.io/team":{"auth":"bWU6cA=="}}}');
 * assert.deepEqual(merged.verdicts.map((verdict) => verdict.verdict), ['Shadowed', 'Accepted', 'Rejected']);
 * ```
 */
export function mergePullSecrets(input: MergeInput): MergeResult {
  const parsed = parseDockerConfig(input.original);
  if (!parsed.ok) return parsed;
  if (!parsed.config.hasAuths) return { ok: false, problem: AUTHS_MISSING };
  const held = input.heldOriginal ?? [];
  const original = { config: { ...parsed.config, entries: [...parsed.config.entries, ...held] } };
  const last = readLastGood(input.lastGood, input.lastOriginal);
  const platform = platformPart(original.config, last.platform);
  const { fields, leftOut } = usableFields(original.config);
  const room = (input.maxBytes ?? MAX_SECRET_BYTES) - byteLength(encodeConfig(platform.encoded, fields));
  const tenant = tenantPart(input.additional, {
    original: original.config.entries,
    lastGood: last.tenant,
    room,
  });
  return {
    ok: true,
    text: encodeConfig([...platform.encoded, ...tenant.added.map(({ encoded }) => encoded)], fields),
    entries: [...platform.merged, ...tenant.added.map(mergedEntry)].sort((a, b) =>
      compareBytes(a.key, b.key),
    ),
    conflicts: tenant.conflicts,
    verdicts: tenant.verdicts,
    originalVerdicts: [...platform.verdicts, ...leftOutVerdicts(leftOut)],
    ...(tenant.problem === undefined ? {} : { additionalProblem: tenant.problem }),
  };
}

/** A document without an `auths` object. */
export const AUTHS_MISSING: ConfigProblem = {
  reason: 'AuthsMissing',
  message: 'has no "auths" object, expected one entry per registry',
  kubeletFault: undefined,
  containersFault: undefined,
};

interface PlatformPart {
  readonly encoded: readonly EncodedEntry[];
  readonly merged: readonly MergedEntry[];
  readonly verdicts: readonly Verdict[];
}

/** The platform's entries; a broken one is left out or stands in its last good form. */
function platformPart(config: DockerConfig, last: ReadonlyMap<string, DockerConfigEntry>): PlatformPart {
  const encoded: EncodedEntry[] = [];
  const merged: MergedEntry[] = [];
  const verdicts: Verdict[] = config.warnings.map((warning) => ({ verdict: 'Warning', ...warning }));
  const keys = platformKeys(config.entries);
  for (const entry of config.entries) {
    const key = keys.get(entry.key.written) ?? entry.key.written;
    const used = entry.fault === undefined ? entry : (last.get(key) ?? last.get(entry.key.written));
    if (used !== undefined) {
      encoded.push(encodeEntry(used, key));
      merged.push({ key, source: used === entry ? 'original' : 'lastGood' });
    }
    if (entry.fault !== undefined) verdicts.push(platformFault(entry, entry.fault, used !== undefined));
  }
  return { encoded, merged, verdicts };
}

/**
 * The platform's keys stay as they are, but for a namespace with a scheme (`https://quay.io/team`): CRI-O takes that for the
 * whole host, and only while no key names the host, so that a tenant's `quay.io` would take its place. It stays too where
 * the plain spelling is taken, or would no longer say that the port is the scheme's.
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

function platformFault({ key, position }: DockerConfigEntry, fault: EntryFault, kept: boolean): Verdict {
  const place = `(line ${position.line}, column ${position.column})`;
  const after = kept ? '; the last good one stays in use' : '';
  const message = `${fault.message} ${place}${after}`;
  return { subject: key.written, verdict: 'Rejected', reason: fault.reason, message };
}

interface TenantContext {
  readonly original: readonly DockerConfigEntry[];
  readonly lastGood: ReadonlyMap<string, DockerConfigEntry>;
  readonly room: number;
}

type TenantPart = AdditionalResult & { readonly problem?: ConfigProblem };

function tenantPart(text: Redacted<string> | undefined, context: TenantContext): TenantPart {
  if (text === undefined) return { added: [], conflicts: [], verdicts: [] };
  const parsed = parseDockerConfig(text);
  if (parsed.ok && parsed.config.hasAuths) {
    const judged = judgeAdditional({ entries: parsed.config.entries, ...context });
    return { ...judged, verdicts: [...judged.verdicts, ...documentWarnings(parsed.config)] };
  }
  const problem = parsed.ok ? AUTHS_MISSING : parsed.problem;
  // Nothing can be read, so all that was good stays, judged against what the platform names now.
  const kept = judgeAdditional({ entries: [...context.lastGood.values()], ...context });
  return {
    added: kept.added.map(({ encoded }): AddedEntry => ({ encoded, source: 'lastGood' })),
    conflicts: kept.conflicts,
    verdicts: [documentVerdict(problem, kept.added.length)],
    problem,
  };
}

function mergedEntry({ encoded, source }: AddedEntry): MergedEntry {
  return { key: encoded.key, source };
}

interface LastEntries {
  readonly platform: ReadonlyMap<string, DockerConfigEntry>;
  readonly tenant: ReadonlyMap<string, DockerConfigEntry>;
}

function readLastGood(last: LastGood | undefined, original: Redacted<string> | undefined): LastEntries {
  const good = goodEntries(last?.text);
  const keys = new Set(last?.keys);
  const byKey = (entries: readonly DockerConfigEntry[]) =>
    entries.map((entry) => [entry.key.written, entry] as const);
  return {
    platform: new Map([
      ...byKey(good.filter((entry) => !keys.has(entry.key.written))),
      ...byKey(goodEntries(original)),
    ]),
    tenant: new Map(byKey(good.filter((entry) => keys.has(entry.key.written)))),
  };
}

function goodEntries(text: Redacted<string> | undefined): readonly DockerConfigEntry[] {
  const parsed = text === undefined ? undefined : parseDockerConfig(text);
  return parsed?.ok ? parsed.config.entries.filter((entry) => entry.fault === undefined) : [];
}

function leftOutVerdicts(names: readonly string[]): readonly Verdict[] {
  return names.map((name) => ({
    subject: `"${name}"`,
    verdict: 'Rejected',
    reason: 'FieldInvalid',
    message:
      'is left out: it is no map of texts, and the kubelet or CRI-O would give up the whole document for it',
  }));
}

function byteLength(text: Redacted<string>): number {
  return Buffer.byteLength(reveal(text));
}
