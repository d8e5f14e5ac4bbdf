/**
 * Go texts are bytes. Where the order or the length of a text decides, it is held as a byte text: a JavaScript string with
 * one unit (0 to 255) per byte of its UTF-8 form, so that `<` compares as Go does. For ASCII both are the same.
 */

// oxlint-disable-next-line no-control-regex -- ASCII begins with control characters
const ASCII = /^[\u0000-\u007f]*$/;

/** UTF-8 bytes of `text`, one unit each. */
export function toByteText(text: string): string {
  return ASCII.test(text) ? text : Buffer.from(text, 'utf8').toString('latin1');
}

/** Back again; each byte that is not UTF-8 becomes U+FFFD. */
export function fromByteText(bytes: string): string {
  return ASCII.test(bytes) ? bytes : decodeUtf8(Buffer.from(bytes, 'latin1'));
}

/** Bytes to text as a conversion to runes does in Go: one U+FFFD for each wrong byte (others put one for a run of them). */
export function decodeUtf8(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const text = buffer.toString('utf8');
  if (!text.includes('\ufffd')) return text;
  return runesOf(buffer.toString('latin1'))
    .map((rune) => rune.text ?? '\ufffd')
    .join('');
}

/** One character of a byte text; `text` is undefined for a byte that is not UTF-8. */
export interface Rune {
  readonly text: string | undefined;
  readonly size: number;
}

/** The character at the start of a byte text that is not empty. */
export function firstRune(bytes: string): Rune {
  const first = bytes.charCodeAt(0);
  if (first < 0x80) return { text: bytes[0], size: 1 };
  const size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  const encoded = Buffer.from(bytes.slice(0, size), 'latin1');
  const text = encoded.toString('utf8');
  const good = Array.from(text).length === 1 && Buffer.from(text, 'utf8').equals(encoded);
  return good ? { text, size } : { text: undefined, size: 1 };
}

/** All characters of a byte text. */
export function runesOf(bytes: string): readonly Rune[] {
  const runes: Rune[] = [];
  for (let at = 0; at < bytes.length; ) {
    const rune = firstRune(bytes.slice(at, at + 4));
    runes.push(rune);
    at += rune.size;
  }
  return runes;
}

/**
 * Order of the UTF-8 bytes, as Go sorts texts. Plain `<` differs for characters beyond U+FFFF.
 */
export function compareBytes(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let at = 0; at < shared; at += 1) {
    const left = a.charCodeAt(at);
    const right = b.charCodeAt(at);
    if (left !== right) return byteRank(left) - byteRank(right);
  }
  return a.length - b.length;
}

/** Surrogates stand for characters beyond U+FFFF, so they come after all others. */
function byteRank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

// Texts in quotes as Go's error messages show them (strconv.Quote).
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

/**
 * Quotes `text` as `%q` does.
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

/** Quotes a byte text (see go-bytes.ts); a byte that is not UTF-8 is shown as `\xNN`. */
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
