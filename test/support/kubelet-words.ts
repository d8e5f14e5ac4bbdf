/** The kubelet's words for what a look-up found: the hash of a credential in its records of pulled images, and errors. */
import { createHash } from 'node:crypto';
import type { KubeletCredential } from '../../runtime/core/docker-config/pull-secret.ts';
import { encodeGoText } from '../../runtime/core/go/json.ts';
import { goQuote, runesOf, toByteText } from '../../runtime/core/go/text.ts';
import { reveal } from '../../runtime/core/redacted.ts';

/**
 * The hash that the kubelet notes in an image pull record. Two Secrets with the same user, password and email share it, so
 * that a pod may use an image that another namespace's copy of the credential has pulled.
 *
 * Source of the rule: hashAuthConfig of k8s.io/kubernetes 1.36: SHA-256 of the JSON of the credential, empty fields left out.
 */
export function kubeletCredentialHash(credential: KubeletCredential): string {
  const [username, password] = pair(credential);
  const fields = [
    ['username', username],
    ['password', password],
    ['email', toByteText(credential.email)],
  ] as const;
  const written = fields
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `"${name}":${encode(value)}`);
  return createHash('sha256')
    .update(`{${written.join(',')}}`)
    .digest('hex');
}

/** User name and password as byte texts. */
function pair({ username, password, notUtf8 }: KubeletCredential): readonly [string, string] {
  if (notUtf8 === undefined) return [toByteText(username), toByteText(reveal(password))];
  const bytes = Buffer.from(reveal(notUtf8)).toString('latin1');
  const colon = bytes.indexOf(':');
  return [bytes.slice(0, colon), bytes.slice(colon + 1)];
}

/** A text in quotes; Go writes a byte that is no UTF-8 as an escape, unlike a real U+FFFD. */
function encode(bytes: string): string {
  const parts = runesOf(bytes).map(({ text }) =>
    text === undefined ? '\\ufffd' : encodeGoText(text).slice(1, -1),
  );
  return `"${parts.join('')}"`;
}

/** What the kubelet says about an image that does not parse. */
export function kubeletImageError(image: string, goText: string): string {
  return `couldn't parse image name ${goQuote(image)}: ${goText}`;
}
