/**
 * Durations as Go writes them: `1h30m`, `10s`, `1.5h`, `-3ms`. In nanoseconds, which a number holds exactly below 104 days, far
 * beyond what a configuration file holds.
 */

const UNITS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  μs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
};

const UNIT_NAMES = Object.keys(UNITS);
/** Go keeps nanoseconds in 64 bits with a sign. */
const MOST = 2n ** 63n;

/**
 * Nanoseconds, or undefined for text that Go's `time.ParseDuration` refuses. Like there, the digits before and after a point are
 * read as whole numbers: `2.05 * 1e9` would be a nanosecond short.
 */
export function parseGoDuration(text: string): number | undefined {
  // Each digit can be matched in one way only, or a long wrong text would take for ever.
  const match = /^([-+]?)(0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/.exec(text);
  if (match === null) return undefined;
  let sum = 0n;
  for (const [, whole = '', fraction = '', unit = ''] of (match[2] ?? '').matchAll(PART))
    sum += nanoseconds(whole, fraction, UNITS[unit] ?? 0);
  const isNegative = match[1] === '-';
  if (sum > (isNegative ? MOST : MOST - 1n)) return undefined;
  const size = Number(sum);
  return isNegative && size !== 0 ? -size : size;
}

const PART = new RegExp(`(\\d*)(?:\\.(\\d*))?(${UNIT_NAMES.join('|')})`, 'g');

function nanoseconds(whole: string, fraction: string, unit: number): bigint {
  // As many digits as fit into 64 bits; Go looks at no more.
  const zeros = /^0*/.exec(fraction)?.[0].length ?? 0;
  const most = fraction.slice(0, zeros + 19);
  const digits = BigInt(most || '0') > MOST ? most.slice(0, -1) : most;
  const below = Math.trunc(Number(digits) * (unit / 10 ** digits.length));
  return bounded(whole) * BigInt(unit) + BigInt(below);
}

/** A number of many digits is too large anyway, and slow to read. */
function bounded(digits: string): bigint {
  const significant = digits.replace(/^0+/, '');
  return significant.length > 19 ? MOST * 2n : BigInt(significant);
}

/**
 * The text that Go's `Duration.String` gives.
 *
 * @example
 * ```ts
 * import { formatGoDuration, parseGoDuration } from './go-duration.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(formatGoDuration(parseGoDuration('12h') ?? 0), '12h0m0s');
 * assert.equal(formatGoDuration(parseGoDuration('1500ms') ?? 0), '1.5s');
 * ```
 */
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

/** `size / factor` without an exponent, which Go does not read. `factor` is a power of ten. */
function decimal(size: number, factor: number): string {
  const fraction = String(size % factor)
    .padStart(String(factor).length - 1, '0')
    .replace(/0+$/, '');
  const whole = String(Math.floor(size / factor));
  return factor === 1 || fraction === '' ? whole : `${whole}.${fraction}`;
}
