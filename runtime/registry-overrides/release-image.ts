/** A release image read from a registry: its version and the images of its components. */
import { type RegistryClient } from '../registry/client.ts';
import { imageConfig, imageFiles, imageManifest } from '../registry/image.ts';
import { RegistryError } from '../registry/registry-error.ts';
import { type ImageReference, parseImageReference } from '../rules/auth-lookup/image-reference.ts';
import { type MirrorIndex, resolveMirrors } from '../rules/mirrors/mirrors.ts';
import { replaceRegistry } from '../rules/registry-overrides/registry-overrides.ts';

const REFERENCES = 'release-manifests/image-references';
/** A real one has about 200 entries in 120 KB. */
const MAX_REFERENCES = 16 * 1024 * 1024;

export interface Release {
  /** Label `io.openshift.release`, else the name that the list of images gives itself. */
  readonly version: string;
  readonly digest: string;
  readonly architecture: string;
  /** Images by component name, sorted. */
  readonly components: ReadonlyMap<string, string>;
}

/**
 * Reads a release for one architecture. Nothing of a layer is unpacked before its digest is known to be right.
 *
 * @throws RegistryError; `Damaged` for an image that is no release
 */
export async function readRelease(
  client: RegistryClient,
  reference: ImageReference,
  architecture: string,
): Promise<Release> {
  const image = await imageManifest(client, reference, architecture);
  const config = await imageConfig(client, reference, image);
  const files = await imageFiles(client, reference, image, { names: [REFERENCES], maxBytes: MAX_REFERENCES });
  const bytes = files.get(REFERENCES);
  if (bytes === undefined)
    throw new RegistryError(
      'Damaged',
      `"${reference.repository}" is no release image: it has no file ${REFERENCES}`,
    );
  const list = parseReferences(new TextDecoder().decode(bytes));
  if (list === undefined)
    throw new RegistryError(
      'Damaged',
      `the file ${REFERENCES} of "${reference.repository}" is no ImageStream`,
    );
  return {
    version: config.labels['io.openshift.release'] ?? list.name,
    digest: image.digest,
    architecture: config.architecture,
    components: list.components,
  };
}

/** Component images of an `image-references` document; undefined for text that is none. */
export function parseReferences(
  text: string,
): { readonly name: string; readonly components: ReadonlyMap<string, string> } | undefined {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { kind, metadata, spec } = (document ?? {}) as {
    kind?: unknown;
    metadata?: { name?: unknown };
    spec?: { tags?: unknown };
  };
  if (kind !== 'ImageStream' || !Array.isArray(spec?.tags)) return undefined;
  const tags = spec.tags as readonly ({ name?: unknown; from?: { name?: unknown } } | null)[];
  const pairs = tags.flatMap((tag): [string, string][] =>
    typeof tag?.name === 'string' && typeof tag.from?.name === 'string' ? [[tag.name, tag.from.name]] : [],
  );
  return {
    name: typeof metadata?.name === 'string' ? metadata.name : '',
    components: new Map(pairs.sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}

/** What {@link translateImage} follows. */
export interface Translation {
  readonly mirrors: MirrorIndex;
  /** Targets of `--registry-overrides`, for what runs in the control plane. */
  readonly registryOverrides: ReadonlyMap<string, string>;
}

/**
 * The address of `image` for a component without a container runtime, such as the ignition server: the first place that may be
 * asked, then rewritten as `--registry-overrides` says. An image that no rule covers stays as it is; so does one whose every
 * place is blocked, because there is nothing better to say.
 *
 * @example
 * ```ts
 * import { compileMirrors } from '../rules/mirrors/mirrors.ts';
 * import { translateImage } from './release-image.ts';
 * import assert from 'node:assert/strict';
 *
 * const mirrors = compileMirrors([{
 *   prefix: 'quay.io/ocp', location: 'quay.io/ocp', blocked: false, insecure: false,
 *   mirrors: [{ location: 'mirror.example.com/ocp', pullFrom: 'all' }],
 * }]);
 * const registryOverrides = new Map([['mirror.example.com', 'cache.example.com']]);
 * assert.equal(translateImage('quay.io/ocp/cli:1', { mirrors, registryOverrides }), 'cache.example.com/ocp/cli:1');
 * ```
 */
export function translateImage(image: string, translation: Translation): string {
  const parsed = parseImageReference(image);
  if (!parsed.ok) return image;
  const { rule, candidates } = resolveMirrors(translation.mirrors, image);
  const first = rule === undefined ? image : (candidates[0]?.reference ?? image);
  return replaceRegistry(first, translation.registryOverrides);
}
