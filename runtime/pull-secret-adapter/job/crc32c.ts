/** CRC-32C (Castagnoli), the checksum of Secret Manager payloads. Not in Node's zlib, which has the IEEE polynomial. */

const POLYNOMIAL = 0x82f63b78;

const TABLE: Uint32Array = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ POLYNOMIAL : value >>> 1;
  return value >>> 0;
});

/**
 * @param bytes any length
 * @returns unsigned 32-bit number
 *
 * @example
 * ```ts
 * import { crc32c } from './crc32c.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(crc32c(new TextEncoder().encode('123456789')), 0xe3069283);
 * ```
 */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ (TABLE[(crc ^ byte) & 0xff] ?? 0);
  return (crc ^ 0xffffffff) >>> 0;
}
