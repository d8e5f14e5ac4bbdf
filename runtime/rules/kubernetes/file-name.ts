/** Names of objects as parts of a path, of files and of the API: in one place, which refuses what would lead elsewhere. */
import { PullwrightError } from '../errors.ts';

/**
 * One part of a path, made of a namespace or a kind and a name that come from outside. The API server takes no such name, but a
 * dump, an event or a token may hold anything.
 *
 * @param what for the message: `namespace`, `name`
 * @returns `text` as it is; a colon, which roles have, becomes `_`
 * @throws PullwrightError `UnsafeName` for what is no name of an object: empty, over 253 characters, `.`, `..`, with a slash, a
 *   control character or anything else but letters, digits, `.`, `-`, `_` and `:`
 *
 * @example
 * ```ts
 * import { pathPart } from './file-name.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(pathPart('name', 'system:node-reader'), 'system_node-reader');
 * assert.throws(() => pathPart('namespace', '../../etc'), /namespace "..\/..\/etc" cannot be part of a file's name/);
 * ```
 */
export function pathPart(what: string, text: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._:-]{0,252}$/.test(text)) return text.replaceAll(':', '_');
  throw new PullwrightError(
    `${what} "${text.slice(0, 100)}" cannot be part of a file's name: expected at most 253 letters, digits, ".", "-" and "_", and a letter or digit first`,
    {
      code: 'UnsafeName',
      disposition: 'terminal',
      hint: 'Correct the name in the document that it comes from',
    },
  );
}

/**
 * Whether an object may have this name at all: whatever its kind, the API server takes none that is a step of a path or has one in it.
 * Names that one object says of another (a pod of its Secrets) are not judged there, and hold anything.
 *
 * Source of the rule: `IsValidPathSegmentName` of apimachinery, and a name has to be there, since without it the path is that of all.
 *
 * @example
 * ```ts
 * import { isPathSegment } from './file-name.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(isPathSegment('system:node-reader'), true);
 * for (const name of ['', '.', '..', 'a/b', 'a%2fb']) assert.equal(isPathSegment(name), false);
 * ```
 */
export function isPathSegment(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !name.includes('/') && !name.includes('%');
}
