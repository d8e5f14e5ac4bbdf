/** The first screen: the headline, what is wrong, and every cluster by system. */
import {
  causeText,
  headline,
  REPORT_SYSTEMS,
  type ReportCluster,
  type ReportNodes,
  type ReportVerdict,
  VERDICT_WORDS,
} from '../../runtime/diagnose/model/types.ts';
import type { PageReport } from '../../runtime/diagnose/views/html.ts';
import { h, name, sentence } from './dom.ts';
import { partId, problemCards } from './problems.ts';
import { linkTo } from './route.ts';
import { badge, mark, sign } from './verdict.ts';

const VERDICTS: readonly ReportVerdict[] = ['broken', 'attention', 'unknown', 'ok'];

/** Rows at once. */
const AT_ONCE = 100;

/** All of it, for what `report` holds of a search. */
export function overviewParts(report: PageReport, search?: string): readonly HTMLElement[] {
  // That nothing is found says nothing of what is wrong.
  const isBare = search !== undefined && report.problems.length === 0;
  const bare = h('p', { class: 'none', role: 'status' }, `No problem matches "${name(search ?? '')}".`);
  const head = isBare ? [bare] : [hero(report), problemsPart(report)];
  return [...head, clustersPart(report.clusters), ...unreadPart(report)];
}

/** The headline, what to begin with, and how many there are of each verdict. */
function hero(report: PageReport): HTMLElement {
  const worst = VERDICTS.find((verdict) => report.clusters.some((one) => one.verdict === verdict)) ?? 'ok';
  return h(
    'section',
    { class: `hero ${worst}`, 'aria-labelledby': 'headline' },
    h('div', { class: 'hero-sign' }, sign(worst)),
    h('div', {}, h('h1', { id: 'headline' }, headline(report)), ...heroHint(report)),
    h(
      'ul',
      { class: 'tiles', 'aria-label': 'Clusters by verdict' },
      ...VERDICTS.map((verdict) => tile(report.clusters, verdict)),
    ),
  );
}

/** What to begin with: the worst cause, where it is, and the first thing to do. */
function heroHint({ problems, clusters }: PageReport): readonly HTMLElement[] {
  const [first] = problems;
  if (first === undefined) {
    const unknown = clusters.some(({ verdict }) => verdict === 'unknown');
    const text = unknown ? 'Look at the clusters of which nothing is known.' : 'Nothing needs to be done.';
    return [h('p', {}, text)];
  }
  const [only = ''] = first.clusters;
  const where = first.clusters.length === 1 ? name(only) : `${first.clusters.length} clusters`;
  const link = h('a', { href: linkTo({ part: partId(first) }) }, sentence(causeText(first)));
  const advice = first.cases[0]?.advice;
  return [
    h('p', {}, 'Begin with: ', link, ` in ${where}.`),
    ...(advice === undefined
      ? []
      : [h('p', { class: 'hero-todo' }, h('b', {}, 'To do: '), sentence(advice))]),
  ];
}

function tile(judged: readonly ReportCluster[], verdict: ReportVerdict): HTMLElement {
  const count = judged.filter((one) => one.verdict === verdict).length;
  return h(
    'li',
    { class: `tile ${verdict}${count === 0 ? ' none' : ''}` },
    h('span', { class: 'count' }, String(count)),
    h('span', { class: 'tile-word' }, sign(verdict), VERDICT_WORDS[verdict]),
  );
}

function problemsPart({ problems }: PageReport): HTMLElement {
  return h(
    'section',
    { 'aria-labelledby': 'problems' },
    h('h2', { id: 'problems' }, 'What is wrong, and what to do'),
    ...(problems.length === 0
      ? [h('p', { class: 'all-good' }, sign('ok'), 'No problem was found.')]
      : problemCards(problems)),
  );
}

