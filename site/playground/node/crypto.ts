/** Digests in place of `node:crypto`: browsers have them only as promises, and rules do not wait. */
import { hmac } from '@noble/hashes/hmac.js';
import { sha1 } from '@noble/hashes/legacy.js';
import { sha256, sha512 } from '@noble/hashes/sha2.js';
import { Buffer } from 'buffer';

const HASHES = { sha1, sha256, sha512 } as const;
type Algorithm = keyof typeof HASHES;

interface Digest {
  update(data: string | Uint8Array): Digest;
  digest(encoding: 'hex' | 'base64'): string;
  digest(): Buffer;
}

function digestOf(hash: { update(data: Uint8Array): unknown; digest(): Uint8Array }): Digest {
  const made: Digest = {
    update: (data) => {
      hash.update(typeof data === 'string' ? new TextEncoder().encode(data) : Uint8Array.from(data));
      return made;
    },
    digest: ((encoding?: 'hex' | 'base64') => {
      const bytes = Buffer.from(hash.digest());
      return encoding === undefined ? bytes : bytes.toString(encoding);
    }) as Digest['digest'],
  };
  return made;
}

export function createHash(algorithm: string): Digest {
  return digestOf(HASHES[algorithm as Algorithm].create());
}

export function createHmac(algorithm: string, key: string | Uint8Array): Digest {
  const bytes = typeof key === 'string' ? new TextEncoder().encode(key) : Uint8Array.from(key);
  return digestOf(hmac.create(HASHES[algorithm as Algorithm], bytes));
}

export function randomBytes(length: number): Buffer {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(length)));
}

export function randomUUID(): string {
  return crypto.randomUUID();
}

export function hash(
  algorithm: string,
  data: string | Uint8Array,
  encoding: 'hex' | 'base64' = 'hex',
): string {
  return createHash(algorithm).update(data).digest(encoding);
}
