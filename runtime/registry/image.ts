/** An image's own documents: the manifest of one architecture, its configuration, single files of its layers. */

import type { ImageReference } from '../rules/auth-lookup/image-reference.ts';
import type { RegistryClient, RegistryManifest } from './client.ts';
import { RegistryError } from './registry-error.ts';
import { readTar } from './tar.ts';
import { unpacked } from './unpack.ts';

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
/** The layer of a release image that is looked for has two megabytes; the largest beneath it some hundred. */
const MAX_LAYER = 128 * 1024 * 1024;
const MAX_UNPACKED = 512 * 1024 * 1024;
/** Runtimes mount some hundred at most. Each is a request of its own, and a manifest has room for ten thousands. */
const MOST_LAYERS = 500;
/** Of an index, for messages. */
const MOST_SHOWN = 20;

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
      `"${reference.repository}" has no image for ${architecture}: it has ${shortList(known)}`,
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
  if (layers.length > MOST_LAYERS)
    throw new RegistryError(
      'Damaged',
      `the manifest has ${layers.length} layers: at most ${MOST_LAYERS} are read`,
    );
  return {
    digest,
    manifestDigest: manifest.digest,
    architectures,
    config: first,
    layers: descriptors(layers),
  };
}

function shortList(names: readonly string[]): string {
  const shown = names.slice(0, MOST_SHOWN).map((name) => name.slice(0, 80));
  const more = names.length > MOST_SHOWN ? ` and ${names.length - MOST_SHOWN} more` : '';
  return `${shown.join(', ') || 'none'}${more}`;
}

/** The image's configuration: labels, architecture. */
export async function imageConfig(
  client: RegistryClient,
  reference: ImageReference,
  image: ImageManifest,
): Promise<{ readonly architecture: string; readonly labels: Readonly<Record<string, string>> }> {
  const { bytes, size } = await wholeBlob(client, reference, image.config, MAX_CONFIG);
  if (bytes === undefined)
    throw new RegistryError(
      'Damaged',
      `the image's configuration has ${size} bytes: at most ${MAX_CONFIG} are read`,
    );
  const document = jsonOf(bytes);
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
 * The wanted files, from the topmost layer that has them. A layer is held until its digest is known to be right; nothing of it is
 * unpacked before, and then no more than is allowed.
 *
 * @throws RegistryError `Damaged` for a layer that is not what its digest says, too large, or no archive
 */
export async function imageFiles(
  client: RegistryClient,
  reference: ImageReference,
  image: ImageManifest,
  wanted: WantedFiles,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const { maxLayer = MAX_LAYER, maxUnpacked = MAX_UNPACKED } = wanted;
  const found = new Map<string, Uint8Array>();
  for (const layer of image.layers.toReversed()) {
    const missing = wanted.names.filter((name) => !found.has(name));
    if (missing.length === 0) break;
    const { bytes, size } = await wholeBlob(client, reference, layer, maxLayer);
    if (bytes === undefined)
      throw new RegistryError(
        'Damaged',
        `the layer ${layer.digest} has ${size} bytes: at most ${maxLayer} are read in search of ${missing.join(', ')}`,
      );
    const files = await readTar(unpacked(bytes, layer.mediaType ?? '', maxUnpacked), {
      names: new Set(missing),
      maxBytes: wanted.maxBytes,
    });
    for (const [name, content] of files) found.set(name, content);
  }
  return found;
}

/** What is looked for, and how much of an image is read for it at most. */
export interface WantedFiles {
  readonly names: readonly string[];
  /** Of one file. */
  readonly maxBytes: number;
  /** Of one layer as it is sent. @default {134217728} */
  readonly maxLayer?: number;
  /** Of one layer when it is unpacked. @default {536870912} */
  readonly maxUnpacked?: number;
}

/** A blob whose digest is right; no bytes, and the size as far as it is known, when it has more than `limit`. */
async function wholeBlob(
  client: RegistryClient,
  reference: ImageReference,
  { digest, size = 0 }: Descriptor,
  limit: number,
): Promise<{ readonly bytes?: Uint8Array; readonly size: number }> {
  if (size > limit) return { size };
  const chunks: Uint8Array[] = [];
  let read = 0;
  for await (const chunk of await client.blob(reference, digest)) {
    read += chunk.length;
    if (read > limit) return { size: read };
    chunks.push(chunk);
  }
  return { bytes: Buffer.concat(chunks), size: read };
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
    const { mediaType, size, ...rest } = entry;
    return [
      {
        ...rest,
        digest: entry.digest,
        ...(typeof mediaType === 'string' ? { mediaType } : {}),
        ...(typeof size === 'number' ? { size } : {}),
      },
    ];
  });
}
