/** Replaces `node:zlib` for decompression, and enforces the requested size limit. */
import { Buffer } from 'buffer';
import { Gunzip } from 'fflate';

export function gunzipSync(
  bytes: Uint8Array,
  { maxOutputLength = Number.POSITIVE_INFINITY }: { readonly maxOutputLength?: number } = {},
): Buffer {
  const parts: Uint8Array[] = [];
  let length = 0;
  const gunzip = new Gunzip((part) => {
    length += part.length;
    if (length > maxOutputLength) throw new RangeError(`larger than ${maxOutputLength} bytes when unpacked`);
    parts.push(part);
  });
  gunzip.push(Uint8Array.from(bytes), true);
  return Buffer.concat(parts);
}
