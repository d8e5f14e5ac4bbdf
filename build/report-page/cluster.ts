/** One cluster: its problems, nodes, registry keys, pulls, namespaces and mirror sets. */
import type {
  ReportCluster,
  ReportKey,
  ReportPull,
  ReportSecret,
} from '../../runtime/diagnose/model/cluster.ts';
import type { PageCause, PageReport } from '../../runtime/diagnose/views/html.ts';
import { code, folded, html, name, reference, sentence } from './dom.ts';
import { nodesBar } from './overview.ts';
import { problemCards } from './problems.ts';
import { pullGraph } from './pull.ts';
import { linkTo } from './route.ts';
import { badge, mark } from './verdict.ts';

type Content = readonly (HTMLElement | string)[];

/** The whole cluster; with one pull drawn on request. */
export function clusterParts(
  report: PageReport,
  cluster: ReportCluster,
  pull: string | undefined,
): readonly HTMLElement[] {
  const chosen = cluster.pulls.find(({ id }) => id === pull);
  return [
    html`
      <section class="cluster-head">
        <p><a href="${linkTo({})}">← All clusters</a></p>
        <h1>${name(cluster.name)} ${badge(cluster.verdict)}</h1>
        <ul class="systems">${cluster.systems.map(systemItem)}</ul>
        ${nodesBar(cluster.nodes)}
      </section>`,
    ...(chosen === undefined ? [] : [pullGraph(chosen, cluster.runtimes)]),
    ...problemsIn(report.problems, cluster.name),
    pullsPart(cluster, chosen),
    keysPart(cluster),
    namespacesPart(cluster),
    mirrorsPart(cluster),
    nodesPart(cluster),
  ];
}

/** A section with an address of its own. */
function part(cluster: string, id: string, title: string, content: Content): HTMLElement {
  const link = linkTo({ cluster, part: id });
  return html`
    <section id="part-${id}" tabindex="-1" aria-labelledby="title-${id}">
      <h2><span id="title-${id}">${title}</span> <a class="permalink" href="${link}" aria-label="Link to: ${title}">#</a></h2>
      ${content}
    </section>`;
}

/** A table that is a list of rows where there is no room for columns. */
function tableOf(title: string, heads: readonly string[], rows: readonly HTMLElement[]): HTMLElement {
  // Where there is no room for columns, each cell says itself what it is.
  for (const row of rows)
    heads.forEach((text, at) => {
      row.children[at]?.setAttribute('data-label', text);
    });
  return html`
    <div class="scroll" tabindex="0" role="region" aria-label="${title}">
      <table class="rows">
        <thead><tr>${heads.map((text) => html`<th scope="col">${text}</th>`)}</tr></thead>
        <tbody>${rows}</tbody>
      </table>
    </div>`;
}

function none(text: string): HTMLElement {
  return html`<p class="none">${text}</p>`;
}

function systemItem({ system, verdict, summary }: ReportCluster['systems'][number]): HTMLElement {
  const title = system === 'pulls' ? 'pods' : system;
  return html`<li>${badge(verdict)}<b>${title}</b><span>${sentence(summary)}</span></li>`;
}

function problemsIn(problems: readonly PageCause[], cluster: string): readonly HTMLElement[] {
  const own = problems.flatMap((problem): PageCause[] => {
    const cases = problem.cases.filter((one) => one.cluster === cluster);
    return cases.length === 0 ? [] : [{ ...problem, cases, clusters: [cluster] }];
  });
  return own.length === 0
    ? []
    : [part(cluster, 'problems', 'What is wrong, and what to do', problemCards(own, cluster))];
}

function pullsPart(
  { name: cluster, pulls, pullsLeftOut }: ReportCluster,
  chosen: ReportPull | undefined,
): HTMLElement {
  const rows = pulls.map(
    (pull) => html`
      <tr class="${pull === chosen && 'chosen'}">
        <td>${mark(pull.verdict, 'this pull')}</td>
        <th scope="row"><a href="${linkTo({ cluster, pull: pull.id })}">${name(pull.object)}</a></th>
        <td>${reference(pull.image)}</td>
        <td class="number">${pull.pods === 0 ? '–' : pull.pods}</td>
      </tr>`,
  );
  return part(cluster, 'pulls', 'Pull paths', [
    rows.length === 0
      ? none('No workload or pod was found.')
      : tableOf('Workloads and their images', ['Verdict', 'Workload or pod', 'Image', 'Pods'], rows),
    pullsLeftOut === 0 ? '' : none(`${pullsLeftOut} more pulls are in order and not shown.`),
  ]);
}

const STATE_VERDICTS = {
  used: 'ok',
  shadowed: 'attention',
  rejected: 'broken',
} as const;

const KEY_HEADS = ['Registry key', 'State', 'From', 'Winner, and why', 'Ends', 'Nodes known to have it'];

