/**
 * Text that reaches a terminal holds names, keys and messages that others chose. A control character among them can move the
 * cursor, write into the clipboard, or turn the reading direction, so that a person reads something else than what is there
 * (compare CVE-2021-25743 of kubectl).
 */

/** C0 but tab and newline, DEL, C1, zero-width and bidirectional marks, line separators, and tags that nobody sees. */
const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is what it is for
  /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udc7f]/g;

/**
 * `text` with each character that a terminal would obey, or that nobody could see, as `\u001b`: also a JSON escape, so that
 * JSON stays the same value. Newlines and tabs stay.
 *
 * @example
 * ```ts
 * import { printable } from './printable.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(printable('quay.io\u001b[2J'), 'quay.io\\u001b[2J');
 * assert.equal(printable('Größe\tin MiB\n'), 'Größe\tin MiB\n');
 * ```
 */
export function printable(text: string): string {
  return text.replace(UNSAFE, escaped);
}

/**
 * As {@link printable}, on one line: for a value inside a sentence or a table, where a newline could pass for a line of ours.
 *
 * @example
 * ```ts
 * import { onOneLine } from './printable.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(onOneLine('a\nReady'), 'a\\nReady');
 * ```
 */
export function onOneLine(text: string): string {
  return printable(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}

function escaped(found: string): string {
  return Array.from(
    { length: found.length },
    (_, at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('');
}
