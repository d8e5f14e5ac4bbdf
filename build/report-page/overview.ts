/** The start view: the headline, the problems, and every cluster by system. */

import type { ReportCluster } from '../../runtime/diagnose/model/cluster.ts';
import type { ReportNodes } from '../../runtime/diagnose/model/nodes.ts';
import {
  causeText,
  headline,
  REPORT_SYSTEMS,
  REPORT_VERDICTS,
  VERDICT_WORDS,
} from '../../runtime/diagnose/model/types.ts';
import type { PageReport } from '../../runtime/diagnose/views/html.ts';
import {
  badge,
  html,
  linkTo,
  type Markup,
  mark,
  name,
  paged,
  section,
  sentence,
  sign,
  type Value,
} from './markup.ts';
import { partId, problemCards, whereText } from './problems.ts';

/** Returns the parts of the view. `report` is already filtered by `search`. */
export function overviewParts(report: PageReport, search?: string): readonly Value[] {
  const { problems, clusters, unread } = report;
  const cards =
    problems.length === 0
      ? html`<p class="all-good">${sign('ok')}No problem was found.</p>`
      : problemCards(problems);
  // A search without a match does not mean that there is no problem.
  const head =
    search !== undefined && problems.length === 0
      ? html`<p class="none" role="status">No problem matches "${name(search)}".</p>`
      : [hero(report), section('problems', 'What is wrong, and what to do', cards)];
  const items = unread.slice(0, 200).map((line) => html`<li>${sentence(line)}</li>`);
  return [
    head,
    section('clusters', 'Clusters', clustersTable(clusters)),
    unread.length > 0 && section('unread', 'Could not be read', html`<ul class="unread">${items}</ul>`),
  ];
}

/** The headline, the first step, and the number of clusters for each verdict. */
function hero(report: PageReport): Markup {
  const counts = REPORT_VERDICTS.map((verdict) => ({
    verdict,
    count: report.clusters.filter((one) => one.verdict === verdict).length,
  }));
  const worst = counts.find(({ count }) => count > 0)?.verdict ?? 'ok';
  const tiles = counts.map(
    ({ verdict, count }) => html`
      <li class="tile ${verdict}${count === 0 && ' none'}">
        <span class="count">${count}</span>
        <span class="tile-word">${sign(verdict)}${VERDICT_WORDS[verdict]}</span>
      </li>`,
  );
  return html`
    <section class="hero ${worst}" aria-labelledby="headline">
      <div class="hero-sign">${sign(worst)}</div>
      <div><h1 id="headline">${headline(report)}</h1>${heroHint(report)}</div>
      <ul class="tiles" aria-label="Clusters by verdict">${tiles}</ul>
    </section>`;
}

/** The first step: the worst cause, its clusters, and the advice. */
function heroHint({ problems: [first], clusters }: PageReport): Markup {
  if (first === undefined) {
    const unknown = clusters.some(({ verdict }) => verdict === 'unknown');
    return html`<p>${unknown ? 'Check the clusters that are not confirmed healthy.' : 'No action is needed.'}</p>`;
  }
  const link = html`<a href="${linkTo({ part: partId(first) })}">${sentence(causeText(first))}</a>`;
  const advice = first.cases[0]?.advice;
  return html`
    <p>Begin with: ${link} in ${whereText(first.clusters)}.</p>
    ${advice !== undefined && html`<p class="hero-todo"><b>To do: </b>${sentence(advice)}</p>`}`;
}

function clustersTable(clusters: readonly ReportCluster[]): Markup {
  const used = REPORT_SYSTEMS.filter((system) =>
    clusters.some(({ systems }) => systems.some((one) => one.system === system)),
  );
  const heads = ['Cluster', 'Verdict', ...used.map((one) => (one === 'pulls' ? 'pods' : one)), 'Nodes'];
  const row = ({ name: cluster, verdict, systems, nodes }: ReportCluster): Markup => html`
    <tr>
      <th scope="row"><a href="${linkTo({ cluster })}">${name(cluster)}</a></th>
      <td>${badge(verdict)}</td>
      ${used.map((system) => html`<td class="centre">${cellOf(systems.find((one) => one.system === system))}</td>`)}
      <td>${nodesBar(nodes)}</td>
    </tr>`;
  return html`
    <div class="scroll" tabindex="0" role="region" aria-label="Table of clusters">
      <table class="matrix">
        <caption class="unseen">Clusters, the verdict on each system, and how many nodes are in sync</caption>
        <thead><tr>${heads.map((text) => html`<th scope="col">${text}</th>`)}</tr></thead>
        <tbody>${paged(clusters, row, { most: 100, what: ' clusters', columns: heads.length })}</tbody>
      </table>
    </div>
    <p class="legend">${REPORT_VERDICTS.map((verdict) => badge(verdict))}<span>– not in use</span></p>`;
}

function cellOf(found: ReportCluster['systems'][number] | undefined): Markup {
  return found === undefined
    ? html`<span class="none" title="not in use">–<span class="unseen">not in use</span></span>`
    : mark(found.verdict, found.summary);
}

const PARTS = [
  ['inSync', 'in sync'],
  ['outOfSync', 'out of sync'],
  ['unknown', 'not known'],
  ['ineligible', 'not eligible'],
] as const;

/** A bar of node states, with the numbers as text. */
export function nodesBar(nodes: ReportNodes): Markup {
  if (nodes.total === 0) return html`<span class="none">no nodes</span>`;
  const there = PARTS.filter(([part]) => nodes[part] > 0);
  return html`
    <span class="nodes">
      <span class="bar" aria-hidden="true">
        ${there.map(([part]) => html`<span class="piece ${part}" data-grow="${nodes[part]}"></span>`)}
      </span>
      <span class="nodes-words">${there.map(([part, word]) => `${nodes[part]} ${word}`).join(', ')}</span>
    </span>`;
}
