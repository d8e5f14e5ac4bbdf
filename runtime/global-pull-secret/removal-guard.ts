/**
 * Holds a change of a pull secret that would take credentials from many pods until it is confirmed: one that leaves nothing,
 * that takes the registry of the release payload, or that takes more than a share of the entries. What the change adds or
 * rotates is applied; only removals are held. Pure.
 *
 * The reconciler judges what the platform does to its copy, where the release payload and the confirmations are known, and marks
 * what it has checked. The node agent checks a document without the mark against the file that its kubelet reads.
 */
import { createHash } from 'node:crypto';
import { parseDockerConfig } from '../core/docker-config/pull-secret.ts';
import type { RegistryKey } from '../core/docker-config/registry-key.ts';
import type { Redacted } from '../core/redacted.ts';
import { counted, someOf } from '../core/text.ts';

/** On the HostedCluster, on the platform's Secret, or on the Secret that an agent reads: the hashes of removals that may go on. */
export const CONFIRM_REMOVAL = 'pullwright.dev/confirm-removal';

/** An entry, as far as a removal goes. */
interface Keyed {
  readonly key: RegistryKey;
}

/** How much may go without a word. */
export interface RemovalOptions {
  /** Share of the entries that a change may remove, between 0 and 1. @default {0.5} */
  readonly share?: number;
  /** After this many milliseconds a held removal proceeds without confirmation. @default never */
  readonly delayMs?: number;
}

/** A removal that is held. */
export interface PendingRemoval {
  /** Names the removal in the annotation that confirms it. Says nothing of any credential. */
  readonly hash: string;
  readonly reason: 'Everything' | 'ReleaseRegistry' | 'Share' | 'CopyDeleted';
  /** A sentence without its end: `removes all 3 registries`. */
  readonly message: string;
  /** Held keys; none where only nodes know them. */
  readonly keys: readonly string[];
  /** When it was first held, RFC 3339. */
  readonly since: string;
  /** When it proceeds by itself, RFC 3339; undefined when it needs a confirmation. */
  readonly until?: string;
  /** The same in milliseconds from now. */
  readonly waitMs?: number;
}

export interface RemovalInput {
  /** Entries that nodes have. */
  readonly before: readonly Keyed[];
  /** Entries that there are now; a broken one is not removed. */
  readonly after: readonly Keyed[];
  /** Repository of the release payload, where it is known. */
  readonly release?: string | undefined;
  /** Values of {@link CONFIRM_REMOVAL}. */
  readonly confirmed: readonly string[];
  /** What the last pass held. */
  readonly held?: { readonly hash: string; readonly since: string } | undefined;
  readonly options: RemovalOptions;
  readonly now: Date;
}

const DEFAULT_SHARE = 0.5;

/**
 * Judges a change; undefined when it may go on as it is.
 */
export function heldEntryRemoval(input: RemovalInput): PendingRemoval | undefined {
  const kept = new Set(input.after.flatMap(({ key }) => key.identities));
  const gone = input.before.filter(({ key }) => !key.identities.some((identity) => kept.has(identity)));
  if (gone.length === 0) return undefined;
  const keys = gone.map(({ key }) => key.written).sort();
  const hash = hashOf(keys, input.after);
  // Entries that the same change adds are on nodes by the next pass and lower the removed share: once held, a removal stays held.
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

function judge(
  { before, after, release, options }: RemovalInput,
  gone: readonly Keyed[],
): Pick<PendingRemoval, 'reason' | 'message'> | undefined {
  if (after.length === 0)
    return {
      reason: 'Everything',
      message: gone.length === 1 ? 'removes the only registry' : `removes all ${gone.length} registries`,
    };
  if (release !== undefined && covers(gone, release) && !covers(after, release))
    return { reason: 'ReleaseRegistry', message: `removes the registry of the release payload, ${release}` };
  return gone.length / before.length <= (options.share ?? DEFAULT_SHARE) ? undefined : ofShare(before, gone);
}

function ofShare(
  before: readonly Keyed[],
  gone: readonly Keyed[],
): Pick<PendingRemoval, 'reason' | 'message'> {
  return {
    reason: 'Share',
    message: `removes ${gone.length} of ${counted(before.length, 'registry', 'registries')}`,
  };
}

function covers(entries: readonly Keyed[], repository: string): boolean {
  return entries.some(({ key }) => repository === key.meaning || repository.startsWith(`${key.meaning}/`));
}

/**
 * A removal whose entries went with the copy that held them: only the nodes know what they would lose, so they hold all of it
 * until it is confirmed.
 */
export function lostRemoval(input: Omit<RemovalInput, 'before' | 'after'>): PendingRemoval | undefined {
  const { held, confirmed } = input;
  if (held === undefined || confirmed.includes(held.hash)) return undefined;
  const message = 'had lost entries when the copy that kept them was deleted';
  return whileWaiting({ ...held, reason: 'CopyDeleted', message, keys: [] }, input);
}

/** Instead of a mark: no entry that the document lacks may be removed. */
export const UNJUDGED = 'unjudged';

/** Keys that a sentence names. */
const MAX_NAMES = 5;

/**
 * What a removal would remove and where it is held, for a sentence.
 */
export function removalText({ message, keys }: Pick<PendingRemoval, 'message' | 'keys'>): string {
  if (keys.length === 0) return `${message}: those that nodes have stay`;
  const names = someOf(
    keys.map((key) => `"${key}"`),
    MAX_NAMES,
  );
  return `${message}: ${names} ${keys.length === 1 ? 'stays' : 'stay'}`;
}

/** The hashes in an annotation or a flag, which may name several. */
export function confirmedRemovals(value: string): readonly string[] {
  return value
    .split(',')
    .map((hash) => hash.trim())
    .filter((hash) => hash !== '');
}

/**
 * The mark of a document whose removals are checked. It stands beside the document in the Secret, so that a mount has it too.
 * It is valid only for a document with the same registries, so a foreign replacement has none.
 */
export function judgedMark(document: Redacted<string>): string {
  const parsed = parseDockerConfig(document);
  return judgedMarkOf(parsed.ok ? parsed.config.entries.map(({ key }) => key.written) : []);
}

/** The same for a document with entries of these keys. */
export function judgedMarkOf(registries: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(registries.toSorted())).digest('hex');
}

/** Of the keys alone, so that who reads the report learns nothing that could be tried against a password. */
function hashOf(gone: readonly string[], after: readonly Keyed[]): string {
  const left = after.map(({ key }) => key.written).sort();
  return createHash('sha256')
    .update(JSON.stringify([gone, left]))
    .digest('hex')
    .slice(0, 12);
}
