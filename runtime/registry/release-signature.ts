/**
 * Whether a release is signed: an "atomic container signature" over its digest, as the Cluster Version Operator looks for them in
 * ConfigMaps and in stores of files.
 *
 * Source of the rule: openshift/library-go `pkg/verify`: the signed content names the digest, says its type, and has an identity.
 */
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { OpenPgpError, type SigningKey, signedMessage } from './openpgp.ts';

export const SIGNATURE_LABEL = 'release.openshift.io/verification-signatures';

export interface SignatureVerdict {
  /** `Unknown`: nothing was given to judge by. */
  readonly state: 'Verified' | 'Rejected' | 'Unknown';
  readonly message: string;
}

/** A signature, and where it was found. */
export interface FoundSignature {
  readonly from: string;
  readonly bytes: Uint8Array;
}

/** Signatures for `digest` in the ConfigMaps among `objects`, under keys such as `sha256-<hex>-1`. */
export function signaturesIn(objects: readonly KubeObject[], digest: string): readonly FoundSignature[] {
  const prefix = digest.replace(':', '-');
  return objects
    .filter(({ kind, metadata }) => kind === 'ConfigMap' && SIGNATURE_LABEL in (metadata.labels ?? {}))
    .flatMap(({ metadata: { namespace, name }, ...object }) =>
      Object.entries((object['binaryData'] ?? {}) as Readonly<Record<string, unknown>>).flatMap(
        ([key, value]): FoundSignature[] =>
          (key === prefix || key.startsWith(`${prefix}-`)) && typeof value === 'string'
            ? [
                {
                  from: `ConfigMap/${namespace === undefined ? '' : `${namespace}/`}${name} ${key}`,
                  bytes: Buffer.from(value, 'base64'),
                },
              ]
            : [],
      ),
    );
}

/** One signature by one of `keys` over this very digest suffices. */
export function judgeSignatures(
  digest: string,
  signatures: readonly FoundSignature[],
  keys: readonly SigningKey[],
): SignatureVerdict {
  if (signatures.length === 0) return { state: 'Unknown', message: `no signature for ${digest} was given` };
  if (keys.length === 0)
    return {
      state: 'Unknown',
      message: `${signatures.length === 1 ? 'a signature is' : `${signatures.length} signatures are`} there, and no key to check ${signatures.length === 1 ? 'it' : 'them'} with: give --signature-key`,
    };
  const judged = signatures.map((signature) => judgeOne(digest, signature, keys));
  const good = judged.find(({ state }) => state === 'Verified');
  return good ?? { state: 'Rejected', message: judged.map(({ message }) => message).join('; ') };
}

function judgeOne(
  digest: string,
  { from, bytes }: FoundSignature,
  keys: readonly SigningKey[],
): SignatureVerdict {
  try {
    const message = signedMessage(bytes);
    const key = keys.find(
      ({ id, key: own }) => (message.by === '' || id === message.by) && message.verify(own),
    );
    if (key === undefined)
      return {
        state: 'Rejected',
        message: `${from} is not signed by a given key (it names ${message.by || 'none'})`,
      };
    const fault = contentFault(message.content, digest);
    if (fault !== undefined) return { state: 'Rejected', message: `${from} ${fault}` };
    return { state: 'Verified', message: `by key ${key.id} (${from})` };
  } catch (error) {
    const reason = error instanceof OpenPgpError ? error.message : 'it cannot be read';
    return { state: 'Rejected', message: `${from} is no signature: ${reason}` };
  }
}

function contentFault(content: Buffer, digest: string): string | undefined {
  const { critical } = JSON.parse(content.toString('utf8')) as {
    critical?: {
      type?: unknown;
      image?: { 'docker-manifest-digest'?: unknown };
      identity?: { 'docker-reference'?: unknown };
    };
  };
  if (critical?.type !== 'atomic container signature') return 'signs something that is no image';
  if (critical.image?.['docker-manifest-digest'] !== digest) return 'signs another image';
  const name = critical.identity?.['docker-reference'];
  return typeof name === 'string' && name !== '' ? undefined : 'names no image';
}
