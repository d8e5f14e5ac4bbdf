/**
 * Durations as Go writes them: `1h30m`, `10s`, `1.5h`, `-3ms`. In nanoseconds, as a bigint would be exact to: numbers here are
 * exact below 104 days, far beyond what a configuration file holds.
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

/** Nanoseconds, or undefined for text that Go's `time.ParseDuration` refuses. */
export function parseGoDuration(text: string): number | undefined {
  // Each digit can be matched in one way only, or a long wrong text would take for ever.
  const match = /^([-+]?)(0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/.exec(text);
  if (match === null) return undefined;
  let sum = 0;
  for (const [, amount = '', unit = ''] of (match[2] ?? '').matchAll(/([\d.]+)([a-zµμ]+)/g))
    sum += Number(amount) * (UNITS[unit] ?? 0);
  const rounded = Math.trunc(sum);
  return match[1] === '-' && rounded !== 0 ? -rounded : rounded;
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
    if (size < factor * 1000) return `${sign}${size / factor}${unit}`;
  const hours = Math.floor(size / 3600e9);
  const minutes = Math.floor((size % 3600e9) / 60e9);
  const seconds = `${(size % 60e9) / 1e9}s`;
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${sign}${minutes}m${seconds}` : `${sign}${seconds}`;
}
