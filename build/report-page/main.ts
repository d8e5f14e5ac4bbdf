/** The script of the page that `report --html` writes: renders the data at the end of the page. */
import type { PageCause, PageReport } from '../../runtime/diagnose/views/html.ts';
import { clusterParts } from './cluster.ts';
import { drawIn, drawLater, html, linkTo, name, type PageRoute } from './markup.ts';
import { overviewParts } from './overview.ts';

const byId = (id: string): HTMLElement => document.getElementById(id) as HTMLElement;
const report = JSON.parse(byId('data').textContent) as PageReport;
const view = byId('view');
const search = byId('search') as HTMLInputElement;

/** The route in the address. */
function currentRoute(): PageRoute {
  const given = [...new URLSearchParams(location.hash.slice(1))];
  return Object.fromEntries(given.filter(([, value]) => value !== ''));
}

function draw(): void {
  const route = currentRoute();
  search.value = route.search ?? '';
  const cluster = report.clusters.find((one) => one.name === route.cluster);
  const gone =
    route.cluster !== undefined &&
    html`<p class="none" role="status">Cluster ${name(route.cluster)} is not in this report.</p>`;
  drawIn(view, () =>
    cluster === undefined
      ? [overviewParts(narrowed(route.search), route.search), gone]
      : clusterParts(report, cluster, route.pull),
  );
  document.title = cluster === undefined ? 'Pull credentials' : `${name(cluster.name)} · Pull credentials`;
}

/** Scrolls to the part or pull in the address, focuses it, and opens it if it is closed. */
function show(): void {
  const { pull, part } = currentRoute();
  const target = document.getElementById(pull === undefined ? `part-${part}` : 'pull');
  if (target instanceof HTMLDetailsElement) target.open = true;
  (target ?? view).focus({ preventScroll: true });
  (target ?? document.body).scrollIntoView({ block: 'start' });
}

/** Text of each cluster, cached because a search runs at every keystroke. */
let texts: readonly string[] | undefined;

/** Filters the report by `text`: clusters by all their fields, problems by title and cases. */
function narrowed(text: string | undefined): PageReport {
  if (text === undefined) return report;
  const wanted = text.toLowerCase();
  const has = (value: unknown): boolean => JSON.stringify(value).toLowerCase().includes(wanted);
  const problems = report.problems.flatMap((problem): PageCause[] => {
    const cases = has(problem.title) ? problem.cases : problem.cases.filter(has);
    const clusters = [...new Set(cases.map(({ cluster }) => cluster))];
    return cases.length === 0 ? [] : [{ ...problem, cases, clusters }];
  });
  const named = new Set(problems.flatMap(({ clusters }) => clusters));
  texts ??= report.clusters.map((cluster) => JSON.stringify(cluster).toLowerCase());
  const clusters = report.clusters.filter(
    ({ name: cluster }, at) => named.has(cluster) || texts?.[at]?.includes(wanted),
  );
  return { ...report, problems, clusters };
}

/** Focuses the first of the rows that replace the button. */
function drawMore(row: HTMLElement): void {
  const last = row.previousElementSibling;
  drawLater(row);
  const first = last?.nextElementSibling as HTMLElement | null | undefined;
  (first?.matches('[tabindex]') === true ? first : first?.querySelector('a'))?.focus();
}

function onClick({ target }: Event): void {
  if (!(target instanceof HTMLButtonElement)) return;
  const { copy } = target.dataset;
  const row = target.closest<HTMLElement>('[data-later]');
  if (row !== null) drawMore(row);
  if (copy === undefined) return;
  const say = (text: string): void => target.previousElementSibling?.replaceChildren(text);
  navigator.clipboard.writeText(copy).then(
    () => say('Copied'),
    () => say('Select the text to copy it'),
  );
}

function onKey(event: KeyboardEvent): void {
  if (event.key === '/' && document.activeElement !== search) {
    event.preventDefault();
    search.focus();
  }
  if (event.key === 'Escape' && document.activeElement === search && search.value !== '') {
    search.value = '';
    search.dispatchEvent(new Event('input'));
  }
}

/** Draws and opens everything for print, where parts cannot be opened and links cannot be followed; prints the address. */
function openAll(): void {
  const next = (): HTMLElement | null => document.querySelector<HTMLElement>('[data-later]');
  for (let part = next(); part !== null; part = next()) drawLater(part);
  for (const details of document.querySelectorAll<HTMLDetailsElement>('details:not([open])')) {
    details.open = true;
    details.classList.add('opened');
  }
  byId('address').textContent = location.href;
}

function closeAgain(): void {
  for (const details of document.querySelectorAll<HTMLDetailsElement>('.opened')) {
    details.open = false;
    details.classList.remove('opened');
  }
}

byId('made').textContent = `${name(report.source)} · ${report.madeAt.replace('T', ' ').replace('Z', ' UTC')}`;
globalThis.addEventListener('hashchange', () => {
  draw();
  if (document.activeElement !== search) show();
});
search.addEventListener('input', () => {
  history.replaceState(undefined, '', linkTo(search.value === '' ? {} : { search: search.value }));
  draw();
});
document.addEventListener('keydown', onKey);
document.addEventListener('click', onClick);
// `toggle` does not bubble.
document.addEventListener(
  'toggle',
  ({ target }) => {
    const part = (target as HTMLElement).querySelector<HTMLElement>(':scope > [data-later]');
    if (part !== null) drawLater(part);
  },
  true,
);
globalThis.addEventListener('beforeprint', openAll);
globalThis.addEventListener('afterprint', closeAgain);
draw();
if (currentRoute().part !== undefined || currentRoute().pull !== undefined) show();
