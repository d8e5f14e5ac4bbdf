/** A report as Markdown: for the comment of a change, where no script runs. */
import { counted, onOneLine } from '../../core/text.ts';
import type { Report, ReportCluster } from '../model/cluster.ts';
import { type Cause, headline, VERDICT_WORDS } from '../model/types.ts';
import { fixText } from './text.ts';

/** A comment has room for so many. */
const MOST_CASES = 10;
const MOST_CLUSTERS = 50;
const LONGEST = 400;

/**
 * The report as Markdown. Names that others chose are code, so that nothing in them is Markdown or HTML.
 */
export function reportMarkdown(report: Report): string {
  const { problems, clusters, madeAt, source, unread } = report;
  return [
    `## ${headline(report)}`,
    '',
    `${code(source)}, ${madeAt}`,
    '',
    ...problems.flatMap(causeLines),
    '### Clusters',
    '',
    '| Cluster | Verdict | Nodes in sync | Systems |',
    '|---|---|---|---|',
    ...clusters.slice(0, MOST_CLUSTERS).map(clusterRow),
    '',
    ...more(clusters.length - MOST_CLUSTERS, 'clusters'),
    ...(unread.length === 0 ? [] : [`${counted(unread.length, 'thing')} could not be read.`, '']),
  ].join('\n');
}

function causeLines({ verdict, title, about, cases }: Cause): readonly string[] {
  return [
    `### ${VERDICT_WORDS[verdict]}: ${title}${about === undefined ? '' : `: ${code(about)}`} (${cases.length})`,
    '',
    ...cases
      .slice(0, MOST_CASES)
      .flatMap(({ cluster, subject, message, advice, fix }) => [
        `- ${code(cluster)} ${code(subject)}: ${code(message)}${advice === undefined ? '' : `. To do: ${code(advice)}`}`,
        ...(fix === undefined ? [] : ['', ...fenced(fixText(fix)), '']),
      ]),
    ...more(cases.length - MOST_CASES, 'cases'),
    '',
  ];
}

function more(count: number, what: string): readonly string[] {
  return count > 0 ? [`- and ${count} more ${what}`] : [];
}

/** Longer than any run of backticks within. */
function fenced(yaml: string): readonly string[] {
  const longest = Math.max(2, ...[...yaml.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return [
    `  ${fence}yaml`,
    ...yaml
      .trimEnd()
      .split('\n')
      .map((line) => `  ${line}`),
    `  ${fence}`,
  ];
}

/** As code, whatever it holds: a row of a table ends at a bar even there. */
function code(text: string): string {
  const line = onOneLine(text).replaceAll('|', '¦');
  const cut = line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
  const longest = Math.max(0, ...[...cut.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return cut === '' ? '(none)' : longest === 0 ? `\`${cut}\`` : `${fence} ${cut} ${fence}`;
}

function clusterRow({ name, verdict, nodes, systems }: ReportCluster): string {
  const parts = systems.map((one) => `${one.system}: ${VERDICT_WORDS[one.verdict]}`);
  return `| ${code(name)} | ${VERDICT_WORDS[verdict]} | ${nodes.inSync} of ${nodes.eligible} | ${parts.join(', ')} |`;
}
