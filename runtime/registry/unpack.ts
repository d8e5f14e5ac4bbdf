/** Layers unpacked as they are read, up to a bound: thirty kilobytes can say a gigabyte. */
import { Readable } from 'node:stream';
import { createGunzip, createZstdDecompress, type Gunzip, type ZstdDecompress } from 'node:zlib';
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
  if (mediaType.endsWith('zstd')) return zstdFrames(layer);
  return mediaType.endsWith('gzip') ? decompressed(createGunzip(), layer, 'gzip') : Readable.from([layer]);
}

/** `zstd:chunked` of Podman and Buildah has one frame for each part of a file; a release image has some thousand files. */
const MAX_FRAMES = 100_000;

/** The decompressor of Node ends with its first frame (RFC 8878, 3): the rest of the layer would be missing, and nothing would say so. */
async function* zstdFrames(layer: Uint8Array): AsyncGenerator<Uint8Array> {
  let at = 0;
  for (let frames = 0; at < layer.length || frames === 0; frames += 1) {
    if (frames === MAX_FRAMES)
      throw new RegistryError('Damaged', `the layer has more than ${MAX_FRAMES} frames of zstd`);
    const rest = layer.subarray(at);
    const skipped = skippableLength(rest);
    if (skipped !== undefined) {
      at += skipped;
      continue;
    }
    const unpacking = createZstdDecompress();
    yield* decompressed(unpacking, rest, 'zstd');
    if (unpacking.bytesWritten === 0) throw notPacked('zstd');
    at += unpacking.bytesWritten;
  }
}

/** Length of the skippable frame (RFC 8878, 3.1.2) that begins here, header included; undefined where none does. */
function skippableLength(bytes: Uint8Array): number | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 8 || (view.getUint32(0, true) & 0xfffffff0) >>> 0 !== 0x184d2a50) return undefined;
  const length = 8 + view.getUint32(4, true);
  if (length > bytes.length) throw notPacked('zstd');
  return length;
}

async function* decompressed(
  unpacking: Gunzip | ZstdDecompress,
  packed: Uint8Array,
  format: 'gzip' | 'zstd',
): AsyncGenerator<Uint8Array> {
  unpacking.end(packed);
  try {
    for await (const chunk of unpacking) yield chunk as Uint8Array;
  } catch {
    throw notPacked(format);
  } finally {
    unpacking.destroy();
  }
}

function notPacked(format: 'gzip' | 'zstd'): RegistryError {
  return new RegistryError('Damaged', `the layer is no ${format}`);
}
