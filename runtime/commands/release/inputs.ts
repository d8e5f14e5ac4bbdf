/** What `release` goes by beside mirrors: the pull secret of the cluster that asks, and signatures. */
import { readFile } from 'node:fs/promises';
import { OpenPgpError, type SigningKey, signingKeys } from '../../registry/openpgp.ts';
import {
  type FoundSignature,
  judgeSignatures,
  SIGNATURE_LABEL,
  type SignatureVerdict,
  signaturesIn,
} from '../../registry/release-signature.ts';
import { pullSecretPlace } from '../../registry-overrides/release-check.ts';
import type { AuthSource } from '../../rules/auth-lookup/kubelet.ts';
import { pullSecretSource } from '../../rules/docker-config/secret-text.ts';
import { UsageError } from '../../rules/errors.ts';
import type { KubeObject, SecretObject } from '../../rules/kubernetes/object.ts';
import type { NextKinds, SourceKind } from '../object-source.ts';

/** Kinds beside the mirror sets; what a HostedCluster names is read when it is known. */
export const RELEASE_KINDS: readonly SourceKind[] = [
  { apiVersion: 'v1', kind: 'Secret', ...pullSecretPlace(undefined) },
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    namespace: 'openshift-config-managed',
    labelSelector: SIGNATURE_LABEL,
  },
];

/** Pull secrets that HostedClusters name; `wanted` is the one that is asked about, if one is. */
export function hostedSecrets(wanted: string | undefined): NextKinds {
  return (store) =>
    store
      .list({ apiVersion: 'hypershift.openshift.io/v1beta1', kind: 'HostedCluster' })
      .filter(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}` === wanted)
      .map((hosted) => ({ apiVersion: 'v1', kind: 'Secret', ...pullSecretPlace(hosted) }));
}

/** The cluster's own pull secret among `objects`; undefined where it is not there, or is none. */
export function ownPullSecret(
  objects: readonly KubeObject[],
  hosted: KubeObject | undefined,
): AuthSource | undefined {
  const { namespace, name } = pullSecretPlace(hosted);
  const secret = objects.find(
    ({ kind, metadata }) => kind === 'Secret' && metadata.name === name && metadata.namespace === namespace,
  );
  return secret && pullSecretSource(secret as SecretObject);
}

export interface SignatureFlags {
  readonly signature?: readonly string[] | undefined;
  readonly 'signature-key'?: readonly string[] | undefined;
}

/** Reads what is given to judge signatures by; what comes back judges one digest. @throws UsageError */
export async function signatureJudge(
  flags: SignatureFlags,
  objects: readonly KubeObject[],
): Promise<(digest: string) => SignatureVerdict> {
  const files = await Promise.all(
    (flags.signature ?? []).map(
      async (path): Promise<FoundSignature> => ({ from: path, bytes: await read(path) }),
    ),
  );
  const keys = (await Promise.all((flags['signature-key'] ?? []).map(keysIn))).flat();
  return (digest) => judgeSignatures(digest, [...files, ...signaturesIn(objects, digest)], keys);
}

async function keysIn(path: string): Promise<readonly SigningKey[]> {
  try {
    const keys = signingKeys(await read(path));
    if (keys.length > 0) return keys;
  } catch (error) {
    if (!(error instanceof OpenPgpError)) throw error;
    throw new UsageError(`Cannot read "${path}": ${error.message}, expected a public key of OpenPGP`);
  }
  throw new UsageError(`Cannot read "${path}": it has no RSA key, expected a public key of OpenPGP`);
}

async function read(path: string): Promise<Uint8Array> {
  return readFile(path).catch(() => {
    throw new UsageError(`Cannot read "${path}": expected a readable file`);
  });
}
