/**
 * Holds a change that would take many copies of a profile away at once, until somebody confirms it. What its owner takes back,
 * and what goes with a profile or a grant that is deleted, is never counted here.
 */
import { createHash } from 'node:crypto';

/** On the profile: the hash of the removal that may go on. */
export const CONFIRM_ANNOTATION = 'pullwright.dev/confirm-removal';

/** How much may go without a word. A change is held when it removes more than both. */
export interface RemovalLimits {
  /** Share of the copies of a profile, between 0 and 1. */
  readonly share: number;
  /** Number of copies. */
  readonly copies: number;
}

export const DEFAULT_REMOVALS: RemovalLimits = { share: 0.2, copies: 10 };

/**
 * Whether a removal of `gone` out of `all` copies waits for a confirmation. What may go may go on: the rest of a removal that is
 * under way is never more than the whole.
 */
export function removesMany(gone: number, all: number, { share, copies }: RemovalLimits): boolean {
  return gone > copies && gone > share * all;
}

/** What names one removal. */
export interface RemovalIdentity {
  readonly uid: string;
  readonly spec: unknown;
  /** When it was first held, RFC 3339: a confirmation of this one is none of the next. */
  readonly since: string;
}

/** The hash that confirms a removal. It does not change while copies go. */
export function removalHash({ uid, spec, since }: RemovalIdentity): string {
  const text = JSON.stringify([uid, spec ?? null, since]);
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
