/** Layers unpacked as they are read, up to a bound: thirty kilobytes can say a gigabyte. */
import { Readable } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { RegistryError } from './registry-error.ts';

/**
 * The content of a layer whose digest is known to be right.
 *
 * @param mediaType its end says how the layer is packed: `gzip`, `zstd`, anything else not at all
 * @param maxBytes of the content
 * @throws RegistryError `Damaged` for what is not packed as it says, or holds more than `maxBytes`
 *
 * @example
 * ```ts
 * import { unpacked } from './unpack.ts';
 * import assert from 'node:assert/strict';
 * import { gzipSync } from 'node:zlib';
 *
 * const parts = await Array.fromAsync(unpacked(gzipSync('text'), 'application/vnd.oci.image.layer.v1.tar+gzip', 10));
 * assert.equal(Buffer.concat(parts).toString(), 'text');
 * ```
 */
export async function* unpacked(
  layer: Uint8Array,
  mediaType: string,
  maxBytes: number,
): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const chunk of contentOf(layer, mediaType)) {
    size += chunk.length;
    if (size > maxBytes)
      throw new RegistryError('Damaged', `a layer of ${layer.length} bytes holds more than ${maxBytes}`);
    yield chunk;
  }
}

function contentOf(layer: Uint8Array, mediaType: string): AsyncIterable<Uint8Array> {
  if (mediaType.endsWith('zstd')) return decompressed(layer, 'zstd');
  return mediaType.endsWith('gzip') ? decompressed(layer, 'gzip') : Readable.from([layer]);
}

async function* decompressed(layer: Uint8Array, format: 'gzip' | 'zstd'): AsyncGenerator<Uint8Array> {
  const unpacking = format === 'gzip' ? createGunzip() : createZstdDecompress();
  unpacking.end(layer);
  try {
    for await (const chunk of unpacking) yield chunk as Uint8Array;
  } catch {
    throw new RegistryError('Damaged', `the layer is no ${format}`);
  } finally {
    unpacking.destroy();
  }
}
