/** The page of metrics: what our programs serve at once, and what they add once there is something to count. */
import type { AnyNode } from 'acorn';
import { installerGauges } from '../../runtime/credential-provider/installer/installer.ts';
import { createMetrics } from '../../runtime/engine/metrics.ts';
import { authFileAge, NodeMetrics } from '../../runtime/node/report.ts';
import { codeSpan, grouped, prose, table } from './markdown.ts';
import { partOf } from './reasons.ts';
import { type ProgramSource, propertyOf, SourceTexts } from './source.ts';

/** One metric. */
export interface MetricRow {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: readonly string[];
  /** Who serves it. */
  readonly by: string;
}

/** Every metric of ours and of the libraries whose names dashboards know, one row a name and program. */
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
    'What a scrape of `/metrics` brings, by program. The names of controller-runtime, client-go and its workqueue mean what they mean there, so that their',
    'dashboards work; beside them stand the `process_` and `nodejs_` metrics of the runtime. Gauges that a reconciler reports come and go with what they',
    'speak of.',
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
  const pages: readonly (readonly [string, string])[] = [
    ['reconciler, webhook, adapter and sentinel', (await labelled()).text],
    ['agent', new NodeMetrics(0).text([authFileAge(0)])],
    [
      'installer',
      new NodeMetrics(0, 'pullwright_installer').text(installerGauges(places, undefined, 'Starting')),
    ],
  ];
  return pages
    .flatMap(([by, text]) => parsePage(by, text))
    .filter(({ name }) => !/^(process|nodejs)_/.test(name));
}

/** A sample of each, so that the page shows its labels. */
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

/** The rows of an exposition page. */
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

/** `{ name: 'pullwright_…', help, labels }`, and calls with name and help. */
function givenSamples(sources: readonly ProgramSource[]): readonly MetricRow[] {
  const texts = new SourceTexts(sources);
  return sources.flatMap((source) =>
    source.nodes.flatMap((node) => {
      const [sample, help, labels] = sampleIn(node);
      return texts.of(sample, source).flatMap((text): readonly MetricRow[] => {
        const [, name, inner = ''] = /^(pullwright_[a-z0-9_]+)(\{.*\})?$/.exec(text) ?? [];
        if (name === undefined) return [];
        const type = name.endsWith('_total') ? 'counter' : 'gauge';
        const own = [...inner.matchAll(/(\w+)="/g)].map(([, label = '']) => label);
        return [
          {
            name,
            type,
            help: texts.of(help, source).join(' '),
            labels: [...own, ...labelNames(labels, source)],
            by: programOf(source.file),
          },
        ];
      });
    }),
  );
}

/** What runs on a node serves a page of its own. */
function programOf(file: string): string {
  return /\/(agent|installer|sentinel)\//.exec(file)?.[1] ?? partOf(file);
}

function sampleIn(node: AnyNode): readonly (AnyNode | undefined)[] {
  // A row of a table, whose samples have the `labels` of their function.
  if (node.type === 'ArrayExpression') {
    const [name, help] = node.elements as (AnyNode | null)[];
    const labels = { type: 'Identifier', name: 'labels', start: node.start, end: node.end } as const;
    return [name?.type === 'Literal' ? name : undefined, help ?? undefined, labels];
  }
  if (node.type === 'CallExpression') {
    const [name, help] = node.arguments as AnyNode[];
    return [name?.type === 'Literal' ? name : undefined, help, node.arguments[3]];
  }
  return [
    propertyOf(node, 'name') ?? propertyOf(node, 'sample'),
    propertyOf(node, 'help'),
    propertyOf(node, 'labels'),
  ];
}

function labelNames(node: AnyNode | undefined, source: ProgramSource): readonly string[] {
  if (node?.type === 'Identifier')
    return labelNames(source.constants.get(node.name)?.findLast(({ at }) => at < node.start)?.value, source);
  if (node?.type !== 'ObjectExpression') return [];
  return node.properties.flatMap((property) => {
    if (property.type === 'SpreadElement') return labelNames(property.argument, source);
    return property.key.type === 'Identifier' ? [property.key.name] : [];
  });
}
