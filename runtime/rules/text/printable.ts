/**
 * Text that reaches a terminal holds names, keys and messages that others chose. A control character among them can move the
 * cursor, write into the clipboard, or turn the reading direction, so that a person reads something else than what is there
 * (compare CVE-2021-25743 of kubectl).
 */

/** Control characters but newline and tab; bidirectional and zero-width marks, invisible tags; separators of lines. */
const UNSAFE = /(?![\n\t])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

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