function clustersPart(clusters: readonly ReportCluster[]): HTMLElement {
  const used = REPORT_SYSTEMS.filter((system) =>
    clusters.some(({ systems }) => systems.some((one) => one.system === system)),
  );
  const body = h('tbody');
  const table = h(
    'table',
    { class: 'matrix' },
    h('caption', { class: 'unseen' }, 'Clusters, the verdict on each system, and how many nodes are in sync'),
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        ...[
          'Cluster',
          'Verdict',
          ...used.map((system) => (system === 'pulls' ? 'pods' : system)),
          'Nodes',
        ].map((text) => h('th', { scope: 'col' }, text)),
      ),
    ),
    body,
  );
  const section = h(
    'section',
    { 'aria-labelledby': 'clusters' },
    h('h2', { id: 'clusters' }, 'Clusters'),
    h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Table of clusters' }, table),
    legend(),
  );
  addRows({ section, body, clusters, used }, 0);
  return section;
}

interface Rows {
  readonly section: HTMLElement;
  readonly body: HTMLElement;
  readonly clusters: readonly ReportCluster[];
  readonly used: readonly string[];
}

function addRows(rows: Rows, from: number): void {
  const { section, body, clusters, used } = rows;
  body.append(...clusters.slice(from, from + AT_ONCE).map((cluster) => clusterRow(cluster, used)));
  const left = clusters.length - from - AT_ONCE;
  if (left <= 0) return;
  const more = h(
    'button',
    {
      type: 'button',
      class: 'more',
      click: () => {
        more.remove();
        addRows(rows, from + AT_ONCE);
        body.querySelectorAll<HTMLElement>('th a')[from + AT_ONCE]?.focus();
      },
    },
    `Show ${Math.min(AT_ONCE, left)} more of ${left} clusters`,
  );
  section.append(more);
}

function clusterRow(
  { name: cluster, verdict, systems, nodes }: ReportCluster,
  used: readonly string[],
): HTMLElement {
  return h(
    'tr',
    {},
    h('th', { scope: 'row' }, h('a', { href: linkTo({ cluster }) }, name(cluster))),
    h('td', {}, badge(verdict)),
    ...used.map((system) => {
      const found = systems.find((one) => one.system === system);
      return h(
        'td',
        { class: 'centre' },
        found === undefined
          ? h(
              'span',
              { class: 'none', title: 'not in use' },
              '–',
              h('span', { class: 'unseen' }, 'not in use'),
            )
          : mark(found.verdict, found.summary),
      );
    }),
    h('td', {}, nodesBar(nodes)),
  );
}

const PARTS: readonly (readonly [
  keyof ReportNodes & ('inSync' | 'outOfSync' | 'unknown' | 'ineligible'),
  string,
])[] = [
  ['inSync', 'in sync'],
  ['outOfSync', 'out of sync'],
  ['unknown', 'not known'],
  ['ineligible', 'not eligible'],
];

/** A bar of nodes, with the same in words. */
export function nodesBar(nodes: ReportNodes): HTMLElement {
  if (nodes.total === 0) return h('span', { class: 'none' }, 'no nodes');
  const bar = h('span', { class: 'bar', 'aria-hidden': 'true' });
  for (const [part] of PARTS) {
    if (nodes[part] === 0) continue;
    const piece = h('span', { class: `piece ${part}` });
    piece.style.flexGrow = String(nodes[part]);
    bar.append(piece);
  }
  const words = PARTS.filter(([part]) => nodes[part] > 0).map(([part, word]) => `${nodes[part]} ${word}`);
  return h('span', { class: 'nodes' }, bar, h('span', { class: 'nodes-words' }, words.join(', ')));
}

function legend(): HTMLElement {
  return h(
    'p',
    { class: 'legend' },
    ...VERDICTS.map((verdict) => badge(verdict)),
    h('span', {}, '– not in use'),
  );
}

/** What could not be read. */
function unreadPart({ unread }: PageReport): readonly HTMLElement[] {
  if (unread.length === 0) return [];
  return [
    h(
      'section',
      { 'aria-labelledby': 'unread' },
      h('h2', { id: 'unread' }, 'What could not be read'),
      h('ul', { class: 'unread' }, ...unread.slice(0, 200).map((line) => h('li', {}, sentence(line)))),
    ),
  ];
}
