/**
 * Image references as the kubelet, CRI-O and containerd read them.
 *
 * Source of the rule: github.com/distribution/reference v0.6.0 (ParseNormalizedNamed, ParseDockerRef), go-digest v1.0.0, and
 * ParseImageName of the kubelet 1.36, which adds the tag `latest` when there is neither tag nor digest.
 */

import { defined } from './record.ts';
import { withoutUserInfo } from './text.ts';

/** A full reference: `docker.io/library/nginx:1.27`. */
export interface ImageReference {
  /** Registry host with port, in the case as written: `quay.io`, `[::1]:5000`, `docker.io`. */
  readonly domain: string;
  /** Path below the registry: `library/nginx`. */
  readonly path: string;
  /** `domain/path`. */
  readonly repository: string;
  /** As written; absent if there is none. See {@link pullTag} for the default. */
  readonly tag?: string;
  /** `sha256:…` (or sha384, sha512). */
  readonly digest?: string;
}

export type ImageReferenceResult =
  | { readonly ok: true; readonly reference: ImageReference }
  | {
      readonly ok: false;
      /** Error text of the Go library. */
      readonly goText: string;
    };

const DOMAIN_COMPONENT = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])';
const HOST = `(?:${DOMAIN_COMPONENT}(?:\\.${DOMAIN_COMPONENT})*|\\[(?:[a-fA-F0-9:]+)\\])`;
const DOMAIN = `${HOST}(?::[0-9]+)?`;
const PATH_COMPONENT = '[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*';
const PATH = `${PATH_COMPONENT}(?:/${PATH_COMPONENT})*`;
const TAG = '[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}';
const DIGEST = '[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}';
const REFERENCE = new RegExp(`^(?:(${DOMAIN})/)?(${PATH})(?::(${TAG}))?(?:@(${DIGEST}))?$`);

/** Longest path, as the library counts it. */
export const MAX_PATH_LENGTH = 255;

const INVALID_FORMAT = 'invalid reference format';

/**
 * Parses an image as written in a pod: `nginx`, `quay.io/team/app:1`, `r.io/a@sha256:…`. Never throws.
 *
 * @param image value of `spec.containers[].image`
 * @returns the full reference, or the error in the wording of the Go library
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
 * Parses a reference as written, without expanding short names. The part before the first `/` is the domain if it is a valid
 * one: `team/app` has the domain `team`, `nginx` has none.
 */
export function parseWrittenReference(text: string): ImageReferenceResult {
  const match = REFERENCE.exec(text);
  if (match === null) {
    const lower = REFERENCE.test(text.toLowerCase());
    return wrong(lower ? 'repository name must be lowercase' : INVALID_FORMAT);
  }
  const [, domain = '', path = '', tag, digest] = match;
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
      repository: domain === '' ? path : `${domain}/${path}`,
      ...defined({ tag, digest }),
    },
  };
}

/** `[domain, rest]` with the short names of Docker Hub expanded. */
function splitDomain(image: string): readonly [string, string] {
  const isShort = isShortName(image);
  const slash = image.indexOf('/');
  const first = image.slice(0, slash);
  const domain = isShort || first === 'index.docker.io' ? 'docker.io' : first;
  const path = isShort ? image : image.slice(slash + 1);
  return [domain, domain === 'docker.io' && !path.includes('/') ? `library/${path}` : path];
}

const DIGEST_LENGTH: Readonly<Record<string, number>> = { sha256: 64, sha384: 96, sha512: 128 };

/**
 * Validates a digest.
 *
 * @param digest `sha256:…`, `sha384:…` or `sha512:…`, in lower case
 * @returns the error text of go-digest, or undefined
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

/** The tag that is pulled: as written, `latest` if there is neither tag nor digest, otherwise undefined. */
export function pullTag(reference: ImageReference): string | undefined {
  return reference.tag ?? (reference.digest === undefined ? 'latest' : undefined);
}

/** Formats a reference, without adding `latest`. */
export function formatImageReference(reference: ImageReference): string {
  const tag = reference.tag === undefined ? '' : `:${reference.tag}`;
  const digest = reference.digest === undefined ? '' : `@${reference.digest}`;
  return `${reference.repository}${tag}${digest}`;
}

function wrong(goText: string): ImageReferenceResult {
  return { ok: false, goText };
}

// Hints for users about the image name in a pod.

/** Whether an image has no registry: `nginx`, `team/app:1`. */
export function isShortName(image: string): boolean {
  const slash = image.indexOf('/');
  if (slash < 0) return true;
  const first = image.slice(0, slash);
  return first !== 'localhost' && !/[.:]/.test(first) && first.toLowerCase() === first;
}

/** The probable fault of an image that cannot be parsed; undefined if unknown. */
export function imageHint(image: string): string | undefined {
  const plain = withoutUserInfo(image)
    .replace(/^[a-z][a-z0-9+.-]*:\/\//i, '')
    .trim();
  if (plain !== image.trim() && (image.includes('://') || plain.includes('/')))
    return `an image must not have a scheme, user name or password: write "${plain}"`;
  const digest = image.includes('@') ? image.slice(image.indexOf('@') + 1) : undefined;
  if (digest !== undefined && !/^[a-z0-9]+:[0-9a-f]{32,}$/i.test(digest))
    return 'the digest is cut off or mistyped: expected sha256: and 64 digits of 0-9 and a-f';
  return HINTS.find(([pattern]) => pattern.test(image))?.[1];
}

const HINTS: readonly (readonly [RegExp, string])[] = [
  [/^$/, 'it is empty'],
  [/\s/, 'it contains a blank'],
  [/[^\x20-\x7e]/, 'only ASCII characters are allowed; write other hosts in punycode (xn--...)'],
  [/:$/, 'the tag after ":" is missing'],
  [/\/\//, 'a part of the path between "/" is empty'],
  [/\/$/, 'the name ends with "/"'],
  [/^[^/:]*:[0-9]*[^/0-9][^/]*\//, 'the port is not a number'],
  [/:[^/:]{129,}$/, 'the tag is longer than 128 characters'],
];
