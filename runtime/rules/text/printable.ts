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

/**
 * `value` with every text in it on one line: for what is rendered as text for people, where a newline that somebody else chose would
 * begin a line. Only arrays and plain objects are gone through; keys stay, since programs ask for them.
 *
 * @example
 * ```ts
 * import { oneLined } from './printable.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(oneLined({ names: ['a\nReady'], count: 1 }), { names: ['a\\nReady'], count: 1 });
 * ```
 */
export function oneLined<T>(value: T): T {
  return copied(value) as T;
}

function copied(value: unknown): unknown {
  if (typeof value === 'string') return onOneLine(value);
  if (Array.isArray(value)) return value.map(copied);
  if (!isPlain(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, copied(part)]));
}

/** What has a class, as a `Redacted`, shows itself as it wants. */
function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/**
 * `::error::` where a line begins (GitHub trims it first), and `##[error]` and `##vso[...]`, which are found anywhere in one. The blanks
 * before a command hold nothing that begins a line, so that each is looked at once.
 */
const COMMAND = /^(?<blanks>[^\S\n\r\u2028\u2029]*):(?=:)|#(?=#\w*\[)/gmu;

/**
 * `text` without what CI systems that read a log take for a command to them (GitHub Actions, Azure Pipelines): its first sign stands as an
 * escape, which is one of JSON and of YAML between double quotes, too.
 *
 * @example
 * ```ts
 * import { withoutCommands } from './printable.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(withoutCommands('::error::x\n[::1]:5000 ##[error]x'), '\\u003a:error::x\n[::1]:5000 \\u0023#[error]x');
 * ```
 */
export function withoutCommands(text: string): string {
  return text.replace(
    COMMAND,
    (found, blanks: string = '') => `${blanks}${escaped(found.slice(blanks.length))}`,
  );
}

function escaped(found: string): string {
  return Array.from(
    { length: found.length },
    (_, at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('');
}
