/** One cluster: its problems, nodes, registry keys, pulls, namespaces and mirror sets. */
import type { ReportCluster } from '../../runtime/diagnose/model/cluster.ts';
import type { PageReport } from '../../runtime/diagnose/views/html.ts';
import {
  badge,
  code,
  html,
  later,
  linkTo,
  type Markup,
  mark,
  name,
  reference,
  section,
  sentence,
  type Value,
} from './markup.ts';
import { nodesBar } from './overview.ts';
import { problemCards } from './problems.ts';
import { pullGraph } from './pull.ts';

/** Returns all parts of a cluster, with the graph of one pull if requested. */
export function clusterParts({ problems }: PageReport, cluster: ReportCluster, pull: string | undefined) {
  const chosen = cluster.pulls.find(({ id }) => id === pull);
  const own = problems.flatMap((problem) => {
    const cases = problem.cases.filter((one) => one.cluster === cluster.name);
    return cases.length === 0 ? [] : [{ ...problem, cases, clusters: [cluster.name] }];
  });
  const part = (id: string, title: string, content: Value): Markup =>
    section(id, title, content, cluster.name);
  return [
    html`
      <section class="cluster-head">
        <p><a href="${linkTo({})}">← All clusters</a></p>
        <h1>${name(cluster.name)} ${badge(cluster.verdict)}</h1>
        <ul class="systems">${cluster.systems.map(systemItem)}</ul>
        ${nodesBar(cluster.nodes)}
      </section>`,
    chosen !== undefined && pullGraph(chosen, cluster.runtimes),
    own.length > 0 && part('problems', 'What is wrong, and what to do', problemCards(own, cluster.name)),
    part('pulls', 'Pull paths', pullsPart(cluster, pull)),
    part('keys', 'Registry keys of the nodes', keysPart(cluster)),
    part('namespaces', 'Namespaces', namespacesPart(cluster)),
    part('mirrors', 'Mirror sets, in the order of the operator', mirrorsPart(cluster)),
    part('nodes', 'Nodes', nodesPart(cluster)),
  ];
}

/**
 * Renders a table. On narrow screens it is a list, so each cell has the label of its column.
 *
 * @param about `none`: text without rows; `th`: index of the header cell in a row; `chosen`: index of the selected row
 */
function tableOf(
  title: string,
  heads: readonly string[],
  rows: readonly Value[][],
  { none, th = 0, chosen }: { readonly none: string; readonly th?: number; readonly chosen?: number },
): Markup {
  if (rows.length === 0) return html`<p class="none">${none}</p>`;
  const drawn = rows.map((row, at) => {
    const cells = row.map((cell, column) =>
      column === th
        ? html`<th scope="row">${cell}</th>`
        : html`<td class="${typeof cell !== 'object' && 'number'}" data-label="${heads[column]}">${cell}</td>`,
    );
    return html`<tr class="${at === chosen && 'chosen'}">${cells}</tr>`;
  });
  return html`
    <div class="scroll" tabindex="0" role="region" aria-label="${title}">
      <table class="rows">
        <thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
        <tbody>${drawn}</tbody>
      </table>
    </div>`;
}

function systemItem({ system, verdict, summary }: ReportCluster['systems'][number]): Markup {
  const title = system === 'pulls' ? 'pods' : system;
  return html`<li>${badge(verdict)}<b>${title}</b><span>${sentence(summary)}</span></li>`;
}

function pullsPart({ name: cluster, pulls, pullsLeftOut }: ReportCluster, pull: string | undefined): Value {
  const rows = pulls.map(({ id, verdict, object, image, pods }) => [
    mark(verdict, 'this pull'),
    html`<a href="${linkTo({ cluster, pull: id })}">${name(object)}</a>`,
    reference(image),
    pods === 0 ? '–' : pods,
  ]);
  return [
    tableOf('Workloads and their images', ['Verdict', 'Workload or pod', 'Image', 'Pods'], rows, {
      none: 'No workload or pod was found.',
      th: 1,
      chosen: pulls.findIndex(({ id }) => id === pull),
    }),
    pullsLeftOut > 0 && html`<p class="none">${pullsLeftOut} more healthy pulls are not shown.</p>`,
  ];
}

const STATE_VERDICTS = {
  used: 'ok',
  shadowed: 'attention',
  rejected: 'broken',
} as const;

