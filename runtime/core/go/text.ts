/**
 * Go strings are bytes. If order or length matters, text is kept as byte text: a JavaScript string with one unit (0 to 255) per
 * UTF-8 byte, so that `<` compares like Go. For ASCII, both forms are equal.
 */

/** A value, or an error in Go's wording. */
export type GoResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly goText: string };

// oxlint-disable-next-line no-control-regex -- ASCII begins with control characters
const ASCII = /^[\u0000-\u007f]*$/;

/** Converts `text` to byte text. */
export function toByteText(text: string): string {
  return ASCII.test(text) ? text : Buffer.from(text, 'utf8').toString('latin1');
}

/** Converts byte text back; invalid UTF-8 becomes U+FFFD. */
export function fromByteText(bytes: string): string {
  return ASCII.test(bytes) ? bytes : decodeUtf8(Buffer.from(bytes, 'latin1'));
}

/** Decodes bytes; invalid UTF-8 becomes U+FFFD. */
export function decodeUtf8(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

/** Compares by UTF-8 bytes, as Go sorts strings. Plain `<` differs for characters beyond U+FFFF. */
export function compareBytes(a: string, b: string): number {
  const [left, right] = [toByteText(a), toByteText(b)];
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

// Quoted strings as in Go's error messages (strconv.Quote).
// Source of the rule: strconv.Quote and the quoteChar of encoding/json, Go 1.26.

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

/** Quotes `text` like `%q`. */
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

/** A well-formed UTF-8 sequence by the table of the Unicode standard, or any single byte. */
const CHARACTERS =
  /[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|\xed[\x80-\x9f][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}|[\s\S]/g;

/** Quotes a byte text; bytes that are not UTF-8 become `\xNN`. */
export function goQuoteBytes(bytes: string): string {
  const shown = Array.from(bytes.matchAll(CHARACTERS), ([one]) =>
    one.length === 1 && one >= '\x80' ? `\\x${one.charCodeAt(0).toString(16)}` : quoteRune(fromByteText(one)),
  );
  return `"${shown.join('')}"`;
}

/** The character at `at` as encoding/json quotes it in errors: the first byte of its UTF-8 form, shown as a character. */
export function quoteFirstByte(text: string, at: number): string {
  const byte = Buffer.from(String.fromCodePoint(text.codePointAt(at) ?? 0), 'utf8')[0] ?? 0;
  if (byte === 0x27) return String.raw`'\''`;
  if (byte === 0x22) return `'"'`;
  return `'${quoteRune(String.fromCharCode(byte))}'`;
}
