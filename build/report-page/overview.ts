/** The first screen: the headline, what is wrong, and every cluster by system. */

import type { ReportCluster } from '../../runtime/diagnose/model/cluster.ts';
import type { ReportNodes } from '../../runtime/diagnose/model/nodes.ts';
import {
  causeText,
  headline,
  REPORT_SYSTEMS,
  type ReportVerdict,
  VERDICT_WORDS,
} from '../../runtime/diagnose/model/types.ts';
import type { PageReport } from '../../runtime/diagnose/views/html.ts';
import { drawPaged, html, name, sentence } from './dom.ts';
import { partId, problemCards } from './problems.ts';
import { linkTo } from './route.ts';
import { badge, mark, sign } from './verdict.ts';

const VERDICTS: readonly ReportVerdict[] = ['broken', 'attention', 'unknown', 'ok'];

/** All of it, for what `report` holds of a search. */
export function overviewParts(report: PageReport, search?: string): readonly HTMLElement[] {
  // That nothing is found says nothing of what is wrong.
  const isBare = search !== undefined && report.problems.length === 0;
  const head = isBare
    ? [html`<p class="none" role="status">No problem matches "${name(search)}".</p>`]
    : [hero(report), problemsPart(report)];
  return [...head, clustersPart(report.clusters), ...unreadPart(report)];
}

/** The headline, what to begin with, and how many there are of each verdict. */
function hero(report: PageReport): HTMLElement {
  const worst = VERDICTS.find((verdict) => report.clusters.some((one) => one.verdict === verdict)) ?? 'ok';
  return html`
    <section class="hero ${worst}" aria-labelledby="headline">
      <div class="hero-sign">${sign(worst)}</div>
      <div><h1 id="headline">${headline(report)}</h1>${heroHint(report)}</div>
      <ul class="tiles" aria-label="Clusters by verdict">${VERDICTS.map((one) => tile(report.clusters, one))}</ul>
    </section>`;
}

/** What to begin with: the worst cause, where it is, and the first thing to do. */
function heroHint({ problems, clusters }: PageReport): readonly HTMLElement[] {
  const [first] = problems;
  if (first === undefined) {
    const unknown = clusters.some(({ verdict }) => verdict === 'unknown');
    const text = unknown ? 'Look at the clusters of which nothing is known.' : 'Nothing needs to be done.';
    return [html`<p>${text}</p>`];
  }
  const [only = ''] = first.clusters;
  const where = first.clusters.length === 1 ? name(only) : `${first.clusters.length} clusters`;
  const link = html`<a href="${linkTo({ part: partId(first) })}">${sentence(causeText(first))}</a>`;
  const advice = first.cases[0]?.advice;
  return [
    html`<p>Begin with: ${link} in ${where}.</p>`,
    ...(advice === undefined ? [] : [html`<p class="hero-todo"><b>To do: </b>${sentence(advice)}</p>`]),
  ];
}

function tile(judged: readonly ReportCluster[], verdict: ReportVerdict): HTMLElement {
  const count = judged.filter((one) => one.verdict === verdict).length;
  return html`
    <li class="tile ${verdict}${count === 0 ? ' none' : ''}">
      <span class="count">${count}</span>
      <span class="tile-word">${sign(verdict)}${VERDICT_WORDS[verdict]}</span>
    </li>`;
}

function problemsPart({ problems }: PageReport): HTMLElement {
  const none = html`<p class="all-good">${sign('ok')}No problem was found.</p>`;
  return html`
    <section aria-labelledby="problems">
      <h2 id="problems">What is wrong, and what to do</h2>
      ${problems.length === 0 ? none : problemCards(problems)}
    </section>`;
}

function clustersPart(clusters: readonly ReportCluster[]): HTMLElement {
  const used = REPORT_SYSTEMS.filter((system) =>
    clusters.some(({ systems }) => systems.some((one) => one.system === system)),
  );
  const heads = ['Cluster', 'Verdict', ...used.map((one) => (one === 'pulls' ? 'pods' : one)), 'Nodes'];
  const body = html`<tbody></tbody>`;
  const section = html`
    <section aria-labelledby="clusters">
      <h2 id="clusters">Clusters</h2>
      <div class="scroll" tabindex="0" role="region" aria-label="Table of clusters">
        <table class="matrix">
          <caption class="unseen">Clusters, the verdict on each system, and how many nodes are in sync</caption>
          <thead><tr>${heads.map((text) => html`<th scope="col">${text}</th>`)}</tr></thead>
          ${body}
        </table>
      </div>
      <p class="legend">${VERDICTS.map((verdict) => badge(verdict))}<span>– not in use</span></p>
    </section>`;
  const rows = clusters.map((cluster) => () => clusterRow(cluster, used));
  drawPaged(body, rows, { most: 100, what: ' clusters', place: section });
  return section;
}

function clusterRow(
  { name: cluster, verdict, systems, nodes }: ReportCluster,
  used: readonly string[],
): HTMLElement {
  return html`
    <tr>
      <th scope="row"><a href="${linkTo({ cluster })}">${name(cluster)}</a></th>
      <td>${badge(verdict)}</td>
      ${used.map((system) => html`<td class="centre">${cellOf(systems.find((one) => one.system === system))}</td>`)}
      <td>${nodesBar(nodes)}</td>
    </tr>`;
}

function cellOf(found: ReportCluster['systems'][number] | undefined): HTMLElement {
  return found === undefined
    ? html`<span class="none" title="not in use">–<span class="unseen">not in use</span></span>`
    : mark(found.verdict, found.summary);
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
  if (nodes.total === 0) return html`<span class="none">no nodes</span>`;
  const there = PARTS.filter(([part]) => nodes[part] > 0);
  const pieces = there.map(([part]) => {
    const piece = html`<span class="piece ${part}"></span>`;
    piece.style.flexGrow = String(nodes[part]);
    return piece;
  });
  const words = there.map(([part, word]) => `${nodes[part]} ${word}`).join(', ');
  return html`
    <span class="nodes">
      <span class="bar" aria-hidden="true">${pieces}</span>
      <span class="nodes-words">${words}</span>
    </span>`;
}

/** What could not be read. */
function unreadPart({ unread }: PageReport): readonly HTMLElement[] {
  if (unread.length === 0) return [];
  const items = unread.slice(0, 200).map((line) => html`<li>${sentence(line)}</li>`);
  return [
    html`
      <section aria-labelledby="unread">
        <h2 id="unread">What could not be read</h2>
        <ul class="unread">${items}</ul>
      </section>`,
  ];
}
