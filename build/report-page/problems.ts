/** Problems with their clusters and fixes: one card for each cause. */
import { causeText } from '../../runtime/diagnose/model/types.ts';
import type { PageCase, PageCause } from '../../runtime/diagnose/views/html.ts';
import {
  adviceText,
  badge,
  code,
  html,
  later,
  linkTo,
  type Markup,
  name,
  paged,
  sentence,
} from './markup.ts';

/** Renders the cards; the first, which is the worst, is open. */
export function problemCards(problems: readonly PageCause[], cluster?: string): readonly Markup[] {
  return problems.map((problem, at) => card(problem, at === 0, cluster));
}

/** Returns the id of a cause in an address. */
export function partId({ check, ...cause }: Pick<PageCause, 'check' | 'title' | 'about'>): string {
  return `${check} ${causeText(cause)}`
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 120);
}

function card(problem: PageCause, open: boolean, cluster: string | undefined): Markup {
  const { verdict, cases, clusters, check } = problem;
  const part = partId(problem);
  const fixes = new Set(cases.map(({ fix }) => fix));
  const body = (): Markup => html`<div class="cases">${paged(grouped(cases), caseBlock, { most: 20 })}</div>`;
  return html`
    <details class="card ${verdict}" id="part-${part}" tabindex="-1" data-cause="${check}" ${open && 'open'}>
      <summary>
        ${badge(verdict)}
        <h3>${sentence(causeText(problem))}</h3>
        <span class="where">${cases.length > 1 && `${cases.length} × in `}${whereText(clusters)}</span>
        ${cases.some(({ fix }) => fix !== undefined) && html`<span class="has-fix">${fixes.size === 1 ? 'fix ready' : 'fixes ready'}</span>`}
        ${gist(cases)}
      </summary>
      ${open ? body() : html`<div ${later(body)}></div>`}
      <p class="card-link"><a href="${linkTo({ cluster, part })}">Link to this problem</a></p>
    </details>`;
}

/** Summary for a closed card: the first object, and the advice. */
function gist([first, ...more]: readonly PageCase[]): Markup {
  const ready = first?.fix === undefined ? undefined : 'open this, and apply the YAML that is ready';
  const todo = first?.advice === undefined ? ready : sentence(first.advice);
  return html`
    <span class="gist">
      ${code(first?.subject ?? '')}${more.length > 0 && ` and ${more.length} more`}
      ${todo !== undefined && html`<span class="gist-todo">To do: ${todo}</span>`}
    </span>`;
}

/** The name of the only cluster, or the number of clusters. */
export function whereText(clusters: readonly string[]): string {
  const [only = ''] = clusters;
  return clusters.length === 1 ? name(only) : `${clusters.length} clusters`;
}

/** Groups cases that have the same fix. */
function grouped(cases: readonly PageCase[]): readonly (readonly PageCase[])[] {
  const groups = new Map<unknown, PageCase[]>();
  for (const one of cases) {
    const id = one.fix === undefined ? one : `${one.cluster}\n${one.fix}`;
    groups.set(id, [...(groups.get(id) ?? []), one]);
  }
  return [...groups.values()];
}

function caseBlock(group: readonly PageCase[]): Markup {
  const { fix, advice } = group[0] ?? {};
  return html`
    <div class="case${fix !== undefined && ' with-fix'}" tabindex="-1">
      <ul class="said">${group.map(saidLine)}</ul>
      ${adviceText(advice)}
      ${fix !== undefined && fixBlock(fix)}
    </div>`;
}

function saidLine({ cluster, subject, message, pull }: PageCase): Markup {
  return html`
    <li>
      <a href="${linkTo({ cluster })}">${name(cluster)}</a> ${code(subject)}
      <p>${sentence(message)}</p>
      ${pull !== undefined && html`<a class="path-link" href="${linkTo({ cluster, pull })}">Show the pull path</a>`}
    </li>`;
}

/** YAML to apply, with a button that copies it. */
function fixBlock(yaml: string): Markup {
  return html`
    <figure class="fix">
      <figcaption>
        <span>kubectl apply --server-side --field-manager=pullwright-fix -f -</span>
        <span role="status"></span>
        <button type="button" data-copy="${yaml}">Copy</button>
      </figcaption>
      <pre tabindex="0" aria-label="YAML that fixes it"><code>${yaml.trimEnd().split('\n').map(sentence).join('\n')}</code></pre>
    </figure>`;
}