function keysPart({ name: cluster, keys, nodes }: ReportCluster): HTMLElement {
  const rows = keys.map(
    (key) => html`
      <tr>
        <th scope="row">${code(key.key)}</th>
        <td>${badge(STATE_VERDICTS[key.state], key.state)}</td>
        <td>${code(key.source)}</td>
        <td>${whyOf(key)}</td>
        <td>${endOf(key)}</td>
        <td class="number">
          ${key.state === 'used' ? `${key.onNodes} of ${nodes.total}` : '–'}
        </td>
      </tr>`,
  );
  return part(cluster, 'keys', 'Registry keys of the nodes', [
    rows.length === 0
      ? none('No pull secret of the nodes was found.')
      : tableOf('Registry keys', KEY_HEADS, rows),
  ]);
}

function whyOf({ winner, why }: ReportKey): Content {
  return [
    ...(winner === undefined ? [] : [code(winner.key), ' of ', code(winner.source), html`<br>`]),
    why === undefined ? '–' : sentence(why),
  ];
}

function endOf({ expiresAt, ends }: ReportKey): Content {
  if (expiresAt === undefined) return ['does not say'];
  const time = html`<time datetime="${expiresAt}">${expiresAt.replace('T', ' ').replace('Z', ' UTC')}</time>`;
  return ends === undefined ? [time] : [badge(ends === 'ended' ? 'broken' : 'attention', ends), ' ', time];
}

function namespacesPart({ name: cluster, namespaces }: ReportCluster): HTMLElement {
  const items = namespaces.map(
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
  return part(
    cluster,
    'namespaces',
    'Namespaces',
    items.length === 0 ? [none('None has a pull secret, a grant or a workload.')] : items,
  );
}

function grantItem({
  name: grant,
  secrets,
  profiles,
  to,
  problems,
}: ReportCluster['namespaces'][number]['grants'][number]): HTMLElement {
  return html`
    <li>
      ${code(grant)}${` lets ${listText(profiles)} deliver ${listText(secrets)} to ${listText(to)}`}
      ${problems.map(faultText)}
    </li>`;
}

function faultText(text: string): HTMLElement {
  return html`<p class="fault">${sentence(text)}</p>`;
}

function listText(names: readonly string[]): string {
  return names.length === 0 ? 'nothing' : names.map(name).join(', ');
}

function secretItem({ name: secret, keys, fault, copy }: ReportSecret): HTMLElement {
  return html`
    <li>
      ${code(secret)}: ${listText(keys)}
      ${copy && html`<p class="copy">Copy of ${name(copy.of)} by profile ${name(copy.profile)}</p>`}
      ${fault === undefined ? undefined : faultText(fault)}
    </li>`;
}

function mirrorsPart({
  name: cluster,
  mirrors: { state, summary, rules, refusals },
}: ReportCluster): HTMLElement {
  const rows = rules.map(
    ({ source, mirrors, blocked, from }, at) => html`
      <tr>
        <td class="number">${at + 1}</td>
        <th scope="row">${code(source)}${from.map((place) => html`<span class="from">${name(place)}</span>`)}</th>
        <td><ol>${mirrors.map(({ location, pullFrom }) => html`<li>${code(location)} ${pullFrom}</li>`)}</ol></td>
        <td>${blocked ? 'never tried' : 'tried last'}</td>
      </tr>`,
  );
  return part(cluster, 'mirrors', 'Mirror sets, in the order of the operator', [
    html`<p>${badge(state === 'rendered' ? 'ok' : 'attention', state)} ${sentence(summary)}</p>`,
    html`<ul class="refusals">${refusals.map(refusalItem)}</ul>`,
    rows.length === 0
      ? none('No mirror set concerns these nodes.')
      : tableOf('Mirror sets', ['Order', 'Source', 'Mirrors, in order', 'The source itself'], rows),
  ]);
}

function refusalItem({
  severity,
  object,
  message,
}: ReportCluster['mirrors']['refusals'][number]): HTMLElement {
  const said = severity === 'error' ? badge('broken', 'refused') : badge('attention', 'warning');
  return html`<li>${said} ${code(object)}<p>${sentence(message)}</p></li>`;
}

function nodesPart({ name: cluster, nodes }: ReportCluster): HTMLElement {
  const body = html`<ul class="node-list"></ul>`;
  const summary = `${nodes.total} nodes: ${nodes.eligible} eligible, ${nodes.inSync} in sync`;
  const details = html`<details><summary>${summary}</summary>${body}</details>`;
  folded(details, () => {
    if (body.childElementCount > 0) return;
    body.append(
      ...nodes.list.map(
        ({ name: node, state, why }) =>
          html`<li>${code(node)} ${state}${why === undefined ? undefined : faultText(why)}</li>`,
      ),
    );
  });
  return part(cluster, 'nodes', 'Nodes', [details]);
}
