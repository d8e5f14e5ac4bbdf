/**
 * SHA-256 of a short text, by whatever is loaded already: in the compiled executable the runtime's own hasher, because loading
 * `node:crypto` takes a tenth of a whole credential provider run.
 */

interface Hasher {
  update(text: string): Hasher;
  digest(encoding: 'hex'): string;
}

interface BunGlobal {
  readonly CryptoHasher: new (algorithm: 'sha256') => Hasher;
}

/**
 * Lower-case hexadecimal digest of the UTF-8 bytes of `text`.
 *
 * @example
 * ```ts
 * import { sha256Hex } from './sha256.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(sha256Hex('docker.io/library/nginx'), '7e59ad64326bc321517fb6fc6586de5ee149178394d9edfa2a877176cdf6fad5');
 * ```
 */
export function sha256Hex(text: string): string {
  const bun = (globalThis as { Bun?: BunGlobal }).Bun;
  const hasher: Hasher = bun === undefined ? nodeHasher() : new bun.CryptoHasher('sha256');
  return hasher.update(text).digest('hex');
}

function nodeHasher(): Hasher {
  return process.getBuiltinModule('node:crypto').createHash('sha256');
}
