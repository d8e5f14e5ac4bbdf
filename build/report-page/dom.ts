/** Elements out of markup, and how untrusted names are shown in them. */
import { onOneLine } from '../../runtime/core/text.ts';

type Child = Node | string | number | false | undefined | readonly Child[];
type Value = Child | true | ((event: Event) => void);

const TEMPLATES = new WeakMap<TemplateStringsArray, HTMLTemplateElement>();

/**
 * The one element of the markup. Only what is written here is read as HTML: values are texts, elements, or what attributes hold. An
 * attribute that is undefined or false is left out, and a function listens to the event of its name. A line break with the
 * indentation around it stands for nothing.
 */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): HTMLElement {
  const template = TEMPLATES.get(strings) ?? templateOf(strings);
  const content = document.importNode(template.content, true);
  for (const node of content.querySelectorAll('*'))
    if (node instanceof HTMLTemplateElement) node.replaceWith(...nodesOf(values[Number(node.id)] as Child));
    else fillAttributes(node, values);
  return content.firstElementChild as HTMLElement;
}

function templateOf(strings: TemplateStringsArray): HTMLTemplateElement {
  const template = document.createElement('template');
  template.innerHTML = strings
    .map((text) => text.replace(/\s*\n\s*/g, ''))
    .reduce((before, after, next) => {
      const inTag = before.lastIndexOf('<') > before.lastIndexOf('>');
      // A template may stand wherever an element may, in tables too.
      return `${before}${inTag ? `{${next - 1}}` : `<template id="${next - 1}"></template>`}${after}`;
    });
  TEMPLATES.set(strings, template);
  return template;
}

function nodesOf(child: Child): readonly (Node | string)[] {
  if (child === undefined || child === false) return [];
  if (typeof child === 'number') return [String(child)];
  return typeof child === 'string' || child instanceof Node ? [child] : child.flatMap(nodesOf);
}

function fillAttributes(element: Element, values: readonly Value[]): void {
  for (const attribute of element.getAttributeNames()) {
    const written = element.getAttribute(attribute) ?? '';
    const whole = /^\{(\d+)\}$/.exec(written)?.[1];
    const given = whole === undefined ? written : values[Number(whole)];
    if (typeof given === 'function') element.addEventListener(attribute, given);
    if (given === true) element.setAttribute(attribute, '');
    else if (given === undefined || given === false || typeof given === 'function')
      element.removeAttribute(attribute);
    else
      element.setAttribute(
        attribute,
        written.replace(/\{(\d+)\}/g, (_mark, at: string) => textOf(values[Number(at)])),
      );
  }
}

function textOf(value: Value): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

const LONGEST = 180;

/** An untrusted name: on one line, without invisible characters, cut to a readable length. */
export function name(text: string): string {
  const line = onOneLine(text);
  if (line.length <= LONGEST) return line;
  const half = LONGEST / 2;
  return `${line.slice(0, half)} … ${line.slice(-half)}`;
}

/** A sentence: the same, with more room. */
export function sentence(text: string): string {
  const line = onOneLine(text);
  return line.length <= 1200 ? line : `${line.slice(0, 1200)}…`;
}

/** As code. */
export function code(text: string): HTMLElement {
  const title = text.length > LONGEST ? onOneLine(text).slice(0, 2000) : undefined;
  return html`<code title="${title}">${name(text)}</code>`;
}

/** As code, with digests cut to a distinct prefix; the whole of it on hovering, and on paper. */
export function reference(text: string): HTMLElement {
  if (!/@sha256:[0-9a-f]{64}$/.test(text)) return code(text);
  const [start, rest] = [text.slice(0, -52), text.slice(-52)];
  return html`<code title="${onOneLine(text)}">${name(start)}<span class="rest">${rest}</span><span class="cut">…</span></code>`;
}

/** What to do about something. */
export function adviceText(advice: string | undefined): HTMLElement | undefined {
  return advice === undefined ? undefined : html`<p class="advice"><b>To do: </b>${sentence(advice)}</p>`;
}

/** How rows are drawn a few at a time. */
interface Pages {
  readonly most: number;
  /** What the rows are. @default {not said} */
  readonly what?: string;
  /** What the button is put into. @default {that of the rows} */
  readonly place?: HTMLElement;
}

/** Draws the first rows into `body`, and a button that draws the next; the first of those gets the focus. */
export function drawPaged(
  body: HTMLElement,
  rows: readonly (() => HTMLElement)[],
  pages: Pages,
): HTMLElement | undefined {
  const { most, what = '', place = body } = pages;
  const drawn = rows.slice(0, most).map((draw) => draw());
  body.append(...drawn);
  const left = rows.slice(most);
  if (left.length === 0) return drawn[0];
  const next = (): void => {
    more.remove();
    const first = drawPaged(body, left, pages);
    (first?.hasAttribute('tabindex') === true ? first : first?.querySelector('a'))?.focus();
  };
  const more = html`<button class="more" type="button" click="${next}">
    Show ${Math.min(most, left.length)} more of ${left.length}${what}</button>`;
  place.append(more);
  return drawn[0];
}

const FILLS = new WeakMap<HTMLElement, () => void>();

/** A folded part, filled when it is first opened. */
export function folded(details: HTMLElement, fill: () => void): HTMLElement {
  FILLS.set(details, fill);
  details.addEventListener('toggle', fill);
  return details;
}

/** Opens every part and shows every row, for paper; what is returned closes the parts again. */
export function openAll(): () => void {
  const opened: HTMLDetailsElement[] = [];
  // What a part holds may have parts and buttons of its own.
  for (let more = true; more; ) {
    more = false;
    for (const details of document.querySelectorAll<HTMLDetailsElement>('details:not([open])')) {
      // The browser would fire `toggle` later, after printing.
      FILLS.get(details)?.();
      details.open = true;
      opened.push(details);
      more = true;
    }
    for (const button of document.querySelectorAll<HTMLButtonElement>('button.more')) {
      button.click();
      more = true;
    }
  }
  return () => {
    for (const details of opened) details.open = false;
  };
}
