/** Text with the colours of a terminal, as elements. Everything else in it is text. */
import { html } from '../../build/report-page/dom.ts';

const CLASSES: Readonly<Record<string, string>> = {
  1: 'bold',
  2: 'dim',
  31: 'red',

  33: 'yellow',
  36: 'green',
};

/** One element for each run of a style. */
export function painted(text: string): readonly Node[] {
  const nodes: Node[] = [];
  let style: string | undefined;
  for (const part of text.split(/(\p{Cc}\[\d+m)/u)) {
    const [, code] = /^\p{Cc}\[(\d+)m$/u.exec(part) ?? [];
    if (code !== undefined) style = CLASSES[code];
    else if (part !== '')
      nodes.push(
        style === undefined ? document.createTextNode(part) : html`<span class="${style}">${part}</span>`,
      );
  }
  return nodes;
}
