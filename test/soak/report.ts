/** The report of a soak run as Markdown. */
import type { Verdict } from './judge.ts';

export interface SoakRun {
  readonly seconds: number;
  readonly seed: number;
  readonly changesPerSecond: number;
  readonly machine: string;
  readonly samples: number;
  /** Changes and troubles, by name. */
  readonly counts: readonly (readonly [name: string, count: number])[];
  readonly verdicts: readonly Verdict[];
  readonly problems: readonly string[];
}

/** Renders the run. */
export function soakReport(run: SoakRun): string {
  const number = (value: number): string => (Number.isInteger(value) ? String(value) : value.toFixed(1));
  const rows = run.verdicts.map(
    ({ name, first, median, last, largest, slope, allowed, ok }) =>
      `| ${name} | ${number(first)} | ${number(median)} | ${number(last)} | ${number(largest)} | ${slope.toFixed(1)} | ${allowed === undefined ? 'not judged' : number(allowed)} | ${allowed === undefined ? '' : ok ? 'flat' : 'GROWS'} |`,
  );
  return [
    '# Soak',
    '',
    'Written by `npm run soak -- --minutes N --report FILE`. The compiled reconciler looks after one hosted cluster with global pull secret,',
    'distribution of pull secrets and registry overrides, on a real API server with a controller manager, while everything that it watches changes',
    'all the time and the API server is killed, paused, and loses its history. Growth per hour is the median of the slopes of all pairs of samples',
    'after the first quarter of the run.',
    '',
    `The last run took **${(run.seconds / 60).toFixed(0)} minutes** (seed ${run.seed}, ${run.changesPerSecond} changes a second, ${run.samples} samples) on ${run.machine}, beside other work.`,
    ...(run.seconds < 7000
      ? ['A full run is two hours; in a shorter one a slow growth is harder to tell from noise.']
      : []),
    '',
    '| what | after warm-up | median | at the end | largest | growth per hour | allowed | |',
    '|---|---|---|---|---|---|---|---|',
    ...rows,
    '',
    ...(run.verdicts.some(({ ok }) => !ok)
      ? [
          'The run failed: a value grows faster than allowed. A longer run on a quiet machine tells whether it goes on.',
          '',
        ]
      : []),
    run.problems.length === 0
      ? 'At the end the program was running, and what was declared last was in the cluster.'
      : `At the end: ${run.problems.join('; ')}.`,
    '',
    '| change | times |',
    '|---|---|',
    ...run.counts.map(([name, count]) => `| ${name} | ${count} |`),
    '',
  ].join('\n');
}
