/** What a person should know about the name of an image, as it is written in a pod. */

/**
 * Whether an image names no registry: `nginx`, `team/app:1`.
 *
 * @example
 * ```ts
 * import { isShortName } from './image-name.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(['nginx', 'team/app:1', 'docker.io/nginx', 'localhost/a'].map(isShortName), [true, true, false, false]);
 * ```
 */
export function isShortName(image: string): boolean {
  const slash = image.indexOf('/');
  if (slash < 0) return true;
  const first = image.slice(0, slash);
  return first !== 'localhost' && !/[.:]/.test(first) && first.toLowerCase() === first;
}

/**
 * What is probably wrong with an image that cannot be read; undefined when nothing is known.
 *
 * @example
 * ```ts
 * import { imageHint } from './image-name.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(imageHint('docker://quay.io/a/b'), 'an image has no scheme: write quay.io/a/b');
 * assert.equal(imageHint('quay.io/a/b:'), 'the tag after ":" is missing');
 * ```
 */
export function imageHint(image: string): string | undefined {
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(image)?.[0];
  if (scheme !== undefined) return `an image has no scheme: write ${image.slice(scheme.length)}`;
  const digest = image.includes('@') ? image.slice(image.indexOf('@') + 1) : undefined;
  if (digest !== undefined && !/^[a-z0-9]+:[0-9a-f]{32,}$/i.test(digest))
    return 'the digest is cut off or mistyped: expected sha256: and 64 digits of 0-9 and a-f';
  return HINTS.find(([pattern]) => pattern.test(image))?.[1];
}

const HINTS: readonly (readonly [RegExp, string])[] = [
  [/^$/, 'it is empty'],
  [/\s/, 'there is a blank in it'],
  [
    /[^\x20-\x7e]/,
    'only letters of ASCII are allowed; a host of other letters is written in punycode (xn--...)',
  ],
  [/:$/, 'the tag after ":" is missing'],
  [/\/\//, 'a part of the path between "/" is empty'],
  [/\/$/, 'the name ends with "/"'],
  [/^[^/:]*:[0-9]*[^/0-9][^/]*\//, 'the port is no number'],
  [/:[^/:]{129,}$/, 'the tag is longer than 128 characters'],
];
