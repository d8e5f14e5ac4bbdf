/**
 * Breakers: a content that brought the unit down is not tried again and again. One per content.
 *
 * When the unit did not come up, the content gets a second chance after 5 minutes and a third after 30; then only other
 * content is tried. When systemd could not even be reached, nothing was restarted, so it is tried for ever, ever more slowly.
 */
import { exponentialMs } from '../back-off.ts';

/** `bus`: systemd was not reached, nothing was restarted. `unit`: the unit did not come up. */
export type FailureKind = 'bus' | 'unit';

export interface Breaker {
  /** How many times all attempts failed. */
  readonly rounds: number;
  /** When it closes by itself (milliseconds since 1970); absent: never. */
  readonly retryAt?: number;
  /** How long after opening that is. */
  readonly coolMs?: number;
  readonly kind: FailureKind;
}

/** By digest of the source, oldest first. */
export type Breakers = Readonly<Record<string, Breaker>>;

/** The newest so many are remembered. */
export const MAX_BREAKERS = 8;

const MINUTE = 60_000;
const UNIT_COOL_MS: readonly number[] = [5 * MINUTE, 30 * MINUTE];
const MAX_BUS_COOL_MS = 10 * MINUTE;

/**
 * The breakers after all attempts for `source` failed.
 *
 * @example
 * ```ts
 * import { isOpen, opened } from './breaker.ts';
 * import assert from 'node:assert/strict';
 *
 * const breakers = opened({}, { source: 'a', kind: 'unit', now: 0 });
 * assert.equal(isOpen(breakers, 'a', 299_999), true);
 * assert.equal(isOpen(breakers, 'a', 300_000), false);
 * assert.equal(isOpen(breakers, 'b', 0), false);
 * ```
 */
export function opened(
  breakers: Breakers,
  failure: { readonly source: string; readonly kind: FailureKind; readonly now: number },
): Breakers {
  const { [failure.source]: before, ...others } = breakers;
  const rounds = before?.kind === failure.kind ? before.rounds + 1 : 1;
  const coolMs =
    failure.kind === 'bus'
      ? exponentialMs({ firstMs: MINUTE, maxMs: MAX_BUS_COOL_MS }, rounds - 1)
      : UNIT_COOL_MS[rounds - 1];
  const breaker: Breaker = {
    rounds,
    kind: failure.kind,
    ...(coolMs === undefined ? {} : { coolMs, retryAt: failure.now + coolMs }),
  };
  const kept = Object.entries(others).slice(-(MAX_BREAKERS - 1));
  return Object.fromEntries([...kept, [failure.source, breaker]]);
}

/** Whether `source` must not be tried at `now`. */
export function isOpen(breakers: Breakers, source: string, now: number): boolean {
  if (!Object.hasOwn(breakers, source)) return false;
  const left = retryInMs(breakers, source, now);
  return left === undefined || left > 0;
}

/** Milliseconds until `source` may be tried again; undefined: never by itself. Never longer than it was meant to be. */
export function retryInMs(breakers: Breakers, source: string, now: number): number | undefined {
  const breaker = Object.hasOwn(breakers, source) ? breakers[source] : undefined;
  if (breaker === undefined) return 0;
  if (breaker.retryAt === undefined || breaker.coolMs === undefined) return undefined;
  return Math.max(0, Math.min(breaker.retryAt - now, breaker.coolMs));
}

/** Forgets `source`: it worked. */
export function withoutBreaker(breakers: Breakers, source: string): Breakers {
  return Object.fromEntries(Object.entries(breakers).filter(([name]) => name !== source));
}
