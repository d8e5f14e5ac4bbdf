/** Waiting times: exponential, bounded, and with jitter, so that clients do not retry at the same time. */

export interface BackOff {
  readonly firstMs: number;
  readonly maxMs: number;
  /** The wait lies between these shares of the exponential time. @default {[0.5, 1]} */
  readonly spread?: readonly [least: number, most: number];
}

/**
 * Milliseconds of the exponential time before try number `attempt` (0 is the first repetition), without spread.
 */
export function exponentialMs({ firstMs, maxMs }: BackOff, attempt: number): number {
  return Math.min(maxMs, firstMs * 2 ** Math.max(0, Math.min(attempt, 60)));
}

/**
 * Milliseconds to wait before try number `attempt` (0 is the first repetition).
 *
 * @param random in [0, 1)
 */
export function backOffMs(backOff: BackOff, attempt: number, random: number): number {
  const [least, most] = backOff.spread ?? [0.5, 1];
  return exponentialMs(backOff, attempt) * (least + (most - least) * random);
}

/** `ms`, up to `share` more: spreads what would otherwise happen at once. */
export function jitterMs(ms: number, share: number, random: number): number {
  return ms * (1 + share * random);
}
