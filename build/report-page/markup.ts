/** Builds HTML as text, displays untrusted names safely, and draws parts of the page later. */
import { defined } from '../../runtime/core/record.ts';
import { onOneLine } from '../../runtime/core/text.ts';
import { type ReportVerdict, VERDICT_SIGNS, VERDICT_WORDS } from '../../runtime/diagnose/model/types.ts';

/** Created only by {@link html}. */
export interface Markup {
  readonly markup: string;
}

export type Value = Markup | string | number | false | undefined | readonly Value[];

/**
 * Builds markup from a template. Values are escaped, for use in elements and quoted attributes; undefined and false are skipped.
 * A line break of the template is removed with the indentation around it.
 */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Markup {
  const texts = strings.map((text) => text.replace(/\s*\n\s*/g, ''));
  return { markup: texts.reduce((before, after, next) => before + written(values[next - 1]) + after) };
}

function written(value: Value): string {
  if (value === undefined || value === false) return '';
  if (typeof value === 'string' || typeof value === 'number')
    return String(value).replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
  return 'markup' in value ? value.markup : value.map(written).join('');
}

const LONGEST = 180;

/** Formats an untrusted name: on one line, without invisible characters, shortened to a readable length. */
export function name(text: string): string {
  const line = onOneLine(text);
  if (line.length <= LONGEST) return line;
  const half = LONGEST / 2;
  return `${line.slice(0, half)} … ${line.slice(-half)}`;
}

/** Formats a sentence like a name, with a higher limit. */
export function sentence(text: string): string {
  const line = onOneLine(text);
  return line.length <= 1200 ? line : `${line.slice(0, 1200)}…`;
}

/** Formats text as code. */
export function code(text: string): Markup {
  const title = text.length > LONGEST && html`title="${onOneLine(text).slice(0, 2000)}"`;
  return html`<code ${title}>${name(text)}</code>`;
}

/** Formats an image reference as code, with the digest shortened; the full digest shows on hovering and in print. */
export function reference(text: string): Markup {
  if (!/@sha256:[0-9a-f]{64}$/.test(text)) return code(text);
  const [start, rest] = [text.slice(0, -52), text.slice(-52)];
  return html`<code title="${onOneLine(text)}">${name(start)}<span class="rest">${rest}</span><span class="cut">…</span></code>`;
}

/** Renders the advice as a paragraph; false without advice. */
export function adviceText(advice: string | undefined): Markup | false {
  return advice !== undefined && html`<p class="advice"><b>To do: </b>${sentence(advice)}</p>`;
}

/** A section with its own address. */
export function section(id: string, title: string, content: Value, cluster?: string): Markup {
  return html`
    <section id="part-${id}" tabindex="-1" aria-labelledby="title-${id}">
      <h2>
        <span id="title-${id}">${title}</span>${' '}
        <a class="permalink" href="${linkTo({ cluster, part: id })}" aria-label="Link to: ${title}">#</a>
      </h2>
      ${content}
    </section>`;
}

// A verdict has a sign, a colour and a word, so that a reader needs only one of them.

/** The sign with a word. */
export function badge(verdict: ReportVerdict, text: string = VERDICT_WORDS[verdict]): Markup {
  return html`<span class="badge ${verdict}">${sign(verdict)}${text}</span>`;
}

/** The sign alone, hidden from screen readers: the caller must show its meaning beside it. */
export function sign(verdict: ReportVerdict): Markup {
  return html`<span class="sign ${verdict}" aria-hidden="true">${VERDICT_SIGNS[verdict]}</span>`;
}

/** The sign with a word for screen readers. */
export function mark(verdict: ReportVerdict, about: string): Markup {
  const said = `${VERDICT_WORDS[verdict]}: ${about}`;
  return html`<span class="mark" title="${said}">${sign(verdict)}<span class="unseen">${said}</span></span>`;
}

// Permalinks: the fragment of the address contains the view.

/** The view that an address selects. */
export type PageRoute = { readonly [Part in 'cluster' | 'pull' | 'search' | 'part']?: string | undefined };

/** The address of a route. */
export function linkTo(route: PageRoute): string {
  return `#${new URLSearchParams(defined(route)).toString()}`;
}

// Parts that are drawn when they are first shown.

const LATER: (() => Markup)[] = [];

/** Attribute of a placeholder. `draw` replaces the element when its `details` opens or its button is pressed. */
export function later(draw: () => Markup): Markup {
  return html`data-later="${LATER.push(draw) - 1}"`;
}

/** Renders the first rows, and a button that draws the next. With `columns`, the button is in a table row. */
export function paged<T>(
  rows: readonly T[],
  draw: (row: T) => Markup,
  { most, what = '', columns }: { readonly most: number; readonly what?: string; readonly columns?: number },
): Markup {
  const left = rows.slice(most);
  const next = later(() => paged(left, draw, { most, what, ...(columns === undefined ? {} : { columns }) }));
  const button = html`
    <button class="more" type="button">Show ${Math.min(most, left.length)} more of ${left.length}${what}</button>`;
  const more =
    columns === undefined
      ? html`<div ${next}>${button}</div>`
      : html`<tr ${next}><td colspan="${columns}">${button}</td></tr>`;
  return html`${rows.slice(0, most).map(draw)}${left.length > 0 && more}`;
}

/** Draws the part that replaces the placeholder. */
export function drawLater(element: HTMLElement): void {
  element.outerHTML = LATER[Number(element.dataset['later'])]?.().markup ?? '';
  sized();
}

/** Redraws the content of `element`. */
export function drawIn(element: HTMLElement, content: () => Value): void {
  LATER.length = 0;
  element.innerHTML = written(content());
  sized();
}

/** Sets the sizes by script, because the page's Content-Security-Policy forbids inline styles. */
function sized(): void {
  for (const piece of document.querySelectorAll<HTMLElement>('[data-grow]'))
    piece.style.flexGrow = piece.dataset['grow'] ?? '';
}
