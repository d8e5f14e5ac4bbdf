/** An image's own documents: the manifest of one architecture, its configuration, single files of its layers. */

import { Readable } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import type { ImageReference } from '../rules/auth-lookup/image-reference.ts';
import type { RegistryClient, RegistryManifest } from './client.ts';
import { RegistryError } from './registry-error.ts';
import { readTar } from './tar.ts';

interface Descriptor {
  readonly mediaType?: string;
  readonly digest: string;
  readonly size?: number;
  readonly platform?: { readonly architecture?: string; readonly os?: string };
}

export interface ImageManifest {
  /** Of the image that was asked for: the index when there is one. */
  readonly digest: string;
  /** Of the manifest of the architecture. */
  readonly manifestDigest: string;
  /** Architectures of the index; empty when there is none. */
  readonly architectures: readonly string[];
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

const INDEX_TYPES: ReadonlySet<string> = new Set([
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
]);
const MAX_CONFIG = 4 * 1024 * 1024;

/**
 * The manifest of `architecture` (`amd64`), found through the index when there is one.
 *
 * @throws RegistryError `NotFound` when the index does not have the architecture, `Damaged` for what is no manifest
 */
export async function imageManifest(
  client: RegistryClient,
  reference: ImageReference,
  architecture: string,
): Promise<ImageManifest> {
  const top = await client.manifest(reference);
  const document = jsonOf(top.bytes);
  if (!INDEX_TYPES.has(top.mediaType) && !Array.isArray(document['manifests']))
    return imageOf(top, top.digest, []);
  const entries = descriptors(document['manifests']);
  const known = entries.flatMap(({ platform }) =>
    typeof platform?.architecture === 'string' ? platform.architecture : [],
  );
  const entry = entries.find(
    (one) => one.platform?.architecture === architecture && (one.platform.os ?? 'linux') === 'linux',
  );
  if (entry === undefined) {
    throw new RegistryError(
      'NotFound',
      `"${reference.repository}" has no image for ${architecture}: it has ${known.join(', ') || 'none'}`,
    );
  }
  const { tag: _tag, ...rest } = reference;
  return imageOf(await client.manifest({ ...rest, digest: entry.digest }), top.digest, known);
}

function imageOf(
  manifest: RegistryManifest,
  digest: string,
  architectures: readonly string[],
): ImageManifest {
  const { config, layers } = jsonOf(manifest.bytes);
  const [first] = descriptors([config]);
  if (first === undefined || !Array.isArray(layers))
    throw new RegistryError('Damaged', 'the manifest has no config or no layers');
  return {
    digest,
    manifestDigest: manifest.digest,
    architectures,
    config: first,
    layers: descriptors(layers),
  };
}

/** The image's configuration: labels, architecture. */
export async function imageConfig(
  client: RegistryClient,
  reference: ImageReference,
  image: ImageManifest,
): Promise<{ readonly architecture: string; readonly labels: Readonly<Record<string, string>> }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of await client.blob(reference, image.config.digest)) {
    size += chunk.length;
    if (size > MAX_CONFIG)
      throw new RegistryError('Damaged', `the image's configuration is longer than ${MAX_CONFIG} bytes`);
    chunks.push(chunk);
  }
  const document = jsonOf(Buffer.concat(chunks));
  const { Labels: labels } = (document['config'] ?? {}) as { Labels?: unknown };
  const texts = Object.entries(labels ?? {}).filter((pair): pair is [string, string] => {
    return typeof pair[1] === 'string';
  });
  return {
    architecture: typeof document['architecture'] === 'string' ? document['architecture'] : '',
    labels: Object.fromEntries(texts),
  };
}

/**
 * The wanted files, from the topmost layer that has them. Each layer is streamed to its end, so that its digest is known to be
 * right before anything of it is used.
 */
export async function imageFiles(
  client: RegistryClient,
  reference: ImageReference,
  image: ImageManifest,
  wanted: { readonly names: readonly string[]; readonly maxBytes: number },
): Promise<ReadonlyMap<string, Uint8Array>> {
  const found = new Map<string, Uint8Array>();
  for (const layer of image.layers.toReversed()) {
    const missing = wanted.names.filter((name) => !found.has(name));
    if (missing.length === 0) break;
    const blob = await client.blob(reference, layer.digest);
    const files = await readTar(unpacked(blob, layer.mediaType ?? ''), {
      names: new Set(missing),
      maxBytes: wanted.maxBytes,
    });
    for (const [name, bytes] of files) found.set(name, bytes);
  }
  return found;
}

function unpacked(blob: AsyncIterable<Uint8Array>, mediaType: string): AsyncIterable<Uint8Array> {
  if (mediaType.endsWith('zstd')) return decompressed(blob, 'zstd');
  return mediaType.endsWith('gzip') ? decompressed(blob, 'gzip') : blob;
}

async function* decompressed(
  blob: AsyncIterable<Uint8Array>,
  format: 'gzip' | 'zstd',
): AsyncGenerator<Uint8Array> {
  const source = Readable.from(blob);
  const unpacking = format === 'gzip' ? createGunzip() : createZstdDecompress();
  source.once('error', (error) => unpacking.destroy(error));
  source.pipe(unpacking);
  try {
    for await (const chunk of unpacking) yield chunk as Uint8Array;
  } catch (error) {
    if (error instanceof RegistryError) throw error;
    throw new RegistryError('Damaged', `the layer is no ${format}`);
  } finally {
    source.destroy();
  }
}

function jsonOf(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof value === 'object' && value !== null) return value as Readonly<Record<string, unknown>>;
  } catch {
    // Falls through to the one message.
  }
  throw new RegistryError('Damaged', 'the registry answers with something that is no JSON object');
}

function descriptors(list: unknown): readonly Descriptor[] {
  const entries = (Array.isArray(list) ? list : []) as readonly (Partial<Descriptor> | null)[];
  return entries.flatMap((entry): readonly Descriptor[] => {
    if (typeof entry?.digest !== 'string') return [];
    const { mediaType, ...rest } = entry;
    return [{ ...rest, digest: entry.digest, ...(typeof mediaType === 'string' ? { mediaType } : {}) }];
  });
}
