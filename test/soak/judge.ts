/** Checks that a series of samples is flat: the slope after the warm-up, by medians, so that outliers have no effect. */

/** One look at the process and its surroundings. */
export interface Sample {
  /** Since the start. */
  readonly seconds: number;
  readonly values: Readonly<Record<string, number>>;
}

/** Allowed growth of a value per hour, as a share of its median, or as a number. */
export interface Limit {
  readonly share?: number;
  readonly absolute?: number;
}

export interface Verdict {
  readonly name: string;
  readonly first: number;
  readonly median: number;
  readonly last: number;
  readonly largest: number;
  /** Growth per hour after the warm-up. */
  readonly slope: number;
  /** Allowed growth per hour; undefined: shown without a limit. */
  readonly allowed: number | undefined;
  readonly ok: boolean;
}

/**
 * Judges every value of `samples`. What happened in the first `warmUp` (a share of the time) does not count.
 *
 * @example
 * ```ts
 * import { judge } from './judge.ts';
 * import assert from 'node:assert/strict';
 *
 * const samples = Array.from({ length: 60 }, (_, index) => ({ seconds: index * 60, values: { rss: 100 + index, fds: 20 } }));
 * const verdicts = judge(samples, { rss: { share: 0.1 }, fds: { absolute: 2 } });
 * assert.deepEqual(verdicts.map(({ name, ok }) => [name, ok]), [['rss', false], ['fds', true]]);
 * ```
 */
export function judge(
  samples: readonly Sample[],
  limits: Readonly<Record<string, Limit>>,
  warmUp: number = 0.25,
): readonly Verdict[] {
  const end = samples.at(-1)?.seconds ?? 0;
  const warm = samples.filter(({ seconds }) => seconds >= end * warmUp);
  const names = Object.keys(samples.at(-1)?.values ?? {});
  return names.map((name) => {
    const series = warm.flatMap(({ seconds, values }) => {
      const value = values[name];
      return value === undefined ? [] : [{ hours: seconds / 3600, value }];
    });
    const values = series.map(({ value }) => value);
    const middle = median(values);
    const slope = slopeOf(series);
    const limit = limits[name];
    const allowed =
      limit === undefined ? undefined : Math.max((limit.share ?? 0) * middle, limit.absolute ?? 0);
    return {
      name,
      first: values[0] ?? 0,
      median: middle,
      last: values.at(-1) ?? 0,
      largest: Math.max(...values),
      slope,
      allowed,
      ok: allowed === undefined || slope <= allowed,
    };
  });
}

/** Theil and Sen: the median of the slopes of all pairs (of evenly chosen samples, where there are many). */
function slopeOf(series: readonly { readonly hours: number; readonly value: number }[]): number {
  const step = Math.max(1, Math.floor(series.length / 200));
  const chosen = series.filter((_, index) => index % step === 0);
  const slopes = chosen.flatMap((a, index) =>
    chosen.slice(index + 1).map((b) => (b.value - a.value) / (b.hours - a.hours)),
  );
  return median(slopes.filter(Number.isFinite));
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
