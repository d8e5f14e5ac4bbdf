/** The reference page of metrics: those that our programs serve at start, and those that appear with their first sample. */
import type { AnyNode } from 'acorn';
import { installerGauges } from '../../runtime/credential-provider/installer/installer.ts';
import { createMetrics } from '../../runtime/engine/metrics.ts';
import { authFileAge, NodeMetrics } from '../../runtime/node/report.ts';
import { codeSpan, grouped, prose, table } from './markdown.ts';
import { partOf } from './reasons.ts';
import { constantOf, type ProgramSource, propertyOf, textsOf } from './source.ts';

/** One metric. */
export interface MetricRow {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: readonly string[];
  /** The program that serves it. */
  readonly by: string;
}

/** Returns every metric of ours, and of the libraries whose names dashboards know: one row per name and program. */
export async function allMetrics(sources: readonly ProgramSource[]): Promise<readonly MetricRow[]> {
  const pages = await servedPages();
  const given = givenSamples(sources);
  const known = new Set(pages.map(({ name }) => name));
  return [...pages, ...given.filter(({ name }) => !known.has(name))];
}

/** `docs/reference/metrics.md` */
export function metricsPage(metrics: readonly MetricRow[]): string {
  return [
    '# Metrics',
    '',
    'Metrics of `/metrics` by program. Those of controller-runtime, client-go and its workqueue have the same names and meaning, so that their dashboards',
    'work; the `process_` and `nodejs_` metrics of the runtime are added. Gauges of a reconciler exist as long as the objects that they describe.',
    '',
    ...grouped(metrics, ({ by }) => by).flatMap(([by, rows]) => [
      `## ${by}`,
      '',
      ...table(
        ['metric', 'type', 'labels', ''],
        grouped(rows, ({ name }) => name).map(([name, same]) => [
          codeSpan(name),
          same[0]?.type ?? '',
          [...new Set(same.flatMap(({ labels }) => labels))].map(codeSpan).join(', '),
          prose(same[0]?.help ?? ''),
        ]),
      ),
    ]),
  ].join('\n');
}

async function servedPages(): Promise<readonly MetricRow[]> {
  const places = { root: '/nowhere', stateDir: '', authDir: '/auth' };
  const installer = new NodeMetrics(0, 'pullwright_installer');
  return [
    ...parsePage('reconciler, webhook, adapter and sentinel', (await labelled()).text),
    ...parsePage('agent', new NodeMetrics(0).text([authFileAge(0)])),
    ...parsePage('installer', installer.text(installerGauges(places, undefined, 'Starting'))),
  ].filter(({ name }) => !/^(process|nodejs)_/.test(name));
}

/** Metrics with one sample each, so that the page shows their labels. */
async function labelled(): Promise<{ readonly text: string }> {
  const metrics = createMetrics();
  metrics.reconciled('c', 'success', 1);
  metrics.failed('c', true);
  metrics.activeWorkers('c', 1);
  metrics.request({ code: '200', method: 'GET', host: 'h' });
  metrics.leader('l', true);
  metrics.hostedClusters({ ready: 1, starting: 0, failing: 0, refused: 0 });
  metrics.applied('c', 'apply');
  metrics.admitted('w', 'patched', 0);
  const queue = metrics.queue('q', () => 0);
  queue.added();
  queue.retried();
  queue.started(1);
  queue.finished(1);
  return metrics.render();
}

/** Parses an exposition page into rows. */
function parsePage(by: string, text: string): readonly MetricRow[] {
  const helps = new Map(
    [...text.matchAll(/^# HELP (\S+) (.*)$/gm)].map(([, name = '', help = '']) => [name, help]),
  );
  return [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => ({
    name,
    type,
    help: helps.get(name) ?? '',
    labels: labelsIn(text, name),
    by,
  }));
}

function labelsIn(text: string, name: string): readonly string[] {
  const samples = [...text.matchAll(new RegExp(`^${name}(?:_bucket|_sum|_count)?\\{(.*)\\} `, 'gm'))];
  const labels = samples.flatMap(([, inner = '']) =>
    [...inner.matchAll(/(\w+)="/g)].map(([, label = '']) => label),
  );
  return [...new Set(labels)].filter((label) => label !== 'le');
}

/** Metrics in the sources: `{ name: 'pullwright_…', help, labels }`, or a name and its help in a list or a call. */
function givenSamples(sources: readonly ProgramSource[]): readonly MetricRow[] {
  return sources.flatMap(({ file, nodes }) =>
    nodes.flatMap((node) => {
      const [sample, help, labels] = sampleIn(node);
      return textsOf(sample).flatMap((text): readonly MetricRow[] => {
        const [, name, inner = ''] = /^(pullwright_[a-z0-9_]+)(\{.*\})?$/.exec(text) ?? [];
        if (name === undefined) return [];
        const own = [...inner.matchAll(/(\w+)="/g)].map(([, label = '']) => label);
        return [
          {
            name,
            type: name.endsWith('_total') ? 'counter' : 'gauge',
            help: textsOf(help).join(' '),
            labels: [...own, ...labelNames(labels)],
            // These programs serve their own page.
            by: /\/(agent|installer|sentinel)\//.exec(file)?.[1] ?? partOf(file),
          },
        ];
      });
    }),
  );
}

function sampleIn(node: AnyNode): readonly (AnyNode | null | undefined)[] {
  if (node.type === 'ObjectExpression')
    return ['name', 'help', 'labels']
      .map((field) => propertyOf(node, field))
      .with(0, propertyOf(node, 'name') ?? propertyOf(node, 'sample'));
  const isList = node.type === 'ArrayExpression';
  if (!isList && node.type !== 'CallExpression') return [];
  const [name, help, , labels] = (isList ? node.elements : node.arguments) as readonly (AnyNode | null)[];
  // Samples in a table use the constant `labels` of their function.
  return name?.type === 'Literal' ? [name, help, isList ? constantOf('labels', node) : labels] : [];
}

function labelNames(node: AnyNode | null | undefined): readonly string[] {
  if (node?.type === 'Identifier') return labelNames(constantOf(node.name, node));
  if (node?.type !== 'ObjectExpression') return [];
  return node.properties.flatMap((property) => {
    if (property.type === 'SpreadElement') return labelNames(property.argument);
    return property.key.type === 'Identifier' ? [property.key.name] : [];
  });
}
