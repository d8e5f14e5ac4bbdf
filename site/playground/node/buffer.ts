/** Node's bytes, by a package that browsers can run; what it does otherwise than Node is set right. */
import { Buffer } from 'buffer';

const AS_NODE = new TextDecoder('utf-8', { ignoreBOM: true });
const STRICT = new TextDecoder('utf-8', { fatal: true });
const toText = Buffer.prototype.toString;
const fromText = Buffer.from.bind(Buffer) as (value: unknown, ...rest: unknown[]) => Buffer;

// One sign for each sequence that is not UTF-8, as Node and browsers count them; and base64 in the alphabet of addresses.
Buffer.prototype.toString = function toString(encoding?: string, start?: number, end?: number): string {
  if (encoding === undefined || encoding === 'utf8' || encoding === 'utf-8')
    return AS_NODE.decode(this.subarray(start, end));
  if (encoding !== 'base64url') return toText.call(this, encoding, start, end);
  return toText
    .call(this, 'base64', start, end)
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
};
Buffer.from = ((value: unknown, encoding?: unknown, ...rest: unknown[]) =>
  fromText(value, encoding === 'base64url' ? 'base64' : encoding, ...rest)) as typeof Buffer.from;

export { Buffer };

export function isUtf8(bytes: Uint8Array): boolean {
  try {
    STRICT.decode(bytes);
    return true;
  } catch {
    return false;
  }
}
