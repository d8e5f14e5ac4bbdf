/**
 * Holds a change of the platform's pull secret that would take credentials from many pods until it is confirmed: one that
 * leaves nothing, that takes the registry of the release payload, or that takes more than a share of the entries. What the
 * change adds or rotates goes on; only what it removes stays. Pure.
 */
import { createHash } from 'node:crypto';
import type { DockerConfigEntry } from '../../rules/docker-config/docker-config.ts';

/** On the HostedCluster, or on the platform's Secret: the hash of the removal that may go on. */
export const CONFIRM_REMOVAL = 'pullwright.dev/confirm-removal';

/** How much may go without a word. */
export interface RemovalOptions {
  /** Share of the entries that a change may remove, between 0 and 1. @default {0.5} */
  readonly share?: number;
  /** After this many milliseconds a removal that is held goes on by itself. @default never */
  readonly delayMs?: number;
}

/** A removal that is held. */
export interface HeldEntryRemoval {
  /** Names the removal in the annotation that confirms it. Says nothing of any credential. */
  readonly hash: string;
  readonly reason: 'Everything' | 'ReleaseRegistry' | 'Share';
  /** A sentence without its end: `removes all 3 registries`. */
  readonly message: string;
  /** Keys that stay for now. */
  readonly keys: readonly string[];
  /** When it was first held, RFC 3339. */
  readonly since: string;
  /** When it goes on by itself, RFC 3339; undefined when only a confirmation lets it. */
  readonly until?: string;
  /** The same in milliseconds from now. */
  readonly waitMs?: number;
}

export interface RemovalInput {
  /** Entries that nodes have. */
  readonly before: readonly DockerConfigEntry[];
  /** Entries that the platform has now; a broken one is not removed. */
  readonly after: readonly DockerConfigEntry[];
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

/** Judges a change; undefined when it may go on as it is. */
export function heldEntryRemoval(input: RemovalInput): HeldEntryRemoval | undefined {
  const kept = new Set(input.after.flatMap(({ key }) => key.identities));
  const gone = input.before.filter(({ key }) => !key.identities.some((identity) => kept.has(identity)));
  if (gone.length === 0) return undefined;
  const keys = gone.map(({ key }) => key.written).sort();
  const hash = hashOf(keys, input.after);
  // What the same change adds is on nodes by the next pass, and makes the share of what it removes smaller: once held, it stays so.
  const judged = judge(input, gone) ?? (input.held?.hash === hash ? ofShare(input.before, gone) : undefined);
  if (judged === undefined || input.confirmed.includes(hash)) return undefined;
  const since = input.held?.hash === hash ? input.held.since : input.now.toISOString();
  const held = { hash, ...judged, keys, since };
  const { delayMs } = input.options;
  if (delayMs === undefined) return held;
  const until = new Date(Date.parse(since) + delayMs);
  const waitMs = until.getTime() - input.now.getTime();
  return waitMs > 0 ? { ...held, until: until.toISOString(), waitMs } : undefined;
}

function judge(
  { before, after, release, options }: RemovalInput,
  gone: readonly DockerConfigEntry[],
): Pick<HeldEntryRemoval, 'reason' | 'message'> | undefined {
  if (after.length === 0) return { reason: 'Everything', message: `removes all ${count(gone.length)}` };
  if (release !== undefined && covers(gone, release) && !covers(after, release))
    return { reason: 'ReleaseRegistry', message: `removes the registry of the release payload, ${release}` };
  return gone.length / before.length <= (options.share ?? DEFAULT_SHARE) ? undefined : ofShare(before, gone);
}

function ofShare(
  before: readonly DockerConfigEntry[],
  gone: readonly DockerConfigEntry[],
): Pick<HeldEntryRemoval, 'reason' | 'message'> {
  return { reason: 'Share', message: `removes ${gone.length} of ${count(before.length)}` };
}

function count(entries: number): string {
  return entries === 1 ? '1 registry' : `${entries} registries`;
}

function covers(entries: readonly DockerConfigEntry[], repository: string): boolean {
  return entries.some(({ key }) => repository === key.meaning || repository.startsWith(`${key.meaning}/`));
}

/** Of the keys alone, so that who reads the report learns nothing that could be tried against a password. */
function hashOf(gone: readonly string[], after: readonly DockerConfigEntry[]): string {
  const left = after.map(({ key }) => key.written).sort();
  return createHash('sha256')
    .update(JSON.stringify([gone, left]))
    .digest('hex')
    .slice(0, 12);
}
