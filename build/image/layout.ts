/**
 * An OCI image layout on disk: content-addressed blobs, a manifest per platform, one index. The same input gives the same
 * digests, so an image can be rebuilt and compared.
 *
 * Source of the format: OCI Image Format Specification 1.1.
 */
import { hash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

/** Describes a blob. */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: { readonly os: string; readonly architecture: string };
  readonly annotations?: Readonly<Record<string, string>>;
  readonly artifactType?: string;
}

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const INDEX = 'application/vnd.oci.image.index.v1+json';
const CONFIG = 'application/vnd.oci.image.config.v1+json';
const LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip';
const EMPTY = 'application/vnd.oci.empty.v1+json';

/** Creation time of the image, fixed so that builds are reproducible. */
const EPOCH = '1970-01-01T00:00:00Z';

export class ImageLayout {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
    mkdirSync(join(dir, 'blobs/sha256'), { recursive: true });
    writeFileSync(join(dir, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  }

  /** Stores a blob under its digest. */
  blob(mediaType: string, content: Uint8Array): Descriptor {
    const sum = hash('sha256', content);
    writeFileSync(join(this.#dir, 'blobs/sha256', sum), content);
    return { mediaType, digest: `sha256:${sum}`, size: content.length };
  }

  json(mediaType: string, value: unknown): Descriptor {
    return this.blob(mediaType, Buffer.from(JSON.stringify(value)));
  }

  /**
   * Stores the image of one platform.
   *
   * @param layers tar archives, lowest first
   * @param config the `config` part: user, entry point, labels
   */
  image(
    architecture: string,
    layers: readonly Uint8Array[],
    config: Readonly<Record<string, unknown>>,
  ): Descriptor {
    const described = layers.map((tar) => this.blob(LAYER, gzipSync(tar, { level: 6 })));
    const diffs = layers.map((tar) => `sha256:${hash('sha256', tar)}`);
    const configBlob = this.json(CONFIG, {
      created: EPOCH,
      architecture,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: diffs },
    });
    return {
      ...this.#manifest({ config: configBlob, layers: described }),
      platform: { os: 'linux', architecture },
    };
  }

  /** Stores the bill of materials of `subject`. */
  #attach(subject: Descriptor, sbom: Uint8Array): Descriptor {
    const artifactType = 'application/spdx+json';
    const config = this.blob(EMPTY, Buffer.from('{}'));
    const layers = [this.blob(artifactType, sbom)];
    return { ...this.#manifest({ artifactType, config, layers, subject }), artifactType };
  }

  /** Writes the multi-platform index under `tag`, with its bill of materials. Call it last. */
  finish(tag: string, images: readonly Descriptor[], annotations: object, sbom?: Uint8Array): Descriptor {
    const index = this.json(INDEX, { schemaVersion: 2, mediaType: INDEX, manifests: images, annotations });
    const attached = sbom === undefined ? [] : [this.#attach(index, sbom)];
    this.index([tagged(index, tag), ...attached]);
    return index;
  }

  /** Stores a manifest with one blob, the format of signatures. */
  carrier(mediaType: string, content: Uint8Array, annotations: Readonly<Record<string, string>>): Descriptor {
    const layer = { ...this.blob(mediaType, content), annotations };
    const config = this.json(CONFIG, {
      architecture: '',
      os: '',
      config: {},
      rootfs: { type: 'layers', diff_ids: [layer.digest] },
    });
    return this.#manifest({ config, layers: [layer] });
  }

  #manifest(fields: object): Descriptor {
    return this.json(MANIFEST, { schemaVersion: 2, mediaType: MANIFEST, ...fields });
  }

  /** Writes `index.json`, which lists the manifests. Call it last. */
  index(manifests: readonly Descriptor[]): void {
    writeFileSync(
      join(this.#dir, 'index.json'),
      JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests }),
    );
  }
}

/** A descriptor under the name of a tag. */
export function tagged(descriptor: Descriptor, tag: string): Descriptor {
  return { ...descriptor, annotations: { 'org.opencontainers.image.ref.name': tag } };
}
