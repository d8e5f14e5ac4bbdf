/**
 * Base64 as Go's encoding/base64 decodes it: line ends are skipped, superfluous bits of the last character are allowed,
 * padding is demanded (`padded`) or refused (`raw`), and an error names the byte that is wrong.
 *
 * Source of the rule: encoding/base64 of Go 1.26, StdEncoding and RawStdEncoding.
 */

export type Base64Result =
  | { readonly ok: true; readonly bytes: Uint8Array }
  /** `at`: offset in bytes of the UTF-8 text. */
  | { readonly ok: false; readonly at: number; readonly goText: string };

/**
 * Decodes `text`.
 */
export function decodeGoBase64(text: string, padding: 'padded' | 'raw'): Base64Result {
  if (isPlain(text, padding)) return { ok: true, bytes: Buffer.from(text, 'base64') };
  const input = Buffer.from(text, 'utf8');
  const places = [...input.keys()].filter((at) => !isLineEnd(input[at]));
  const end = places.findIndex((at) => !DIGIT.test(String.fromCharCode(input[at] ?? 0)));
  const digits = end === -1 ? places.length : end;
  const fault =
    end === -1 ? shortFault(digits % 4, input.length, padding) : endFault(input, places, end, padding);
  if (fault !== undefined) return corrupt(fault);
  // Node skips line ends.
  return { ok: true, bytes: Buffer.from(input.toString('latin1', 0, places[digits]), 'base64') };
}

/** Almost every text: nothing but the alphabet, and of the right length. */
function isPlain(text: string, padding: 'padded' | 'raw'): boolean {
  if (padding === 'raw') return text.length % 4 !== 1 && /^[A-Za-z0-9+/]*$/.test(text);
  return text.length % 4 === 0 && /^(?:[A-Za-z0-9+/]*|[A-Za-z0-9+/]+={1,2})$/.test(text);
}

const DIGIT = /^[A-Za-z0-9+/]$/;
const PAD = 0x3d;

/** Where it is wrong that a text of the alphabet alone ends with `rest` characters of a group of four. */
function shortFault(rest: number, length: number, padding: 'padded' | 'raw'): number | undefined {
  return rest === 1 || (rest > 0 && padding === 'padded') ? length - rest : undefined;
}

/** What is wrong from the first character outside the alphabet on. Nothing but line ends may follow the padding. */
function endFault(
  input: Uint8Array,
  places: readonly number[],
  end: number,
  padding: 'padded' | 'raw',
): number | undefined {
  const [first = 0, second, third] = places.slice(end);
  const rest = end % 4;
  if (input[first] !== PAD || padding === 'raw' || rest < 2) return first;
  if (rest === 3) return second;
  if (second === undefined) return input.length;
  return input[second] === PAD ? third : second - 1;
}

function isLineEnd(byte: number | undefined): boolean {
  return byte === 0x0a || byte === 0x0d;
}

function corrupt(at: number): Base64Result {
  return { ok: false, at, goText: `illegal base64 data at input byte ${at}` };
}
