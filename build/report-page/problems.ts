/** What is wrong, where, and what to do: one card for each cause. */
import { causeText } from '../../runtime/diagnose/model/types.ts';
import type { PageCase, PageCause } from '../../runtime/diagnose/views/html.ts';
import { adviceText, code, drawPaged, folded, html, name, sentence } from './dom.ts';
import { linkTo } from './route.ts';
import { badge } from './verdict.ts';

/** Cards; the worst one is open. */
export function problemCards(problems: readonly PageCause[], cluster?: string): readonly HTMLElement[] {
  return problems.map((problem, at) => card(problem, at === 0, cluster));
}

/** What an address calls a cause. */
export function partId({ check, ...cause }: Pick<PageCause, 'check' | 'title' | 'about'>): string {
  return `${check} ${causeText(cause)}`
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 120);
}

function card(problem: PageCause, open: boolean, cluster: string | undefined): HTMLElement {
  const { verdict, cases, clusters, check } = problem;
  const part = partId(problem);
  const fixes = new Set(cases.map(({ fix }) => fix)).size;
  const body = html`<div class="cases"></div>`;
  const link = linkTo({ ...(cluster === undefined ? {} : { cluster }), part });
  const details = html`
    <details class="card ${verdict}" id="part-${part}" tabindex="-1" open="${open}" data-cause="${check}">
      <summary>
        ${badge(verdict)}
        <h3>${sentence(causeText(problem))}</h3>
        <span class="where">${whereText(clusters, cases.length)}</span>
        ${hasFix(cases) && html`<span class="has-fix">${fixes === 1 ? 'fix ready' : 'fixes ready'}</span>`}
        ${gist(cases)}
      </summary>
      ${body}
      <p class="card-link"><a href="${link}">Link to this problem</a></p>
    </details>`;
  // Filled when opened.
  const fill = (): void => {
    if (body.childElementCount > 0) return;
    const rows = grouped(cases).map((group) => () => caseBlock(group));
    drawPaged(body, rows, { most: 20 });
  };
  if (open) fill();
  return folded(details, fill);
}

/** Of a card that is closed: the first object, and what to do about it. */
function gist(cases: readonly PageCase[]): HTMLElement {
  const [first] = cases;
  const ready = first?.fix === undefined ? undefined : 'open this, and apply the YAML that is ready';
  const todo = first?.advice === undefined ? ready : sentence(first.advice);
  return html`
    <span class="gist">
      ${code(first?.subject ?? '')}${cases.length > 1 && ` and ${cases.length - 1} more`}
      ${todo === undefined ? undefined : html`<span class="gist-todo">To do: ${todo}</span>`}
    </span>`;
}

function hasFix(cases: readonly PageCase[]): boolean {
  return cases.some(({ fix }) => fix !== undefined);
}

function whereText(clusters: readonly string[], count: number): string {
  const [only = ''] = clusters;
  const where = clusters.length === 1 ? name(only) : `${clusters.length} clusters`;
  return count === 1 ? where : `${count} × in ${where}`;
}

/** Cases with one fix between them stand together. */
function grouped(cases: readonly PageCase[]): readonly (readonly PageCase[])[] {
  const groups = new Map<string, PageCase[]>();
  for (const [at, one] of cases.entries()) {
    const id = one.fix === undefined ? `${at}` : `${one.cluster}\n${one.fix}`;
    groups.set(id, [...(groups.get(id) ?? []), one]);
  }
  return [...groups.values()];
}

function caseBlock(group: readonly PageCase[]): HTMLElement {
  const { fix, advice } = group[0] ?? {};
  return html`
    <div class="case${fix === undefined ? '' : ' with-fix'}" tabindex="-1">
      <ul class="said">${group.map(saidLine)}</ul>
      ${adviceText(advice)}
      ${fix === undefined ? undefined : fixBlock(fix)}
    </div>`;
}

function saidLine({ cluster, subject, message, pull }: PageCase): HTMLElement {
  const path =
    pull !== undefined &&
    html`<a class="path-link" href="${linkTo({ cluster, pull })}">Show the pull path</a>`;
  return html`
    <li>
      <a href="${linkTo({ cluster })}">${name(cluster)}</a> ${code(subject)}
      <p>${sentence(message)}</p>
      ${path}
    </li>`;
}

/** YAML to apply, with a button that copies it. */
function fixBlock(yaml: string): HTMLElement {
  const said = html`<span role="status"></span>`;
  const copy = (): void => {
    navigator.clipboard.writeText(yaml).then(
      () => said.replaceChildren('Copied'),
      () => said.replaceChildren('Select the text to copy it'),
    );
  };
  const lines = yaml.trimEnd().split('\n').map(sentence).join('\n');
  return html`
    <figure class="fix">
      <figcaption>
        <span>kubectl apply --server-side --field-manager=pullwright-fix -f -</span>
        ${said}
        <button type="button" click="${copy}">Copy</button>
      </figcaption>
      <pre tabindex="0" aria-label="YAML that fixes it"><code>${lines}</code></pre>
    </figure>`;
}
