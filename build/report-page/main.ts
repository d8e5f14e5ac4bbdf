/** The script of the page that `report --html` writes: draws what the data at its end says, and nothing else. */
import type { ReportCluster } from '../../runtime/diagnose/model/cluster.ts';
import type { PageCause, PageReport } from '../../runtime/diagnose/views/html.ts';
import { clusterParts } from './cluster.ts';
import { html, name, openAll } from './dom.ts';
import { overviewParts } from './overview.ts';
import { currentRoute, linkTo } from './route.ts';

function main(): void {
  const data = document.getElementById('data')?.textContent ?? '';
  const report = JSON.parse(data) as PageReport;
  const view = document.getElementById('view');
  const search = document.getElementById('search');
  if (view === null || !(search instanceof HTMLInputElement)) return;
  const made = document.getElementById('made');
  made?.replaceChildren(`${name(report.source)} · ${report.madeAt.replace('T', ' ').replace('Z', ' UTC')}`);

  const address = html`<p class="address"></p>`;
  document.querySelector('footer')?.append(address);

  const draw = (): void => {
    const route = currentRoute();
    search.value = route.search ?? '';
    const cluster = report.clusters.find((one) => one.name === route.cluster);
    view.replaceChildren(
      ...(cluster === undefined
        ? overviewParts(route.search === undefined ? report : narrowed(report, route.search), route.search)
        : clusterParts(report, cluster, route.pull)),
      ...(route.cluster !== undefined && cluster === undefined ? [gone(route.cluster)] : []),
    );
    document.title = cluster === undefined ? 'Pull credentials' : `${name(cluster.name)} · Pull credentials`;
  };
  const shown = (): void => {
    const { pull, part } = currentRoute();
    const target = pull === undefined ? partOf(part) : document.getElementById('pull');
    (target ?? view).focus({ preventScroll: true });
    (target ?? document.body).scrollIntoView({ block: 'start' });
  };
  globalThis.addEventListener('hashchange', () => {
    draw();
    if (document.activeElement !== search) shown();
  });
  search.addEventListener('input', () => {
    const text = search.value;
    history.replaceState(undefined, '', linkTo(text === '' ? {} : { search: text }));
    draw();
  });
  document.addEventListener('keydown', (event) => onKey(event, search));
  // On paper, parts cannot be opened and links not followed: the address is printed at the end.
  let closeAgain: (() => void) | undefined;
  globalThis.addEventListener('beforeprint', () => {
    closeAgain ??= openAll();
    address.replaceChildren(location.href);
  });
  globalThis.addEventListener('afterprint', () => {
    closeAgain?.();
    closeAgain = undefined;
  });
  draw();
  if (currentRoute().part !== undefined || currentRoute().pull !== undefined) shown();
}

/** The section or card that the address names; opened, if it is folded. */
function partOf(part: string | undefined): HTMLElement | null {
  const found = part === undefined ? null : document.getElementById(`part-${part}`);
  if (found instanceof HTMLDetailsElement) found.open = true;
  return found;
}

function onKey(event: KeyboardEvent, search: HTMLInputElement): void {
  if (event.key === '/' && document.activeElement !== search) {
    event.preventDefault();
    search.focus();
  }
  if (event.key === 'Escape' && document.activeElement === search && search.value !== '') {
    search.value = '';
    search.dispatchEvent(new Event('input'));
  }
}

function gone(cluster: string): HTMLElement {
  return html`<p class="none" role="status">Cluster ${name(cluster)} is not in this report.</p>`;
}

/** What holds the text: clusters by all that is said of them, problems by their cases. */
function narrowed(report: PageReport, search: string): PageReport {
  const wanted = search.toLowerCase();
  const has = (value: unknown): boolean => JSON.stringify(value).toLowerCase().includes(wanted);
  const problems = report.problems.flatMap((problem): PageCause[] => {
    const cases = has(problem.title) ? problem.cases : problem.cases.filter(has);
    const clusters = [...new Set(cases.map(({ cluster }) => cluster))];
    return cases.length === 0 ? [] : [{ ...problem, cases, clusters }];
  });
  const named = new Set(problems.flatMap(({ clusters }) => clusters));
  const clusters = report.clusters.filter(
    (cluster: ReportCluster) => named.has(cluster.name) || textOf(cluster).includes(wanted),
  );
  return { ...report, problems, clusters };
}

/** Made once for each cluster: a search looks at every character of it. */
const TEXTS = new WeakMap<ReportCluster, string>();

function textOf(cluster: ReportCluster): string {
  const known = TEXTS.get(cluster);
  if (known !== undefined) return known;
  const text = JSON.stringify(cluster).toLowerCase();
  TEXTS.set(cluster, text);
  return text;
}

main();
