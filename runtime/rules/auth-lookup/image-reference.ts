/**
 * Image references as the kubelet, CRI-O and containerd read them.
 *
 * Source of the rule: github.com/distribution/reference v0.6.0 (ParseNormalizedNamed, ParseDockerRef), go-digest v1.0.0, and
 * ParseImageName of the kubelet 1.36, which adds the tag `latest` when there is neither tag nor digest.
 */

/** A reference in full: `docker.io/library/nginx:1.27`. */
export interface ImageReference {
  /** Registry host with its port, in the case in which it was written: `quay.io`, `[::1]:5000`, `docker.io`. */
  readonly domain: string;
  /** Path below the registry: `library/nginx`. */
  readonly path: string;
  /** `domain/path`. */
  readonly repository: string;
  /** As written; absent when there is none. See {@link pullTag} for the default. */
  readonly tag?: string;
  /** `sha256:…` (or sha384, sha512). */
  readonly digest?: string;
}

export type ImageReferenceResult =
  | { readonly ok: true; readonly reference: ImageReference }
  | {
      readonly ok: false;
      /** The words of the Go library. */
      readonly goText: string;
    };

const DOMAIN_COMPONENT = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])';
const HOST = `(?:${DOMAIN_COMPONENT}(?:\\.${DOMAIN_COMPONENT})*|\\[(?:[a-fA-F0-9:]+)\\])`;
const DOMAIN = `${HOST}(?::[0-9]+)?`;
const PATH_COMPONENT = '[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*';
const PATH = `${PATH_COMPONENT}(?:/${PATH_COMPONENT})*`;
const TAG = '[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}';
const DIGEST = '[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}';
const REFERENCE = new RegExp(`^((?:${DOMAIN}/)?${PATH})(?::(${TAG}))?(?:@(${DIGEST}))?$`);
const NAME = new RegExp(`^(?:(${DOMAIN})/)?(${PATH})$`);

/** Longest path, as the library counts it. */
export const MAX_PATH_LENGTH = 255;

const INVALID_FORMAT = 'invalid reference format';

/**
 * Reads an image as a pod names it: `nginx`, `quay.io/team/app:1`, `r.io/a@sha256:…`. Never throws.
 *
 * @param image text of `spec.containers[].image`
 * @returns the reference in full, or the error in the words of the Go library
 * @example
 * ```ts
 * import { parseImageReference, pullTag } from './image-reference.ts';
 * import assert from 'node:assert/strict';
 *
 * const parsed = parseImageReference('nginx');
 * assert.ok(parsed.ok);
 * assert.equal(parsed.reference.repository, 'docker.io/library/nginx');
 * assert.equal(pullTag(parsed.reference), 'latest');
 * assert.equal(parseImageReference('r.io//a').ok, false);
 * ```
 */
export function parseImageReference(image: string): ImageReferenceResult {
  if (/^[a-f0-9]{64}$/.test(image)) {
    return wrong(`invalid repository name (${image}), cannot specify 64-byte hexadecimal strings`);
  }
  const [domain, remainder] = splitDomain(image);
  const [remote = ''] = remainder.split(':', 1);
  if (remote.toLowerCase() !== remote) {
    return wrong(`${INVALID_FORMAT}: repository name (${remote}) must be lowercase`);
  }
  return parseWrittenReference(`${domain}/${remainder}`);
}

/**
 * Reads a reference as it is written, short names not expanded: what stands before the first `/` is the domain if it could be
 * one, so that `team/app` has the domain `team` and `nginx` has none.
 *
 * @example
 * ```ts
 * import { parseWrittenReference } from './image-reference.ts';
 * import assert from 'node:assert/strict';
 *
 * const parsed = parseWrittenReference('team/app:1');
 * assert.ok(parsed.ok);
 * assert.equal(parsed.reference.domain, 'team');
 * ```
 */
export function parseWrittenReference(text: string): ImageReferenceResult {
  const match = REFERENCE.exec(text);
  if (match === null) {
    const lower = REFERENCE.test(text.toLowerCase());
    return wrong(lower ? 'repository name must be lowercase' : INVALID_FORMAT);
  }
  const [, name = '', tag, digest] = match;
  const [, domain = '', path = ''] = NAME.exec(name) ?? [];
  if (path.length > MAX_PATH_LENGTH) {
    return wrong(`repository name must not be more than ${MAX_PATH_LENGTH} characters`);
  }
  const fault = digest === undefined ? undefined : digestFault(digest);
  if (fault !== undefined) return wrong(fault);
  return {
    ok: true,
    reference: {
      domain,
      path,
      repository: repositoryOf(domain, path),
      ...(tag === undefined ? {} : { tag }),
      ...(digest === undefined ? {} : { digest }),
    },
  };
}

/** `[domain, rest]` with the short names of Docker Hub expanded. */
function splitDomain(image: string): readonly [string, string] {
  const slash = image.indexOf('/');
  if (slash < 0) return ['docker.io', `library/${image}`];
  const first = image.slice(0, slash);
  const rest = image.slice(slash + 1);
  const isDomain = first === 'localhost' || /[.:]/.test(first) || first.toLowerCase() !== first;
  const domain = isDomain && first !== 'index.docker.io' ? first : 'docker.io';
  const path = isDomain ? rest : image;
  return [domain, domain === 'docker.io' && !path.includes('/') ? `library/${path}` : path];
}

const DIGEST_LENGTH: Readonly<Record<string, number>> = { sha256: 64, sha384: 96, sha512: 128 };

/**
 * What is wrong with a digest, or undefined.
 *
 * @param digest `sha256:…`, `sha384:…` or `sha512:…`, in lower case
 * @returns the words of go-digest
 * @example
 * ```ts
 * import { digestFault } from './image-reference.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(digestFault(`sha256:${'a'.repeat(64)}`), undefined);
 * assert.equal(digestFault('sha256:../../tags/list'), 'invalid checksum digest length');
 * ```
 */
export function digestFault(digest: string): string | undefined {
  const colon = digest.indexOf(':');
  const algorithm = digest.slice(0, colon);
  const encoded = digest.slice(colon + 1);
  const length = Object.hasOwn(DIGEST_LENGTH, algorithm) ? DIGEST_LENGTH[algorithm] : undefined;
  if (length === undefined) {
    const wellFormed = /^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$/.test(digest);
    return wellFormed ? 'unsupported digest algorithm' : 'invalid checksum digest format';
  }
  if (encoded.length !== length) return 'invalid checksum digest length';
  return /^[a-f0-9]+$/.test(encoded) ? undefined : 'invalid checksum digest format';
}

/** A first part that is no host, such as `a__b.io`, belongs to the path, as the library has it. */
function repositoryOf(domain: string, path: string): string {
  return domain === '' ? path : `${domain}/${path}`;
}

/** The tag that is pulled: as written, `latest` when there is neither tag nor digest, else undefined. */
export function pullTag(reference: ImageReference): string | undefined {
  return reference.tag ?? (reference.digest === undefined ? 'latest' : undefined);
}

/** The reference as text, `latest` not added. */
export function formatImageReference(reference: ImageReference): string {
  const tag = reference.tag === undefined ? '' : `:${reference.tag}`;
  const digest = reference.digest === undefined ? '' : `@${reference.digest}`;
  return `${reference.repository}${tag}${digest}`;
}

function wrong(goText: string): ImageReferenceResult {
  return { ok: false, goText };
}
