/**
 * The hash that HyperShift's operator puts on the pods of its DaemonSet, so that they roll when the pull secret changes.
 *
 * Source of the rule: FNV-1a, 32 bit, over the text that Go prints for a byte slice (`[123 34 97]`), as 8 hexadecimal digits.
 *
 * @example
 * ```ts
 * import { configHash } from './config-hash.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(configHash(new Uint8Array()), '741638a5');
 * ```
 */
export function configHash(content: Uint8Array): string {
  let hash = 0x811c9dc5;
  for (const character of `[${content.join(' ')}]`) {
    hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193);
  }
  return (hash >>> 0).toString(16).padStart(8, '0');
}
