/** One grammar for each unit, as Kubernetes writes them. */
import { parseGoDuration } from '../../rules/go/duration.ts';

/** In the unit of the value: milliseconds, bytes, or plainly. */
export interface Bounds {
  readonly least?: number;
  readonly most?: number;
}

/** A value that a flag does not take. */
export class FlagFault extends Error {
  readonly value: string;
  /** What it must be, such as `a duration such as 30s`. */
  readonly wanted: string;

  constructor(value: string, wanted: string) {
    super(`must be ${wanted}`);
    this.name = 'FlagFault';
    this.value = value;
    this.wanted = wanted;
  }
}

/**
 * Milliseconds of a duration. A bare number is seconds, as kubectl reads its `--request-timeout`.
 *
 * @throws FlagFault
 * @example
 * ```ts
 * import { durationMs } from './units.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(['30s', '1m30s', '15', '250ms'].map((text) => durationMs(text)), [30_000, 90_000, 15_000, 250]);
 * assert.throws(() => durationMs('5 minutes'), /must be a duration such as 30s or 5m/);
 * ```
 */
export function durationMs(text: string, bounds: Bounds = {}): number {
  const nanoseconds = /^\d{1,9}$/.test(text) ? Number(text) * 1e9 : parseGoDuration(text);
  const ms = nanoseconds === undefined ? Number.NaN : nanoseconds / 1e6;
  if (within(ms, { least: 0, ...bounds })) return ms;
  throw new FlagFault(text, `a duration such as 30s or 5m${bounded(bounds, shortDuration)}`);
}

/** Whole seconds of a duration; the bounds are seconds too. @throws FlagFault */
export function wholeSeconds(text: string, bounds: Bounds = {}): number {
  const inMs = Object.fromEntries(Object.entries(bounds).map(([name, seconds]) => [name, seconds * 1000]));
  const seconds = durationMs(text, inMs) / 1000;
  if (Number.isInteger(seconds)) return seconds;
  throw new FlagFault(text, 'a duration of whole seconds, such as 30s or 5m');
}

/** @throws FlagFault */
export function wholeNumber(text: string, bounds: Bounds = {}): number {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (within(number, bounds)) return number;
  throw new FlagFault(text, `a whole number${bounded(bounds, String)}`);
}

/** Undefined: off. @throws FlagFault */
export function portNumber(text: string): number | undefined {
  if (text === 'off') return undefined;
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new FlagFault(text, 'a port from 0 to 65535, or off');
}

function within(value: number, { least = 0, most = Number.POSITIVE_INFINITY }: Bounds): boolean {
  return value >= least && value <= most;
}

function bounded({ least, most }: Bounds, show: (value: number) => string): string {
  if (least !== undefined && most !== undefined) return ` from ${show(least)} to ${show(most)}`;
  if (most !== undefined) return ` of at most ${show(most)}`;
  return least === undefined ? '' : ` of at least ${show(least)}`;
}

/** `90_000` as `90s`, `7_200_000` as `2h`. */
function shortDuration(ms: number): string {
  const [size, unit] = UNITS.find(([most]) => ms % most === 0) ?? [1, 'ms'];
  return `${ms / size}${unit}`;
}

const UNITS = [
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1000, 's'],
] as const;
