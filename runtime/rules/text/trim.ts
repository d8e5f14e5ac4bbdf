/**
 * Characters taken off the ends of a text, in time linear in its length.
 *
 * A pattern such as `/\/+$/` looks harmless and is quadratic: it tries anew from every slash of a long run that does not stand
 * at the end.
 */

/**
 * `text` without the characters of `chars` at its end.
 *
 * @example
 * ```ts
 * import { trimEndOf } from './trim.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(trimEndOf('https://quay.io//', '/'), 'https://quay.io');
 * assert.equal(trimEndOf('////', '/'), '');
 * ```
 */
export function trimEndOf(text: string, chars: string): string {
  let end = text.length;
  while (end > 0 && chars.includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

/**
 * `text` without the characters of `chars` at its start.
 *
 * @example
 * ```ts
 * import { trimStartOf } from './trim.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(trimStartOf('""a"', '"'), 'a"');
 * ```
 */
export function trimStartOf(text: string, chars: string): string {
  let start = 0;
  while (start < text.length && chars.includes(text.charAt(start))) start++;
  return text.slice(start);
}

/**
 * `text` up to the first of `chars`.
 *
 * @example
 * ```ts
 * import { upToAny } from './trim.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(upToAny('name\0\0\0', '\0'), 'name');
 * ```
 */
export function upToAny(text: string, chars: string): string {
  for (let at = 0; at < text.length; at++) if (chars.includes(text.charAt(at))) return text.slice(0, at);
  return text;
}