function keysPart({ keys, nodes }: ReportCluster): Markup {
  const rows = keys.map((key) => [
    code(key.key),
    badge(STATE_VERDICTS[key.state], key.state),
    code(key.source),
    [
      key.winner && html`${code(key.winner.key)} of ${code(key.winner.source)}<br>`,
      key.why === undefined ? '–' : sentence(key.why),
    ],
    endOf(key),
    key.state === 'used' ? `${key.onNodes} of ${nodes.total}` : '–',
  ]);
  const heads = ['Registry key', 'State', 'From', 'Winner, and why', 'Ends', 'Nodes known to have it'];
  return tableOf('Registry keys', heads, rows, { none: 'No pull secret of the nodes was found.' });
}

function endOf({ expiresAt, ends }: ReportCluster['keys'][number]): Value {
  if (expiresAt === undefined) return 'does not say';
  const time = html`<time datetime="${expiresAt}">${expiresAt.replace('T', ' ').replace('Z', ' UTC')}</time>`;
  return ends === undefined ? time : [badge(ends === 'expired' ? 'broken' : 'attention', ends), ' ', time];
}

function namespacesPart({ namespaces }: ReportCluster): Value {
  if (namespaces.length === 0)
    return html`<p class="none">None has a pull secret, a grant or a workload.</p>`;
  return namespaces.map(
    ({ name: namespace, secrets, grants, pulls, verdict }) => html`
      <details class="namespace">
        <summary>
          ${mark(verdict, 'the namespace')}
          <b>${name(namespace)}</b>
          <span class="where">${secrets.length} pull secrets, ${grants.length} grants, ${pulls} images</span>
        </summary>
        <ul>${secrets.map(secretItem)}</ul>
        ${grants.length > 0 && html`<h4>Grants</h4>`}
        <ul>${grants.map(grantItem)}</ul>
      </details>`,
  );
}

type ReportNamespace = ReportCluster['namespaces'][number];

function grantItem({
  name: grant,
  secrets,
  profiles,
  to,
  problems,
}: ReportNamespace['grants'][number]): Markup {
  return html`
    <li>
      ${code(grant)}${` lets ${listText(profiles)} deliver ${listText(secrets)} to ${listText(to)}`}
      ${problems.map(faultText)}
    </li>`;
}

function faultText(text: string | undefined): Value {
  return text !== undefined && html`<p class="fault">${sentence(text)}</p>`;
}

function listText(names: readonly string[]): string {
  return names.length === 0 ? 'nothing' : names.map(name).join(', ');
}

function secretItem({ name: secret, keys, fault, copy }: ReportNamespace['secrets'][number]): Markup {
  return html`
    <li>
      ${code(secret)}: ${listText(keys)}
      ${copy && html`<p class="copy">Copy of ${name(copy.of)} by profile ${name(copy.profile)}</p>`}
      ${faultText(fault)}
    </li>`;
}

function mirrorsPart({ mirrors: { state, summary, rules, refusals } }: ReportCluster): Markup {
  const items = refusals.map(({ severity, object, message }) => {
    const said = severity === 'error' ? badge('broken', 'refused') : badge('attention', 'warning');
    return html`<li>${said} ${code(object)}<p>${sentence(message)}</p></li>`;
  });
  const rows = rules.map(({ source, mirrors, blocked, from }, at) => [
    at + 1,
    [code(source), from.map((place) => html`<span class="from">${name(place)}</span>`)],
    html`<ol>${mirrors.map(({ location, pullFrom }) => html`<li>${code(location)} ${pullFrom}</li>`)}</ol>`,
    blocked ? 'never tried' : 'tried last',
  ]);
  const heads = ['Order', 'Source', 'Mirrors, in order', 'The source itself'];
  const none = 'No mirror set concerns these nodes.';
  return html`
    <p>${badge(state === 'rendered' ? 'ok' : 'attention', state)} ${sentence(summary)}</p>
    <ul class="refusals">${items}</ul>
    ${tableOf('Mirror sets', heads, rows, { none, th: 1 })}`;
}

function nodesPart({ nodes: { total, eligible, inSync, list } }: ReportCluster): Markup {
  const items = (): Markup => html`
    <ul class="node-list">
      ${list.map(({ name: node, state, why }) => html`<li>${code(node)} ${state}${faultText(why)}</li>`)}
    </ul>`;
  return html`
    <details>
      <summary>${total} nodes: ${eligible} eligible, ${inSync} in sync</summary>
      <div ${later(items)}></div>
    </details>`;
}
