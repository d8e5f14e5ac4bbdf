/**
 * Durations in Go syntax: `1h30m`, `10s`, `1.5h`, `-3ms`. In nanoseconds: a number is exact below 104 days, far more than any
 * configuration file uses.
 */
import { trimEndOf } from '../text.ts';

const UNITS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};
const LIMIT = 2n ** 63n;

/** Nanoseconds, or undefined for text that Go's `time.ParseDuration` rejects, such as more than 292 years. */
export function parseGoDuration(text: string): number | undefined {
  // The pattern matches each digit in only one way: backtracking on a long invalid text would never finish.
  const match = /^([-+]?)(0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/.exec(text);
  if (match === null) return undefined;
  const [, sign, amounts = ''] = match;
  const sum = sumOf(amounts);
  // The longest negative duration has no positive counterpart.
  if (sum > LIMIT || (sum === LIMIT && sign !== '-')) return undefined;
  return sign === '-' && sum !== 0n ? -Number(sum) : Number(sum);
}

/** Sticky: each match must start where the last one ended. */
const AMOUNT = /(\d*)(?:\.(\d*))?([a-zµμ]+)/gy;

function sumOf(amounts: string): bigint {
  let sum = 0n;
  for (const [, whole = '', fraction = '', unit = ''] of amounts.matchAll(AMOUNT)) {
    const factor = UNITS[unit] ?? 0n;
    sum += BigInt(whole) * factor + partOf(fraction, factor);
    if (sum > LIMIT) break;
  }
  return sum;
}

/** Go computes a fraction in floating point, from only as many digits as fit 63 bits. */
function partOf(fraction: string, factor: bigint): bigint {
  let digits = 0n;
  let scale = 1;
  for (const digit of fraction) {
    const next = digits * 10n + BigInt(digit);
    if (next > LIMIT) break;
    digits = next;
    scale *= 10;
  }
  return BigInt(Math.trunc(Number(digits) * (Number(factor) / scale)));
}

/** Formats like Go's `Duration.String`. */
export function formatGoDuration(nanoseconds: number): string {
  if (nanoseconds === 0) return '0s';
  const sign = nanoseconds < 0 ? '-' : '';
  const size = Math.abs(nanoseconds);
  for (const [unit, factor] of [
    ['ns', 1],
    ['µs', 1e3],
    ['ms', 1e6],
  ] as const)
    if (size < factor * 1000) return `${sign}${decimal(size, factor)}${unit}`;
  const hours = Math.floor(size / 3600e9);
  const minutes = Math.floor((size % 3600e9) / 60e9);
  const seconds = `${decimal(size % 60e9, 1e9)}s`;
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${sign}${minutes}m${seconds}` : `${sign}${seconds}`;
}

/** `size / factor` without an exponent, which Go cannot parse. `factor` is a power of ten. */
function decimal(size: number, factor: number): string {
  const digits = String(size % factor).padStart(String(factor).length - 1, '0');
  const fraction = trimEndOf(digits, '0');
  const whole = String(Math.floor(size / factor));
  return factor === 1 || fraction === '' ? whole : `${whole}.${fraction}`;
}
