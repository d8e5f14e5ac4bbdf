/** Bytes are what their digest says, or they are not used. */
import { createHash } from 'node:crypto';
import { HttpError } from '../http/http-error.ts';
import { digestFault } from '../rules/auth-lookup/image-reference.ts';
import { RegistryError } from './registry-error.ts';
import type { Response } from './transport.ts';

/** Reads a body of at most `limit` bytes. @throws RegistryError `Damaged` */
export async function readLimited(response: Response, limit: number): Promise<Uint8Array> {
  try {
    return await response.bytes(limit);
  } catch (error) {
    const large = error instanceof HttpError && error.failure === 'AnswerTooLarge';
    throw new RegistryError(
      'Damaged',
      large ? `the answer is longer than ${limit} bytes` : 'the answer breaks off before its end',
    );
  }
}

/**
 * A digest as part of a path: a registry's own documents name the next ones, and whatever else they say leads elsewhere on its host.
 *
 * @throws RegistryError `Damaged` when it is none
 */
export function digestInPath(digest: string): string {
  const fault = digestFault(digest);
  if (fault === undefined) return digest;
  throw new RegistryError(
    'Damaged',
    `${JSON.stringify(digest.slice(0, 80))} is no digest (${fault}), expected sha256, sha384 or sha512 with all digits in lower case`,
  );
}

/** The digest of `bytes`; throws `Damaged` when it is not `wanted`. */
export function checkedBytes(bytes: Uint8Array, wanted: string | undefined): string {
  const algorithm = wanted === undefined ? 'sha256' : algorithmOf(wanted);
  const digest = `${algorithm}:${createHash(algorithm).update(bytes).digest('hex')}`;
  if (wanted === undefined || digest === wanted) return digest;
  throw new RegistryError('Damaged', `${bytes.length} bytes have the digest ${digest}, expected ${wanted}`);
}

function algorithmOf(digest: string): 'sha256' | 'sha384' | 'sha512' {
  const [algorithm = ''] = digest.split(':');
  if (algorithm === 'sha256' || algorithm === 'sha384' || algorithm === 'sha512') return algorithm;
  throw new RegistryError('Damaged', `"${algorithm.slice(0, 20)}" is no digest that we can check`);
}
