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

/** Back again; each byte that is no UTF-8 becomes U+FFFD. */
export function fromByteText(bytes: string): string {
  return ASCII.test(bytes) ? bytes : decodeUtf8(Buffer.from(bytes, 'latin1'));
}

/** Bytes to text as a conversion to runes does in Go: one U+FFFD for each wrong byte (others put one for a run of them). */
export function decodeUtf8(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const text = buffer.toString('utf8');
  if (!text.includes('\ufffd')) return text;
  let decoded = '';
  for (let at = 0; at < buffer.length; ) {
    const rune = runeAt(buffer, at);
    decoded += rune.text;
    at += rune.size;
  }
  return decoded;
}

/** The rune at `at`, or U+FFFD of size 1. */
function runeAt(buffer: Buffer, at: number): { readonly text: string; readonly size: number } {
  const first = buffer[at] ?? 0;
  const size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  const text = buffer.toString('utf8', at, at + size);
  const good =
    Buffer.byteLength(text) === size &&
    Array.from(text).length === 1 &&
    Buffer.from(text).equals(buffer.subarray(at, at + size));
  return good ? { text, size } : { text: '\ufffd', size: 1 };
}

/**
 * Order of the UTF-8 bytes, as Go sorts texts. Plain `<` differs for characters beyond U+FFFF.
 *
 * @example
 * ```ts
 * import { compareBytes } from './go-bytes.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(['b', 'a', 'B'].sort(compareBytes), ['B', 'a', 'b']);
 * assert.equal(compareBytes('\u{10000}', '\uffff') > 0, true);
 * ```
 */
export function compareBytes(a: string, b: string): number {
  const left = toByteText(a);
  const right = toByteText(b);
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
