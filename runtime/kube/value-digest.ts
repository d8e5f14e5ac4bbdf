/** Values of Secrets that are known by their digest alone, so that they need no memory. No base64 has a colon. */
import { hash } from 'node:crypto';
import { type Redacted, redact, reveal, sameSecret } from '../rules/redacted.ts';

const PREFIX = 'sha256:';

/** What stands for a value with this digest (SHA-256, hexadecimal); for one that is not known without. */
export function digestText(digest: string): string {
  return PREFIX + digest;
}

/**
 * What is kept of a value that is only ever compared.
 *
 * @example
 * ```ts
 * import { digestOfValue, sameValue } from './value-digest.ts';
 * import { redact } from '../rules/redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * const value = redact('aHVudGVyMg==');
 * assert.ok(sameValue(value, digestOfValue(value)));
 * assert.ok(!sameValue(redact('aHVudGVyMw=='), digestOfValue(value)));
 * ```
 */
export function digestOfValue(value: Redacted<string>): Redacted<string> {
  if (isDigest(value)) return value;
  const made = digests.get(value) ?? redact(digestText(hash('sha256', reveal(value), 'hex')));
  digests.set(value, made);
  return made;
}

/** One value is in thousands of copies, and each is compared with it. */
const digests = new WeakMap<Redacted<string>, Redacted<string>>();

/** Whether it is no value but what is left of one: there is nothing to read in it. */
export function isDigest(value: Redacted<string>): boolean {
  return reveal(value).startsWith(PREFIX);
}

/** Whether two values are the same, either of which may be known by its digest alone. */
export function sameValue(a: Redacted<string>, b: Redacted<string>): boolean {
  if (isDigest(a) === isDigest(b)) return sameSecret(a, b);
  return sameSecret(digestOfValue(a), digestOfValue(b));
}
