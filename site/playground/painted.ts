/** Markup as elements that can be listened to, and text with the colours of a terminal. */
import { html, type Markup } from '../../build/report-page/markup.ts';

/** The one element of the markup, with what listens to it. */
export function made(
  { markup }: Markup,
  on: Readonly<Record<string, (event: Event) => void>> = {},
): HTMLElement {
  const template = document.createElement('template');
  template.innerHTML = markup;
  const element = template.content.firstElementChild as HTMLElement;
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener);
  return element;
}

/** The same element, with its content. */
export function filled(markup: Markup, ...inside: readonly (Node | string)[]): HTMLElement {
  const element = made(markup);
  element.append(...inside);
  return element;
}

const CLASSES: Readonly<Record<string, string>> = {
  1: 'bold',
  2: 'dim',
  31: 'red',
  33: 'yellow',
  36: 'green',
};

/** One element for each run of a style; everything else is text. */
export function painted(text: string): readonly (Markup | string)[] {
  let style: string | undefined;
  return text.split(/(\p{Cc}\[\d+m)/u).map((part) => {
    const [, code] = /^\p{Cc}\[(\d+)m$/u.exec(part) ?? [];
    if (code === undefined) return style === undefined ? part : html`<span class="${style}">${part}</span>`;
    style = CLASSES[code];
    return '';
  });
}
