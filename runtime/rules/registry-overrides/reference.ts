/**
 * An image reference split as the existing system splits it: registry, first path element, the rest, tag and digest. Only the
 * text formats need it; everything else uses whole repositories.
 *
 * Source of the rule: library-go `reference.Parse` over the grammar of distribution/reference.
 */

export interface SplitReference {
  /** Host with port; empty when the first element has neither "." nor ":" and is not "localhost". */
  readonly registry: string;
  /** First path element, empty when the path has one element only. */
  readonly namespace: string;
  readonly name: string;
  readonly tag: string;
  /** `algorithm:hex`, or empty. */
  readonly digest: string;
}

const PART = '[a-z0-9]+(?:(?:\\.|_{1,2}|-+)[a-z0-9]+)*';
const LABEL = '[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?';
const HOST = `${LABEL}(?:\\.${LABEL})*(?::[0-9]+)?`;
const REFERENCE: RegExp = new RegExp(
  `^((?:${HOST}/)?${PART}(?:/${PART})*)(?::([\\w][\\w.-]{0,127}))?(?:@([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?$`,
);
const DIGEST_LENGTHS: Readonly<Record<string, number>> = { sha256: 64, sha384: 96, sha512: 128 };
const INVALID = 'invalid reference format';

/**
 * Gives the parts, or the reason that the existing system gives.
 *
 * @example
 * ```ts
 * import { splitReference } from './reference.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(splitReference('quay.io/org/a/b:1'), { registry: 'quay.io', namespace: 'org', name: 'a/b', tag: '1', digest: '' });
 * assert.deepEqual(splitReference('https://quay.io/x'), { error: 'invalid reference format' });
 * ```
 */
export function splitReference(text: string): SplitReference | { readonly error: string } {
  const match = REFERENCE.exec(text);
  if (match === null) return { error: reasonOf(text) };
  const [, whole = '', tag = '', digest = ''] = match;
  if (whole.length > 255) return { error: 'repository name must not be more than 255 characters' };
  const digestError = digest === '' ? undefined : digestProblem(digest);
  if (digestError !== undefined) return { error: digestError };
  return { ...splitPath(whole), tag, digest };
}

function splitPath(whole: string): Pick<SplitReference, 'registry' | 'namespace' | 'name'> {
  const slash = whole.indexOf('/');
  const first = whole.slice(0, Math.max(0, slash));
  const registry = /[.:]/.test(first) || first === 'localhost' ? first : '';
  const path = registry === '' ? whole : whole.slice(slash + 1);
  const cut = path.indexOf('/');
  return { registry, namespace: path.slice(0, Math.max(0, cut)), name: path.slice(cut + 1) };
}

/** What is wrong with `algorithm:hex`; undefined when nothing is. */
export function digestProblem(digest: string): string | undefined {
  const [algorithm = '', hex = ''] = digest.split(':');
  const length = Object.hasOwn(DIGEST_LENGTHS, algorithm) ? DIGEST_LENGTHS[algorithm] : undefined;
  if (length === undefined) return 'unsupported digest algorithm';
  if (hex.length !== length) return 'invalid checksum digest length';
  return /^[0-9a-f]+$/.test(hex) ? undefined : 'invalid checksum digest format';
}

function reasonOf(text: string): string {
  if (text === '') return 'repository name must have at least one component';
  return REFERENCE.test(text.toLowerCase()) ? 'repository name must be lowercase' : INVALID;
}
