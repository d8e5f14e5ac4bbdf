/**
 * Texts in quotes as Go's error messages show them (strconv.Quote).
 *
 * Source of the rule: strconv.Quote and the quoteChar of encoding/json, Go 1.26.
 */
import { runesOf } from './bytes.ts';

const SHORT: Readonly<Record<string, string>> = {
  '\u0007': '\\a',
  '\b': '\\b',
  '\t': '\\t',
  '\n': '\\n',
  '\u000b': '\\v',
  '\f': '\\f',
  '\r': '\\r',
  '\\': '\\\\',
  '"': '\\"',
};

const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

/**
 * Quotes `text` as `%q` does.
 *
 * @example
 * ```ts
 * import { goQuote } from './quote.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(goQuote('a"\n\u007fé'), '"a\\"\\n\\x7fé"');
 * ```
 */
export function goQuote(text: string): string {
  return `"${Array.from(text, quoteRune).join('')}"`;
}

function quoteRune(rune: string): string {
  const short = SHORT[rune];
  if (short !== undefined) return short;
  if (PRINTABLE.test(rune)) return rune;
  const code = rune.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  if (code < 0x20 || code === 0x7f) return `\\x${hex.padStart(2, '0')}`;
  return code > 0xffff ? `\\U${hex.padStart(8, '0')}` : `\\u${hex.padStart(4, '0')}`;
}

/** Quotes a byte text (see go-bytes.ts); a byte that is no UTF-8 is shown as `\xNN`. */
export function goQuoteBytes(bytes: string): string {
  let at = 0;
  const shown = runesOf(bytes).map(({ text, size }) => {
    const byte = bytes.charCodeAt(at).toString(16);
    at += size;
    return text === undefined ? `\\x${byte}` : quoteRune(text);
  });
  return `"${shown.join('')}"`;
}

/** The character at `at` as encoding/json blames it: one byte of the UTF-8 text, shown as if it were a character. */
export function quoteFirstByte(text: string, at: number): string {
  const byte = Buffer.from(String.fromCodePoint(text.codePointAt(at) ?? 0), 'utf8')[0] ?? 0;
  if (byte === 0x27) return String.raw`'\''`;
  if (byte === 0x22) return `'"'`;
  return `'${quoteRune(String.fromCharCode(byte))}'`;
}
