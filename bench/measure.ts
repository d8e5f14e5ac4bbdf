/**
 * Timing for benchmarks: medians of interleaved rounds, and ratios between things measured in the same run. Absolute times
 * depend on the machine; ratios are what the documents quote.
 */

/** Minimum, median and maximum, in milliseconds. */
export interface Spread {
  readonly min: number;
  readonly median: number;
  readonly max: number;
}

/** One row of a benchmark's table. */
export type Row = Readonly<Record<string, string | number>>;

/**
 * Runs every variant once per round, in turn, so that a busy moment of the machine hits all of them.
 *
 * @param variants name to the work; what it gives back is ignored
 * @param rounds how often
 */
export async function interleaved<N extends string>(
  variants: Readonly<Record<N, () => unknown>>,
  rounds: number,
): Promise<Record<N, Spread>> {
  const names = Object.keys(variants) as N[];
  const times = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<N, number[]>;
  for (let round = 0; round < rounds; round += 1) {
    for (const name of names) {
      const start = performance.now();
      await variants[name]();
      times[name].push(performance.now() - start);
    }
  }
  return Object.fromEntries(names.map((name) => [name, spread(times[name])])) as Record<N, Spread>;
}

/** Spread of some numbers; at least one. */
export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  return { min: sorted[0] ?? 0, median: percentile(sorted, 0.5), max: sorted.at(-1) ?? 0 };
}

/** The value below which the share `p` of the sorted values lies. */
export function percentile(sorted: readonly number[], p: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(p * sorted.length))] ?? 0;
}

/** `2.4x`, for a table. */
export function ratio(value: number, of: number): string {
  return `${(value / of).toFixed(value / of < 10 ? 2 : 0)}x`;
}

/** Prints a titled table, one line a row, and a Markdown copy for the benchmarks page when `BENCH_MARKDOWN=1`. */
export function printTable(title: string, rows: readonly Row[]): void {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cells = [columns, ...rows.map((row) => columns.map((column) => String(row[column] ?? '')))];
  const widths = columns.map((_, index) => Math.max(...cells.map((line) => line[index]?.length ?? 0)));
  const lines = cells.map(
    (line) => `| ${line.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join(' | ')} |`,
  );
  lines.splice(1, 0, `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`);
  process.stdout.write(`\n### ${title}\n\n${lines.join('\n')}\n`);
}

/** Whole milliseconds or two digits, as fits. */
export function ms(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(2);
}
