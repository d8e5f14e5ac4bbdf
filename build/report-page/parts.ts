/** Parts of which the page of a cluster is made: sections with an address, and tables. */
import { h } from './dom.ts';
import { linkTo } from './route.ts';

/** A section with an address of its own. */
export function part(
  cluster: string,
  id: string,
  title: string,
  ...content: readonly (HTMLElement | string)[]
): HTMLElement {
  const link = { class: 'permalink', href: linkTo({ cluster, part: id }), 'aria-label': `Link to: ${title}` };
  return h(
    'section',
    { id: `part-${id}`, tabindex: '-1', 'aria-labelledby': `title-${id}` },
    h('h2', {}, h('span', { id: `title-${id}` }, title), ' ', h('a', link, '#')),
    ...content,
  );
}

/** A table that is a list of rows where there is no room for columns. */
export function tableOf(title: string, heads: readonly string[], rows: readonly HTMLElement[]): HTMLElement {
  // Where there is no room for columns, each cell says itself what it is.
  for (const row of rows)
    heads.forEach((text, at) => {
      row.children[at]?.setAttribute('data-label', text);
    });
  return h(
    'div',
    { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': title },
    h(
      'table',
      { class: 'rows' },
      h('thead', {}, h('tr', {}, ...heads.map((text) => h('th', { scope: 'col' }, text)))),
      h('tbody', {}, ...rows),
    ),
  );
}
