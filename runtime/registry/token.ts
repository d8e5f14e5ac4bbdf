/** Tokens of the distribution token specification: which realms get the credential, and how long a token is used. */
import { createHash } from 'node:crypto';
import { jsonOf, recordOf } from '../core/record.ts';
import { type Redacted, redact, reveal } from '../core/redacted.ts';
import type { AddressPolicy } from '../http/addresses.ts';
import {
  RegistryError,
  type RegistryTransport,
  type Response,
  readLimited,
  retryAfterSeconds,
} from './transport.ts';

/** A credential in the forms that registries accept. */
export type RegistryCredentials = Readonly<ReturnType<typeof credentialsOf>>;

/** Creates a credential from a user and a password, or from an identity token. */
export function credentialsOf(input: {
  readonly username: string;
  readonly password: Redacted<string>;
  readonly identityToken?: Redacted<string>;
}) {
  const basic = Buffer.from(`${input.username}:${reveal(input.password)}`).toString('base64');
  const identity = input.identityToken === undefined ? '' : reveal(input.identityToken);
  const fingerprint = createHash('sha256').update(`${basic}\n${identity}`).digest('hex').slice(0, 16);
  return {
    /** Base64 of `user:password`. */
    basic: redact(basic),
    /** Refresh token (`identitytoken`), preferred to the password. */
    ...(identity === '' ? {} : { identityToken: redact(identity) }),
    /** Identifies the credential without revealing it. */
    fingerprint,
  };
}

export interface TokenRequest {
  readonly challenge: Extract<Challenge, { scheme: 'bearer' }>;
  /** Registry whose challenge contains the realm. */
  readonly domain: string;
  readonly scope: string;
  readonly credential: RegistryCredentials | undefined;
  /** Who chose the registry. */
  readonly chosenBy: AddressPolicy['chosenBy'];
  readonly signal: AbortSignal;
}

const MAX_TOKEN = 64 * 1024;

/**
 * Requests a token from the realm. The realm gets the credential only over TLS (or when it is the plain registry itself), and its
 * redirects are not followed.
 *
 * @throws RegistryError
 */
export async function fetchToken(transport: RegistryTransport, request: TokenRequest) {
  const url = realmOf(request.challenge.realm, request.domain, transport);
  const response = await transport.send({
    ...formOf(url, request),
    signal: request.signal,
    chosenBy: request.chosenBy,
    repeatable: true,
  });
  if (response.status === 200) return readToken(response, request.domain);
  response.discard();
  const wanted = request.credential === undefined ? 'an anonymous token' : 'a token';
  const text = `the token service "${url.host}" of "${request.domain}" did not return ${wanted}: ${response.status}`;
  if (response.status >= 300 && response.status < 400)
    throw new RegistryError('Refused', `${text}: credentials are never sent to a redirect target`);
  if (response.status === 401) throw new RegistryError('Invalid', text);
  if (response.status === 403) throw new RegistryError('Forbidden', text);
  if (response.status === 429) throw new RegistryError('RateLimited', text, retryAfterSeconds(response));
  throw new RegistryError('Unreachable', text);
}

function realmOf(realm: string, domain: string, transport: RegistryTransport): URL {
  const url = URL.canParse(realm) ? new URL(realm) : undefined;
  const own = url?.protocol === 'http:' && url.host === domain && transport.isPlain(domain);
  if (url !== undefined && url.username === '' && url.password === '' && (url.protocol === 'https:' || own))
    return url;
  throw new RegistryError('Refused', `"${domain}" names a token service whose URL is not https`);
}

function formOf(url: URL, { challenge, scope, credential }: TokenRequest) {
  const accept = { accept: 'application/json', 'user-agent': 'pullwright' };
  if (credential?.identityToken !== undefined) {
    const form = new URLSearchParams({ grant_type: 'refresh_token', client_id: 'pullwright', scope });
    if (challenge.service !== undefined) form.set('service', challenge.service);
    form.set('refresh_token', reveal(credential.identityToken));
    return {
      method: 'POST' as const,
      url,
      headers: { ...accept, 'content-type': 'application/x-www-form-urlencoded' },
      body: form.toString(),
    };
  }
  const asked = new URL(url);
  if (challenge.service !== undefined) asked.searchParams.set('service', challenge.service);
  // Set all at once: each change of a URL's parameters serializes all of them again, and the registry chooses their number.
  const query = new URLSearchParams(asked.search);
  for (const one of new Set(scope.split(' '))) if (one !== '') query.append('scope', one);
  asked.search = query.toString();
  const basic = credential?.basic;
  return {
    method: 'GET' as const,
    url: asked,
    headers: { ...accept, ...(basic === undefined ? {} : { authorization: `Basic ${reveal(basic)}` }) },
  };
}

async function readToken(response: Response, domain: string) {
  const text = new TextDecoder().decode(await readLimited(response, MAX_TOKEN));
  const { token, access_token: access, expires_in: seconds } = recordOf(jsonOf(text));
  const value = typeof token === 'string' && token !== '' ? token : access;
  if (typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value))
    throw new RegistryError('Damaged', `the token service of "${domain}" returned no token`);
  /** Seconds until it expires. */
  const lasts = typeof seconds === 'number' && seconds > 0 ? seconds : 60;
  return { value: redact(value), seconds: lasts };
}

// The `WWW-Authenticate` header of a registry. Source of the rule: RFC 9110, and the distribution token specification.

export type Challenge =
  | { readonly scheme: 'basic' }
  | {
      readonly scheme: 'bearer';
      readonly realm: string;
      readonly service?: string | undefined;
      readonly scope?: string | undefined;
    };

/**
 * The first supported challenge: Bearer before Basic. Undefined when there is none.
 */
export function parseChallenge(header: string): Challenge | undefined {
  const bearer = /(?:^|,\s*)bearer\s+/i.exec(header);
  if (bearer !== null) {
    const { realm, service, scope } = parameters(header.slice(bearer.index + bearer[0].length));
    if (realm !== undefined) return { scheme: 'bearer', realm, service, scope };
  }
  return /(?:^|,\s*)basic(?:\s|$|,)/i.test(header) ? { scheme: 'basic' } : undefined;
}

/** `key="value"` pairs up to the next scheme. */
function parameters(text: string): Readonly<Record<string, string>> {
  const fields: Record<string, string> = {};
  const pair = /\s*([A-Za-z]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*(?:,|$)/y;
  for (let match = pair.exec(text); match !== null; match = pair.exec(text)) {
    const name = (match[1] ?? '').toLowerCase();
    fields[name] ??= match[2]?.replace(/\\(.)/g, '$1') ?? match[3] ?? '';
  }
  return fields;
}
