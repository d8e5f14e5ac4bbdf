/**
 * What the runtime makes of the text of a reference before and after a rule rewrites it.
 *
 * Source of the rule: containers/image `docker/reference` and `sysregistriesv2` (`rewriteReference`).
 */
import {
  formatImageReference,
  MAX_PATH_LENGTH,
  parseImageReference,
} from '../auth-lookup/image-reference.ts';

/** What nearly every place looks like. All that it takes is canonical, so that only the rest needs the whole grammar. */
const PLAIN =
  /^(?!(?:index\.)?docker\.io\/)[a-z0-9]+(?:-+[a-z0-9]+)*(?:\.[a-z0-9]+(?:-+[a-z0-9]+)*)+(?::[0-9]+)?(?:\/[a-z0-9]+(?:[._-][a-z0-9]+)*)+(?::[a-z0-9][a-z0-9.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/;

/**
 * Whether the runtime takes it as it is: a host, a repository in lower case, and `library/` where Docker Hub needs it. Its
 * grammar has no IPv6 addresses.
 */
export function isCanonical(reference: string): boolean {
  if (reference.length <= MAX_PATH_LENGTH && PLAIN.test(reference)) return true;
  if (reference.startsWith('[')) return false;
  const parsed = parseImageReference(reference);
  return parsed.ok && formatImageReference(parsed.reference) === reference;
}

/** In the words of containers/image. */
export function refusalText(reference: string): string {
  const parsed = parseImageReference(reference);
  return `rewriting reference: ${parsed.ok ? 'repository name must be canonical' : parsed.goText}`;
}

export function withoutTagAndDigest(reference: string): string {
  const at = reference.indexOf('@');
  const name = at === -1 ? reference : reference.slice(0, at);
  const colon = name.lastIndexOf(':');
  const slash = name.lastIndexOf('/');
  return slash !== -1 && colon > slash ? name.slice(0, colon) : name;
}

/** `name:tag@digest` is pulled as `name@digest`. */
export function withoutTagBesideDigest(image: string): string {
  const at = image.indexOf('@');
  if (at === -1) return image;
  const colon = image.lastIndexOf(':', at);
  return colon > image.lastIndexOf('/', at) && colon !== -1 ? image.slice(0, colon) + image.slice(at) : image;
}
