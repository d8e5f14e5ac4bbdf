/** What is wrong, where, and what to do: one card for each cause. */
import { causeText } from '../../runtime/diagnose/model/types.ts';
import type { PageCase, PageCause } from '../../runtime/diagnose/views/html.ts';
import { code, folded, h, name, sentence } from './dom.ts';
import { linkTo } from './route.ts';
import { badge } from './verdict.ts';

/** Cases shown at once; more on demand. */
const AT_ONCE = 20;

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
  const body = h('div', { class: 'cases' });
  const details = h(
    'details',
    { class: `card ${verdict}`, id: `part-${part}`, tabindex: '-1', open, 'data-cause': check },
    h(
      'summary',
      {},
      badge(verdict),
      h('h3', {}, sentence(causeText(problem))),
      h('span', { class: 'where' }, whereText(clusters, cases.length)),
      hasFix(cases) ? h('span', { class: 'has-fix' }, fixes === 1 ? 'fix ready' : 'fixes ready') : undefined,
      gist(cases),
    ),
    body,
    h(
      'p',
      { class: 'card-link' },
      h(
        'a',
        { href: linkTo({ ...(cluster === undefined ? {} : { cluster }), part }) },
        'Link to this problem',
      ),
    ),
  );
  // Filled when opened.
  const fill = (): void => {
    if (body.childElementCount === 0) fillCases(body, grouped(cases), 0);
  };
  if (open) fill();
  return folded(details, fill);
}

/** Of a card that is closed: the first object, and what to do about it. */
function gist(cases: readonly PageCase[]): HTMLElement {
  const [first] = cases;
  const ready = first?.fix === undefined ? undefined : 'open this, and apply the YAML that is ready';
  const todo = first?.advice === undefined ? ready : sentence(first.advice);
  return h(
    'span',
    { class: 'gist' },
    code(first?.subject ?? ''),
    cases.length > 1 ? ` and ${cases.length - 1} more` : undefined,
    todo === undefined ? undefined : h('span', { class: 'gist-todo' }, `To do: ${todo}`),
  );
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
  cases.forEach((one, at) => {
    const id = one.fix === undefined ? `${at}` : `${one.cluster}\n${one.fix}`;
    const group = groups.get(id);
    if (group === undefined) groups.set(id, [one]);
    else group.push(one);
  });
  return [...groups.values()];
}

function fillCases(body: HTMLElement, groups: readonly (readonly PageCase[])[], from: number): void {
  body.append(...groups.slice(from, from + AT_ONCE).map(caseBlock));
  const next = from + AT_ONCE;
  if (next >= groups.length) return;
  const more = h(
    'button',
    {
      class: 'more',
      type: 'button',
      click: () => {
        more.remove();
        fillCases(body, groups, next);
        body.querySelectorAll<HTMLElement>('.case')[next]?.focus();
      },
    },
    `Show ${Math.min(AT_ONCE, groups.length - next)} more of ${groups.length - next}`,
  );
  body.append(more);
}

function caseBlock(group: readonly PageCase[]): HTMLElement {
  const [first] = group;
  return h(
    'div',
    { class: first?.fix === undefined ? 'case' : 'case with-fix', tabindex: '-1' },
    h('ul', { class: 'said' }, ...group.map(saidLine)),
    first?.advice === undefined
      ? undefined
      : h('p', { class: 'advice' }, h('b', {}, 'To do: '), sentence(first.advice)),
    first?.fix === undefined ? undefined : fixBlock(first.fix),
  );
}

function saidLine({ cluster, subject, message, pull }: PageCase): HTMLElement {
  return h(
    'li',
    {},
    h('a', { href: linkTo({ cluster }) }, name(cluster)),
    ' ',
    code(subject),
    h('p', {}, sentence(message)),
    pull === undefined
      ? undefined
      : h('a', { class: 'path-link', href: linkTo({ cluster, pull }) }, 'Show the pull path'),
  );
}

/** YAML to apply, with a button that copies it. */
export function fixBlock(yaml: string): HTMLElement {
  const said = h('span', { role: 'status' });
  const copy = h(
    'button',
    {
      type: 'button',
      click: () => {
        navigator.clipboard.writeText(yaml).then(
          () => said.replaceChildren('Copied'),
          () => said.replaceChildren('Select the text to copy it'),
        );
      },
    },
    'Copy',
  );
  return h(
    'figure',
    { class: 'fix' },
    h(
      'figcaption',
      {},
      h('span', {}, 'kubectl apply --server-side --field-manager=pullwright-fix -f -'),
      said,
      copy,
    ),
    h('pre', { tabindex: '0', 'aria-label': 'YAML that fixes it' }, h('code', {}, printableLines(yaml))),
  );
}

function printableLines(yaml: string): string {
  return yaml.trimEnd().split('\n').map(sentence).join('\n');
}
