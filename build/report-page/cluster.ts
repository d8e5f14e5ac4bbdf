/** One cluster: its problems, nodes, registry keys, pulls, namespaces and mirror sets. */
import type {
  ReportCluster,
  ReportKey,
  ReportPull,
  ReportSecret,
} from '../../runtime/diagnose/model/types.ts';
import type { PageCause, PageReport } from '../../runtime/diagnose/views/html.ts';
import { code, folded, h, name, reference, sentence } from './dom.ts';
import { nodesBar } from './overview.ts';
import { part, tableOf } from './parts.ts';
import { problemCards } from './problems.ts';
import { pullGraph } from './pull.ts';
import { linkTo } from './route.ts';
import { badge, mark } from './verdict.ts';

/** The whole cluster; with one pull drawn on request. */
export function clusterParts(
  report: PageReport,
  cluster: ReportCluster,
  pull: string | undefined,
): readonly HTMLElement[] {
  const chosen = cluster.pulls.find(({ id }) => id === pull);
  return [
    h(
      'section',
      { class: 'cluster-head' },
      h('p', {}, h('a', { href: linkTo({}) }, '← All clusters')),
      h('h1', {}, name(cluster.name), ' ', badge(cluster.verdict)),
      h('ul', { class: 'systems' }, ...cluster.systems.map(systemItem)),
      nodesBar(cluster.nodes),
    ),
    ...(chosen === undefined ? [] : [pullGraph(chosen, cluster.runtimes)]),
    ...problemsIn(report.problems, cluster.name),
    pullsPart(cluster, chosen),
    keysPart(cluster),
    namespacesPart(cluster),
    mirrorsPart(cluster),
    nodesPart(cluster),
  ];
}

function systemItem({ system, verdict, summary }: ReportCluster['systems'][number]): HTMLElement {
  return h(
    'li',
    {},
    badge(verdict),
    h('b', {}, system === 'pulls' ? 'pods' : system),
    h('span', {}, sentence(summary)),
  );
}

function problemsIn(problems: readonly PageCause[], cluster: string): readonly HTMLElement[] {
  const own = problems.flatMap((problem): PageCause[] => {
    const cases = problem.cases.filter((one) => one.cluster === cluster);
    return cases.length === 0 ? [] : [{ ...problem, cases, clusters: [cluster] }];
  });
  return own.length === 0
    ? []
    : [part(cluster, 'problems', 'What is wrong, and what to do', ...problemCards(own, cluster))];
}

function pullsPart(
  { name: cluster, pulls, pullsLeftOut }: ReportCluster,
  chosen: ReportPull | undefined,
): HTMLElement {
  const rows = pulls.map((pull) =>
    h(
      'tr',
      { class: pull === chosen ? 'chosen' : undefined },
      h('td', {}, mark(pull.verdict, 'this pull')),
      h('th', { scope: 'row' }, h('a', { href: linkTo({ cluster, pull: pull.id }) }, name(pull.object))),
      h('td', {}, reference(pull.image)),
      h('td', { class: 'number' }, pull.pods === 0 ? '–' : String(pull.pods)),
    ),
  );
  return part(
    cluster,
    'pulls',
    'Pull paths',
    rows.length === 0
      ? h('p', { class: 'none' }, 'No workload or pod was found.')
      : tableOf('Workloads and their images', ['Verdict', 'Workload or pod', 'Image', 'Pods'], rows),
    pullsLeftOut === 0
      ? ''
      : h('p', { class: 'none' }, `${pullsLeftOut} more pulls are in order and not shown.`),
  );
}

const STATE_VERDICTS = {
  used: 'ok',
  'last-good': 'attention',
  shadowed: 'attention',
  rejected: 'broken',
} as const;

function keysPart({ name: cluster, keys, nodes }: ReportCluster): HTMLElement {
  const rows = keys.map((key) =>
    h(
      'tr',
      {},
      h('th', { scope: 'row' }, code(key.key)),
      h('td', {}, badge(STATE_VERDICTS[key.state], key.state)),
      h('td', {}, code(key.source)),
      h('td', {}, ...whyOf(key)),
      h('td', {}, ...endOf(key)),
      h(
        'td',
        { class: 'number' },
        key.state === 'used' || key.state === 'last-good' ? `${key.onNodes} of ${nodes.total}` : '–',
      ),
    ),
  );
  return part(
    cluster,
    'keys',
    'Registry keys of the nodes',
    rows.length === 0
      ? h('p', { class: 'none' }, 'No pull secret of the nodes was found.')
      : tableOf(
          'Registry keys',
          ['Registry key', 'State', 'From', 'Winner, and why', 'Ends', 'Nodes known to have it'],
          rows,
        ),
  );
}

