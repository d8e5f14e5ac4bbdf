/**
 * When a credential expires, as far as the credential itself shows it. No registry is contacted.
 *
 * Source of the rule: RFC 7519 (`exp` of a JSON Web Token: tokens of service accounts, refresh tokens of Azure's registry);
 * Amazon ECR's authorization token (base64 of a JSON object with `expiration`, in seconds); Google's access tokens, which are
 * opaque and valid for an hour. Robot accounts and service account keys do not expire.
 */

import { isRecord, jsonOf, recordOf } from '../record.ts';
import { type Redacted, reveal } from '../redacted.ts';

export interface CredentialExpiry {
  /** Type of the credential, by its form alone. */
  readonly kind: 'jwt' | 'ecr-token' | 'google-access-token' | 'lasting';
  /** RFC 3339, whole seconds; absent if the credential does not show it. */
  readonly expiresAt?: string;
}

/** The credential to examine. */
export interface ExpiringCredential {
  readonly username: string;
  readonly password: Redacted<string>;
  readonly identityToken?: Redacted<string>;
}

/** Reads the expiry of a credential. Never throws. An identity token takes precedence, because the client sends it. */
export function credentialExpiry(credential: ExpiringCredential): CredentialExpiry {
  const { username, password, identityToken } = credential;
  const identity = identityToken === undefined ? '' : reveal(identityToken);
  const secret = identity === '' ? reveal(password) : identity;
  const claims = tokenClaims(secret);
  if (claims !== undefined) return { kind: 'jwt', ...ending(claims['exp']) };
  if (username === 'AWS') {
    const { expiration } = recordOf(jsonOf(decoded(secret, 'base64')));
    if (expiration !== undefined) return { kind: 'ecr-token', ...ending(expiration) };
  }
  const google = username === 'oauth2accesstoken' || secret.startsWith('ya29.');
  return { kind: google ? 'google-access-token' : 'lasting' };
}

/**
 * Why a registry will reject a credential, if the credential itself shows it; completes a sentence. It has expired, it has no
 * password, or its encoding included a line feed or a blank, which the kubelet and containers/image keep.
 *
 * @param now time of use; without it, expiry is not checked
 */
export function credentialDoubt(credential: ExpiringCredential, now?: Date): string | undefined {
  const { expiresAt } = credentialExpiry(credential);
  if (expiresAt !== undefined && now !== undefined && Date.parse(expiresAt) <= now.getTime())
    return `expired at ${expiresAt}: renew it`;
  const texts = [credential.username, reveal(credential.password)];
  if (texts[0] !== '' && texts[1] === '')
    return 'has a user name without a password, which registries reject; the kubelet reads no "identitytoken"';
  const ends = texts.map((text) => `${text.slice(0, 1)}${text.slice(-1)}`).join('');
  if (/[\r\n]/.test(ends))
    return 'has a line feed at an end of its user name or password, which registries reject: encode it without one, for example with printf %s';
  if (/\s/.test(ends))
    return 'has a blank at the start or end of its user name or password, which registries reject';
  return undefined;
}

/** The claims of a JSON Web Token; undefined for any other text. */
function tokenClaims(text: string): Readonly<Record<string, unknown>> | undefined {
  const parts = text.split('.');
  if (parts.length !== 3 || !parts.every((part) => /^[\w-]*$/.test(part))) return undefined;
  const [header, claims] = parts.map((part) => jsonOf(decoded(part, 'base64url')));
  return isRecord(claims) && recordOf(header)['alg'] !== undefined ? claims : undefined;
}

/** Longer than any token that a registry accepts in a header. */
const MAX_TOKEN = 64 * 1024;

function decoded(text: string, encoding: 'base64' | 'base64url'): string {
  return text.length > MAX_TOKEN ? '' : Buffer.from(text, encoding).toString('utf8');
}

/** The last second that RFC 3339 can represent. */
const LAST_SECOND = 253_402_300_799;

function ending(seconds: unknown): { readonly expiresAt?: string } {
  if (typeof seconds !== 'number' || !(seconds > 0 && seconds <= LAST_SECOND)) return {};
  return { expiresAt: `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z` };
}
