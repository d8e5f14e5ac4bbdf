/**
 * Base64 as Go's encoding/base64 decodes it: line ends are skipped, superfluous bits of the last character are allowed,
 * padding is demanded (`padded`) or refused (`raw`), and an error names the byte that is wrong.
 *
 * Source of the rule: encoding/base64 of Go 1.26, StdEncoding and RawStdEncoding.
 */

export type Base64Result =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly goText: string };

/**
 * Decodes `text`.
 */
export function decodeGoBase64(text: string, padding: 'padded' | 'raw'): Base64Result {
  if (isPlain(text, padding)) return { ok: true, bytes: Buffer.from(text, 'base64') };
  const input = Buffer.from(text, 'utf8');
  const plain = input.toString('latin1');
  const found = plain.search(/[^A-Za-z0-9+/\r\n]/);
  const end = found === -1 ? input.length : found;
  const rest = plain.slice(0, end).replaceAll(/[\r\n]/g, '').length % 4;
  const fault =
    found === -1 ? shortFault(rest, input.length, padding) : endFault(input, { end, rest, padding });
  if (fault !== undefined) return corrupt(fault);
  // Node skips line ends.
  return { ok: true, bytes: Buffer.from(plain.slice(0, end), 'base64') };
}

/** Almost every text: nothing but the alphabet, and of the right length. */
function isPlain(text: string, padding: 'padded' | 'raw'): boolean {
  if (padding === 'raw') return text.length % 4 !== 1 && /^[A-Za-z0-9+/]*$/.test(text);
  return text.length % 4 === 0 && /^(?:[A-Za-z0-9+/]*|[A-Za-z0-9+/]+={1,2})$/.test(text);
}

const PAD = 0x3d;

/** Where it is wrong that a text of the alphabet alone ends with `rest` characters of a group of four. */
function shortFault(rest: number, length: number, padding: 'padded' | 'raw'): number | undefined {
  return rest === 1 || (rest > 0 && padding === 'padded') ? length - rest : undefined;
}

/** What is wrong from the first character outside the alphabet on. Nothing but line ends may follow the padding. */
function endFault(
  input: Uint8Array,
  { end, rest, padding }: { readonly end: number; readonly rest: number; readonly padding: 'padded' | 'raw' },
): number | undefined {
  if (input[end] !== PAD || padding === 'raw' || rest < 2) return end;
  const second = nextIn(input, end);
  if (rest === 3) return second;
  if (second === undefined) return input.length;
  return input[second] === PAD ? nextIn(input, second) : second - 1;
}

/** Index of the next character that is not a line ending. */
function nextIn(input: Uint8Array, before: number): number | undefined {
  let at = before + 1;
  while (isLineEnd(input[at])) at += 1;
  return at < input.length ? at : undefined;
}

function isLineEnd(byte: number | undefined): boolean {
  return byte === 0x0a || byte === 0x0d;
}

function corrupt(at: number): Base64Result {
  return { ok: false, goText: `illegal base64 data at input byte ${at}` };
}
