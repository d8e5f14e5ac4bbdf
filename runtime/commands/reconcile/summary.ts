/** What stands at the end of a run over several clusters: a line for each, the worst first, and what to ask next. */
import { counted } from '../../rules/text/counted.ts';
import { textTable } from '../../rules/text/table.ts';
import type { ReconcileFlags } from './reconcile-flags.ts';
import type { RunReport } from './report.ts';

/** What a summary is made from. */
export interface SummaryInput {
  readonly reports: readonly RunReport[];
  readonly flags: Pick<ReconcileFlags, 'from' | 'management'>;
  /** How the program was called: `pullwright`, `node main.ts`. */
  readonly program: string;
}

interface Row {
  readonly scope: string;
  readonly errors: number;
  readonly warnings: number;
  readonly changes: number;
}

/**
 * The table and three commands. Errors are entries that nothing uses, problems and conditions `Ready=False`; warnings are entries
 * that others win against, and remarks.
 *
 * @example
 * ```ts
 * import { runSummary } from './summary.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(runSummary({ reports: [], flags: { from: 'dump' }, program: 'pullwright' }), '');
 * ```
 */
export function runSummary({ reports, flags, program }: SummaryInput): string {
  const rows = reports
    .map(rowOf)
    .toSorted((a, b) => b.errors - a.errors || b.warnings - a.warnings || compare(a.scope, b.scope));
  const [worst] = rows;
  if (worst === undefined) return '';
  const sum = (pick: (row: Row) => number): string =>
    String(rows.reduce((total, row) => total + pick(row), 0));
  const table = textTable(
    [
      ['CLUSTER', 'ERRORS', 'WARNINGS', 'CHANGES'],
      ...rows.map((row) => [row.scope, String(row.errors), String(row.warnings), String(row.changes)]),
      [
        counted(rows.length, 'cluster'),
        sum((row) => row.errors),
        sum((row) => row.warnings),
        sum((row) => row.changes),
      ],
    ],
    undefined,
  );
  const next = nextCommands(reports.find(({ scope }) => scope === worst.scope) ?? reports[0], flags);
  return `summary\n\n${table}\nto see more\n${next.map((line) => `  ${program} ${line}\n`).join('')}`;
}

function rowOf({ scope, verdicts, conditions, problems, counts }: RunReport): Row {
  const count = (names: readonly string[]): number =>
    verdicts.filter(({ verdict }) => names.includes(verdict)).length;
  const notReady = conditions.filter(({ type, status }) => type === 'Ready' && status === 'False').length;
  return {
    scope,
    errors: count(['Rejected']) + notReady + problems.length,
    warnings: count(['Shadowed', 'Warning']),
    changes: counts.created + counts.configured + counts.removed,
  };
}

/** Of the cluster that needs most: its report, an image of the registry that is in trouble, and its files. */
function nextCommands(
  report: RunReport | undefined,
  { from = '', management }: SummaryInput['flags'],
): readonly string[] {
  if (report === undefined) return [];
  const { scope, verdicts } = report;
  const folder = `${from}/${scope}`;
  const subject = verdicts.find(({ verdict }) => verdict === 'Rejected')?.subject;
  const image = subject === undefined || !PLAIN.test(subject) ? 'quay.io/team/app:1' : `${subject}/app:1`;
  const both = management === undefined ? '' : ` --management ${management}`;
  return [
    `reconcile --from ${from}${both} --hosted-cluster ${scope} --dry-run`,
    `explain ${image} --from ${folder}`,
    `validate ${folder}`,
  ];
}

/** A subject that is written by a tenant is put into a command only where it can be nothing but a place. */
const PLAIN = /^[a-z0-9][a-z0-9.:/-]*$/;

function compare(a: string, b: string): number {
  return a < b ? -1 : 1;
}
