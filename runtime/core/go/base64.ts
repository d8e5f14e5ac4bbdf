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
  const output = Buffer.alloc(Math.floor((input.length * 3) / 4) + 3);
  let written = 0;
  let at = 0;
  for (;;) {
    const quantum = readQuantum(input, at, padding);
    if ('fault' in quantum) return corrupt(quantum.fault);
    for (const byte of quantum.bytes) {
      output[written] = byte;
      written += 1;
    }
    at = quantum.next;
    if (quantum.last) return { ok: true, bytes: output.subarray(0, written) };
  }
}

/** Almost every text: nothing but the alphabet, and of the right length. */
function isPlain(text: string, padding: 'padded' | 'raw'): boolean {
  if (padding === 'raw') return text.length % 4 !== 1 && /^[A-Za-z0-9+/]*$/.test(text);
  return text.length % 4 === 0 && /^(?:[A-Za-z0-9+/]*|[A-Za-z0-9+/]+={1,2})$/.test(text);
}

type Quantum =
  | { readonly bytes: readonly number[]; readonly next: number; readonly last: boolean }
  | { readonly fault: number };

/** Reads up to four characters from `start`. */
function readQuantum(input: Uint8Array, start: number, padding: 'padded' | 'raw'): Quantum {
  const digits: number[] = [];
  let at = start;
  while (digits.length < 4) {
    if (at >= input.length) return shortQuantum(digits, at, padding);
    const byte = input[at] ?? 0;
    at += 1;
    if (isLineEnd(byte)) continue;
    const digit = digitOf(byte);
    if (digit !== undefined) {
      digits.push(digit);
      continue;
    }
    if (byte !== PAD || padding === 'raw') return { fault: at - 1 };
    return paddedQuantum(input, digits, at);
  }
  return { bytes: bytesOf(digits), next: at, last: false };
}

function shortQuantum(digits: readonly number[], at: number, padding: 'padded' | 'raw'): Quantum {
  if (digits.length === 0) return { bytes: [], next: at, last: true };
  if (digits.length === 1 || padding === 'padded') return { fault: at - digits.length };
  return { bytes: bytesOf(digits), next: at, last: true };
}

/** `at` is behind the first `=`. Nothing but line ends may follow the padding. */
function paddedQuantum(input: Uint8Array, digits: readonly number[], at: number): Quantum {
  if (digits.length < 2) return { fault: at - 1 };
  let next = at;
  if (digits.length === 2) {
    next = skipLineEnds(input, next);
    if (next >= input.length) return { fault: input.length };
    if (input[next] !== PAD) return { fault: next - 1 };
    next += 1;
  }
  next = skipLineEnds(input, next);
  if (next < input.length) return { fault: next };
  return { bytes: bytesOf(digits), next, last: true };
}

const PAD = 0x3d;

function bytesOf(digits: readonly number[]): number[] {
  const [a = 0, b = 0, c = 0, d = 0] = digits;
  const word = (a << 18) | (b << 12) | (c << 6) | d;
  return [(word >> 16) & 255, (word >> 8) & 255, word & 255].slice(0, digits.length - 1);
}

function skipLineEnds(input: Uint8Array, from: number): number {
  let at = from;
  while (at < input.length && isLineEnd(input[at] ?? 0)) at += 1;
  return at;
}

function isLineEnd(byte: number): boolean {
  return byte === 0x0a || byte === 0x0d;
}

function digitOf(byte: number): number | undefined {
  if (byte >= 0x41 && byte <= 0x5a) return byte - 0x41;
  if (byte >= 0x61 && byte <= 0x7a) return byte - 0x61 + 26;
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30 + 52;
  if (byte === 0x2b) return 62;
  return byte === 0x2f ? 63 : undefined;
}

function corrupt(at: number): Base64Result {
  return { ok: false, at, goText: `illegal base64 data at input byte ${at}` };
}
