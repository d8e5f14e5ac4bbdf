/** The kubelet's words for what a look-up found: the hash of a credential in its records of pulled images, and errors. */
import { createHash } from 'node:crypto';
import type { KubeletCredential } from '../../runtime/core/docker-config/pull-secret.ts';
import { encodeGoText } from '../../runtime/core/go/json.ts';
import { goQuote } from '../../runtime/core/go/text.ts';
import { reveal } from '../../runtime/core/redacted.ts';

/**
 * The hash that the kubelet notes in an image pull record. Two Secrets with the same user, password and email share it, so
 * that a pod may use an image that another namespace's copy of the credential has pulled.
 *
 * Source of the rule: hashAuthConfig of k8s.io/kubernetes 1.36: SHA-256 of the JSON of the credential, empty fields left out.
 */
export function kubeletCredentialHash(credential: KubeletCredential): string {
  const fields = [
    ['username', credential.username],
    ['password', reveal(credential.password)],
    ['email', credential.email],
  ] as const;
  const written = fields
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `"${name}":${encode(value)}`);
  return createHash('sha256')
    .update(`{${written.join(',')}}`)
    .digest('hex');
}

/** A quoted text; Go escapes U+FFFD, which replaces a byte that is not UTF-8. */
function encode(text: string): string {
  return encodeGoText(text).replaceAll('\ufffd', '\\ufffd');
}

/** Error of the kubelet for an image that does not parse. */
export function kubeletImageError(image: string, goText: string): string {
  return `couldn't parse image name ${goQuote(image)}: ${goText}`;
}
