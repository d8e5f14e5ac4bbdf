/** Back-off: exponential, capped, and with jitter, so that clients do not retry at the same time. */

export interface BackOff {
  readonly firstMs: number;
  readonly maxMs: number;
  /** The delay is drawn between these fractions of the exponential time. @default {[0.5, 1]} */
  readonly spread?: readonly [least: number, most: number];
}

/** Exponential delay in milliseconds before retry number `attempt` (from 0), without jitter. */
export function exponentialMs({ firstMs, maxMs }: BackOff, attempt: number): number {
  return Math.min(maxMs, firstMs * 2 ** Math.max(0, Math.min(attempt, 60)));
}

/**
 * Delay in milliseconds before retry number `attempt` (from 0), with jitter.
 *
 * @param random in [0, 1)
 */
export function backOffMs(backOff: BackOff, attempt: number, random: number): number {
  const [least, most] = backOff.spread ?? [0.5, 1];
  return exponentialMs(backOff, attempt) * (least + (most - least) * random);
}

/** `ms` plus up to `share` of it, so that equal intervals do not expire at the same time. */
export function jitterMs(ms: number, share: number, random: number): number {
  return ms * (1 + share * random);
}
