/** Elements out of plain calls. Text is only ever text: nothing here reads HTML. */
import { onOneLine } from '../../runtime/core/text.ts';

type Child = Node | string | undefined | readonly Child[];
type Attributes = Readonly<Record<string, string | number | boolean | ((event: Event) => void) | undefined>>;

/** An element; attributes that are undefined or false are omitted, functions are listeners. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  add(element, children);
  return element;
}

function add(element: HTMLElement, children: readonly Child[]): void {
  for (const child of children) {
    if (child === undefined) continue;
    if (typeof child === 'string' || child instanceof Node) element.append(child);
    else add(element, child);
  }
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
  return h('code', { title: text.length > LONGEST ? onOneLine(text).slice(0, 2000) : undefined }, name(text));
}

/** As code, with digests cut to a distinct prefix; the whole of it on hovering, and on paper. */
export function reference(text: string): HTMLElement {
  const [whole = '', start = ''] =
    /^(.*@sha256:[0-9a-f]{12})[0-9a-f]{52}$/.exec(text) === null ? [] : [text, text.slice(0, -52)];
  if (whole === '') return code(text);
  return h(
    'code',
    { title: whole },
    name(start),
    h('span', { class: 'rest' }, whole.slice(-52)),
    h('span', { class: 'cut' }, '…'),
  );
}

const FILLS = new WeakMap<HTMLDetailsElement, () => void>();

/** A folded part, filled when it is first opened. */
export function folded(details: HTMLDetailsElement, fill: () => void): HTMLDetailsElement {
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
