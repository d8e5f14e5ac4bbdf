/**
 * Holds large removals from a pull secret until they are confirmed: every entry, the registry of the release payload, or more
 * than a share of the entries. Additions and rotations are applied at once. Pure.
 *
 * The reconciler checks changes to the platform's copy, because it knows the release payload and the confirmations. It marks
 * checked documents. The node agent checks documents without the mark against the kubelet's file.
 */
import { createHash } from 'node:crypto';
import { parseDockerConfig } from '../core/docker-config/pull-secret.ts';
import type { RegistryKey } from '../core/docker-config/registry-key.ts';
import type { Redacted } from '../core/redacted.ts';
import { counted, someOf } from '../core/text.ts';

/** Annotation with hashes of confirmed removals: on the HostedCluster, the platform's Secret, or the Secret an agent reads. */
export const CONFIRM_REMOVAL = 'pullwright.dev/confirm-removal';

/** The part of an entry that the removal check compares. */
interface Keyed {
  readonly key: RegistryKey;
}

/** Limits for unconfirmed removals. */
export interface RemovalOptions {
  /** Share of the entries that a change may remove, between 0 and 1. @default {0.5} */
  readonly share?: number;
  /** After this many milliseconds a held removal proceeds without confirmation. @default never */
  readonly delayMs?: number;
}

/** A removal held until it is confirmed. */
export interface PendingRemoval {
  /** ID of the removal in {@link CONFIRM_REMOVAL}. Derived from keys only, never from credentials. */
  readonly hash: string;
  readonly reason: 'Everything' | 'ReleaseRegistry' | 'Share' | 'CopyDeleted';
  /** A clause without a period: `removes all 3 registries`. */
  readonly message: string;
  /** Held keys; empty when only the nodes know them. */
  readonly keys: readonly string[];
  /** Time of the first hold, RFC 3339. */
  readonly since: string;
  /** Time at which the removal proceeds without confirmation, RFC 3339; undefined: never. */
  readonly until?: string;
  /** Milliseconds from now until {@link until}. */
  readonly waitMs?: number;
}

export interface RemovalInput {
  /** Entries in use on nodes. */
  readonly before: readonly Keyed[];
  /** Entries of the new document. An entry with an invalid value still counts as present. */
  readonly after: readonly Keyed[];
  /** Repository of the release payload, if known. */
  readonly release?: string | undefined;
  /** Values of {@link CONFIRM_REMOVAL}. */
  readonly confirmed: readonly string[];
  /** Removal held by the previous reconcile. */
  readonly held?: { readonly hash: string; readonly since: string } | undefined;
  readonly options: RemovalOptions;
  readonly now: Date;
}

const DEFAULT_SHARE = 0.5;

/** Checks a change for removals that need confirmation. Returns undefined when the change may be applied. */
export function heldEntryRemoval(input: RemovalInput): PendingRemoval | undefined {
  const kept = new Set(input.after.flatMap(({ key }) => key.identities));
  const gone = input.before.filter(({ key }) => !key.identities.some((identity) => kept.has(identity)));
  if (gone.length === 0) return undefined;
  const keys = gone.map(({ key }) => key.written).sort();
  const hash = hashOf(keys, input.after);
  // Entries added by the same change reach nodes by the next pass and lower the removed share. A held removal must stay held.
  const judged = judge(input, gone) ?? (input.held?.hash === hash ? ofShare(input.before, gone) : undefined);
  if (judged === undefined || input.confirmed.includes(hash)) return undefined;
  const since = input.held?.hash === hash ? input.held.since : input.now.toISOString();
  return whileWaiting({ hash, ...judged, keys, since }, input);
}

function whileWaiting(
  held: PendingRemoval,
  { options: { delayMs }, now }: Pick<RemovalInput, 'options' | 'now'>,
): PendingRemoval | undefined {
  if (delayMs === undefined) return held;
  const until = new Date(Date.parse(held.since) + delayMs);
  const waitMs = until.getTime() - now.getTime();
  return waitMs > 0 ? { ...held, until: until.toISOString(), waitMs } : undefined;
}

type Judgement = Pick<PendingRemoval, 'reason' | 'message'>;

function judge(
  { before, after, release, options }: RemovalInput,
  gone: readonly Keyed[],
): Judgement | undefined {
  if (after.length === 0)
    return {
      reason: 'Everything',
      message: gone.length === 1 ? 'removes the only registry' : `removes all ${gone.length} registries`,
    };
  if (release !== undefined && covers(gone, release) && !covers(after, release))
    return { reason: 'ReleaseRegistry', message: `removes the registry of the release payload, ${release}` };
  return gone.length / before.length <= (options.share ?? DEFAULT_SHARE) ? undefined : ofShare(before, gone);
}

function ofShare(before: readonly Keyed[], gone: readonly Keyed[]): Judgement {
  const message = `removes ${gone.length} of ${counted(before.length, 'registry', 'registries')}`;
  return { reason: 'Share', message };
}

function covers(entries: readonly Keyed[], repository: string): boolean {
  return entries.some(({ key }) => repository === key.meaning || repository.startsWith(`${key.meaning}/`));
}

/** The copy with a held removal was deleted. Only the nodes know the entries, so they hold all removals until confirmed. */
export function lostRemoval(input: Omit<RemovalInput, 'before' | 'after'>): PendingRemoval | undefined {
  const { held, confirmed } = input;
  if (held === undefined || confirmed.includes(held.hash)) return undefined;
  const message = 'was missing entries when the copy that kept them was deleted';
  return whileWaiting({ ...held, reason: 'CopyDeleted', message, keys: [] }, input);
}

/** Value in place of the mark: agents hold every removal. */
export const UNJUDGED = 'unjudged';

/** Maximum number of keys in a message. */
const MAX_NAMES = 5;

/** Message text: the removal and the held keys. */
export function removalText({ message, keys }: Pick<PendingRemoval, 'message' | 'keys'>): string {
  if (keys.length === 0) return `${message}: entries on nodes stay`;
  const names = someOf(
    keys.map((key) => `"${key}"`),
    MAX_NAMES,
  );
  return `${message}: ${names} ${keys.length === 1 ? 'stays' : 'stay'}`;
}

/** Parses the comma-separated hashes of an annotation or flag. */
export function confirmedRemovals(value: string): readonly string[] {
  return value
    .split(',')
    .map((hash) => hash.trim())
    .filter((hash) => hash !== '');
}

/**
 * The mark of a document whose removals are checked: a key beside the document in the Secret, so that mounts include it. It
 * is derived from the registries, so a replacement with other registries invalidates it.
 */
export function judgedMark(document: Redacted<string>): string {
  const parsed = parseDockerConfig(document);
  return judgedMarkOf(parsed.ok ? parsed.config.entries.map(({ key }) => key.written) : []);
}

/** Like {@link judgedMark}, from the registry keys. */
export function judgedMarkOf(registries: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(registries.toSorted())).digest('hex');
}

/** Hashes keys only, so that a reader of the report cannot test password guesses against it. */
function hashOf(gone: readonly string[], after: readonly Keyed[]): string {
  const left = after.map(({ key }) => key.written).sort();
  return createHash('sha256')
    .update(JSON.stringify([gone, left]))
    .digest('hex')
    .slice(0, 12);
}
