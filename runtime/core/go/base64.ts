/**
 * Decodes base64 like Go's encoding/base64: skips line breaks and accepts non-zero trailing bits. Padding is required (`padded`)
 * or rejected (`raw`). Errors give the offset of the invalid byte.
 *
 * Source of the rule: encoding/base64 of Go 1.26, StdEncoding and RawStdEncoding.
 */

import { type GoResult, toByteText } from './text.ts';

/** Decodes `text`, or returns the error text of Go. */
export function decodeGoBase64(text: string, padding: 'padded' | 'raw'): GoResult<Uint8Array> {
  if (isPlain(text, padding)) return { ok: true, value: Buffer.from(text, 'base64') };
  const plain = toByteText(text);
  const found = plain.search(/[^A-Za-z0-9+/\r\n]/);
  const end = found === -1 ? plain.length : found;
  const rest = plain.slice(0, end).replaceAll(/[\r\n]/g, '').length % 4;
  const fault = found === -1 ? shortFault(rest, plain.length, padding) : endFault(plain, end, rest, padding);
  if (fault !== undefined) return { ok: false, goText: `illegal base64 data at input byte ${fault}` };
  // Node skips line breaks.
  return { ok: true, value: Buffer.from(plain.slice(0, end), 'base64') };
}

/** The common case: only characters of the alphabet, correct length and padding. */
function isPlain(text: string, padding: 'padded' | 'raw'): boolean {
  if (padding === 'raw') return text.length % 4 !== 1 && /^[A-Za-z0-9+/]*$/.test(text);
  return text.length % 4 === 0 && /^(?:[A-Za-z0-9+/]*|[A-Za-z0-9+/]+={1,2})$/.test(text);
}

/** Offset of the fault in a text of alphabet characters only, whose last group of four has `rest` characters. */
function shortFault(rest: number, length: number, padding: 'padded' | 'raw'): number | undefined {
  return rest === 1 || (rest > 0 && padding === 'padded') ? length - rest : undefined;
}

/** Offset of the fault from the first character outside the alphabet on. Only line breaks may follow the padding. */
function endFault(plain: string, end: number, rest: number, padding: 'padded' | 'raw'): number | undefined {
  if (plain[end] !== '=' || padding === 'raw' || rest < 2) return end;
  const second = nextIn(plain, end);
  if (rest === 3) return second;
  if (second === undefined) return plain.length;
  return plain[second] === '=' ? nextIn(plain, second) : second - 1;
}

/** Index of the next character that is not a line break. */
function nextIn(plain: string, before: number): number | undefined {
  let at = before + 1;
  while (plain[at] === '\n' || plain[at] === '\r') at += 1;
  return at < plain.length ? at : undefined;
}
