/** A report on a terminal: what is wrong, where, and what to do; then the clusters. */
import type { Paint } from '../diagnose/explain-text.ts';
import { counted } from '../text/counted.ts';
import { onOneLine } from '../text/printable.ts';
import { textTable } from '../text/table.ts';
import { wrapped } from '../text/wrap.ts';
import type { Report, ReportCause, ReportChange, ReportCluster } from './types.ts';
import { countText, headline } from './verdict.ts';

/** With the colour, never the colour alone. */
const SIGNS = { broken: '✕', attention: '!', unknown: '?', ok: '✓' } as const;

const COLOURS = { broken: 'red', attention: 'yellow', unknown: 'dim', ok: 'green' } as const;

/** Cases of one cause that are listed. */
const MOST_CASES = 5;

/** For people at a terminal. Longer lines than `columns` go on in the next one; YAML is left as it is. */
export function reportText(report: Report, paint: Paint, columns?: number): string {
  const { problems, clusters, changes } = report;
  return [
    ...wrapped(headline(report), columns).map((line) => paint('bold', line)),
    '',
    ...problems.flatMap((cause) => [...causeLines(cause, paint, columns), '']),
    textTable(
      [['CLUSTER', 'VERDICT', 'NODES IN SYNC', 'KEYS', 'IMAGES', 'SYSTEMS'], ...clusters.map(clusterCells)],
      columns,
    ).trimEnd(),
    ...(changes === undefined
      ? []
      : [
          '',
          paint('bold', `Since ${changes.since}: ${countText(changes.list)}`),
          ...changes.list.map(changeLine),
        ]),
    '',
  ].join('\n');
}

/** Each line at its own depth, in so many columns. */
function indented(depth: number, text: string, columns: number | undefined): readonly string[] {
  const lines = wrapped(onOneLine(text), columns === undefined ? undefined : columns - depth);
  return lines.map((line) => `${' '.repeat(depth)}${line}`);
}

function causeLines(
  { verdict, title, cases, clusters }: ReportCause,
  paint: Paint,
  columns: number | undefined,
): readonly string[] {
  const shown = cases.slice(0, MOST_CASES);
  const more = cases.length - shown.length;
  return [
    ...wrapped(
      `${paint(COLOURS[verdict], `${SIGNS[verdict]} ${verdict.padEnd(9)}`)} ${paint('bold', title)} (${cases.length} in ${clusters.length === 1 ? onOneLine(clusters[0] ?? '') : `${clusters.length} clusters`})`,
      columns,
    ),
    ...shown.flatMap(({ cluster, object, message, advice, fix }) => [
      ...indented(2, `${onOneLine(cluster)}  ${onOneLine(object)}`, columns),
      ...indented(4, message, columns),
      ...(advice === undefined ? [] : indented(4, advice, columns)),
      ...(fix === undefined
        ? []
        : fix
            .trimEnd()
            .split('\n')
            .map((line) => `      ${line}`)),
    ]),
    ...(more === 0 ? [] : [`  and ${more} more`]),
  ];
}

function clusterCells({ name, verdict, nodes, keys, pulls, pullsLeftOut, systems }: ReportCluster): string[] {
  return [
    onOneLine(name),
    verdict,
    `${nodes.inSync} of ${nodes.eligible} (${counted(nodes.total, 'node')})`,
    String(keys.length),
    String(pulls.length + pullsLeftOut),
    systems.map((one) => `${one.system} ${one.verdict}`).join(', '),
  ];
}

/** One line about one difference. */
export function changeLine({ what, change, cluster, subject, before, after }: ReportChange): string {
  const values = [before, after].filter((value) => value !== undefined).map(onOneLine);
  const where = [cluster, subject].filter((part) => part !== '').map(onOneLine);
  return `  ${change.padEnd(7)} ${what.padEnd(8)} ${where.join('  ')}${values.length === 0 ? '' : `: ${values.join(' -> ')}`}`;
}
