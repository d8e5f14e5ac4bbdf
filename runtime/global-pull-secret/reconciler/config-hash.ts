/**
 * The value of the label `hypershift.openshift.io/globalps-config-hash` of existing clusters.
 *
 * Source of the rule: HyperShift's `globalps` controller: FNV-1a, 32 bits, over the text that Go's `%v` makes of the bytes
 * (`[123 34 97]`), as eight hexadecimal digits.
 */
import { type Redacted, reveal } from '../../rules/redacted.ts';

/**
 * Hashes the content of a pull secret.
 *
 * @example
 * ```ts
 * import { configHash } from './config-hash.ts';
 * import { redact } from '../../rules/redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(configHash(redact('')), '741638a5');
 * ```
 */
export function configHash(content: Redacted<string>): string {
  const text = `[${Buffer.from(reveal(content), 'utf8').join(' ')}]`;
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0).toString(16).padStart(8, '0');
}