function whyOf({ winner, why }: ReportKey): readonly (HTMLElement | string)[] {
  return [
    ...(winner === undefined ? [] : [code(winner.key), ' of ', code(winner.source), h('br')]),
    ...(why === undefined ? ['–'] : [sentence(why)]),
  ];
}

function endOf({ expiresAt, ends }: ReportKey): readonly (HTMLElement | string)[] {
  if (expiresAt === undefined) return ['does not say'];
  const time = h('time', { datetime: expiresAt }, expiresAt.replace('T', ' ').replace('Z', ' UTC'));
  return ends === undefined ? [time] : [badge(ends === 'ended' ? 'broken' : 'attention', ends), ' ', time];
}

function namespacesPart({ name: cluster, namespaces }: ReportCluster): HTMLElement {
  const items = namespaces.map(({ name: namespace, secrets, grants, pulls, verdict }) =>
    h(
      'details',
      { class: 'namespace' },
      h(
        'summary',
        {},
        mark(verdict, 'the namespace'),
        h('b', {}, name(namespace)),
        h(
          'span',
          { class: 'where' },
          `${secrets.length} pull secrets, ${grants.length} grants, ${pulls} images`,
        ),
      ),
      h('ul', {}, ...secrets.map(secretItem)),
      grants.length === 0 ? undefined : h('h4', {}, 'Grants'),
      h(
        'ul',
        {},
        ...grants.map(({ name: grant, secrets: granted, profiles, to, problems }) =>
          h(
            'li',
            {},
            code(grant),
            ` lets ${listText(profiles)} deliver ${listText(granted)} to ${listText(to)}`,
            ...problems.map((problem) => h('p', { class: 'fault' }, sentence(problem))),
          ),
        ),
      ),
    ),
  );
  return part(
    cluster,
    'namespaces',
    'Namespaces',
    ...(items.length === 0
      ? [h('p', { class: 'none' }, 'None has a pull secret, a grant or a workload.')]
      : items),
  );
}

function listText(names: readonly string[]): string {
  return names.length === 0 ? 'nothing' : names.map(name).join(', ');
}

function secretItem({ name: secret, keys, fault, copy }: ReportSecret): HTMLElement {
  return h(
    'li',
    {},
    code(secret),
    ': ',
    listText(keys),
    copy === undefined
      ? undefined
      : h('p', { class: 'copy' }, `Copy of ${name(copy.of)} by profile ${name(copy.profile)}`),
    fault === undefined ? undefined : h('p', { class: 'fault' }, sentence(fault)),
  );
}

function mirrorsPart({
  name: cluster,
  mirrors: { state, summary, rules, refusals },
}: ReportCluster): HTMLElement {
  const rows = rules.map(({ source, mirrors, blocked, from }, at) =>
    h(
      'tr',
      {},
      h('td', { class: 'number' }, String(at + 1)),
      h(
        'th',
        { scope: 'row' },
        code(source),
        ...from.map((place) => h('span', { class: 'from' }, name(place))),
      ),
      h(
        'td',
        {},
        h('ol', {}, ...mirrors.map(({ location, pullFrom }) => h('li', {}, code(location), ` ${pullFrom}`))),
      ),
      h('td', {}, blocked ? 'never tried' : 'tried last'),
    ),
  );
  return part(
    cluster,
    'mirrors',
    'Mirror sets, in the order of the operator',
    h('p', {}, badge(state === 'rendered' ? 'ok' : 'attention', state), ' ', sentence(summary)),
    h(
      'ul',
      { class: 'refusals' },
      ...refusals.map(({ severity, object, message }) =>
        h(
          'li',
          {},
          badge(severity === 'error' ? 'broken' : 'attention', severity === 'error' ? 'refused' : 'warning'),
          ' ',
          code(object),
          h('p', {}, sentence(message)),
        ),
      ),
    ),
    rows.length === 0
      ? h('p', { class: 'none' }, 'No mirror set concerns these nodes.')
      : tableOf('Mirror sets', ['Order', 'Source', 'Mirrors, in order', 'The source itself'], rows),
  );
}

function nodesPart({ name: cluster, nodes }: ReportCluster): HTMLElement {
  const body = h('ul', { class: 'node-list' });
  const details = h(
    'details',
    {},
    h('summary', {}, `${nodes.total} nodes: ${nodes.eligible} eligible, ${nodes.inSync} in sync`),
    body,
  );
  folded(details, () => {
    if (body.childElementCount > 0) return;
    body.append(
      ...nodes.list.map((node) =>
        h(
          'li',
          {},
          code(node.name),
          ` ${node.state}`,
          node.why === undefined ? undefined : h('p', { class: 'fault' }, sentence(node.why)),
        ),
      ),
    );
  });
  return part(cluster, 'nodes', 'Nodes', details);
}
