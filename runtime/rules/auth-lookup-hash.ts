/** How the kubelet recognises a credential in its records of pulled images. */
import { createHash } from 'node:crypto';
import type { KubeletCredential } from './docker-config-go.ts';
import { encodeGoText } from './go-json-encode.ts';
import { reveal } from './redacted.ts';

/**
 * The hash that the kubelet notes in an image pull record. Two Secrets with the same user, password and email share it, so
 * that a pod may use an image that another namespace's copy of the credential has pulled.
 *
 * Source of the rule: hashAuthConfig of k8s.io/kubernetes 1.36: SHA-256 of the JSON of the credential, empty fields left out.
 *
 * @example
 * ```ts
 * import { kubeletCredentialHash } from './auth-lookup-hash.ts';
 * import { redact } from './redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(kubeletCredentialHash({ username: '', password: redact(''), email: '' }).slice(0, 8), '44136fa3');
 * ```
 */
export function kubeletCredentialHash(credential: KubeletCredential): string {
  const fields: readonly (readonly [string, string])[] = [
    ['username', credential.username],
    ['password', reveal(credential.password)],
    ['email', credential.email],
  ];
  const written = fields
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `"${name}":${encodeGoText(value)}`);
  return createHash('sha256')
    .update(`{${written.join(',')}}`)
    .digest('hex');
}
