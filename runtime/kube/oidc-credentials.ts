/**
 * The token of an OpenID Connect provider that a kubeconfig names (`auth-provider: oidc`), refreshed when it ends. Refreshing is
 * openid-client's; @kubernetes/client-node 2.0.1 gives it a text where a URL is wanted, an answer of its own making where the
 * provider has a CA of its own, and refreshes at every request from then on.
 */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { HttpClient } from '../http/client.ts';
import { HttpsEngine } from '../http/https-engine.ts';
import { credentialExpiry } from '../rules/docker-config/expiry.ts';
import { PullwrightError } from '../rules/errors.ts';
import { type Redacted, redact, reveal } from '../rules/redacted.ts';
import type { Connection, Credentials } from './connection.ts';

/** A token is renewed this long before it ends: a request under way must arrive with it. */
const MARGIN_MS = 10_000;

/** The fields of `auth-provider.config` that count. */
export type OidcConfig = Readonly<Record<string, string | undefined>>;

interface Held {
  readonly idToken: Redacted<string> | undefined;
  readonly refreshToken: Redacted<string> | undefined;
  readonly until: number;
}

/**
 * Source of the rule: client-go's OIDC plugin, except that what was refreshed is kept in memory and the kubeconfig is not written.
 *
 * @param file path of the kubeconfig, from which a relative path of a CA counts
 */
export function oidcCredentials(config: OidcConfig, file: string): Connection['credentials'] {
  let held = holding(config['id-token'], config['refresh-token']);
  let pending: Promise<Held> | undefined;
  return async (refused): Promise<Credentials> => {
    // What cannot be refreshed is given as it is: the API server says what it thinks of it.
    const canRefresh = held.refreshToken !== undefined || held.idToken === undefined;
    if (canRefresh && (refused || Date.now() >= held.until)) {
      pending ??= refreshed(config, held, file).finally(() => {
        pending = undefined;
      });
      held = await pending;
    }
    return held.idToken === undefined ? {} : { token: held.idToken };
  };
}

function holding(idToken: string | undefined, refreshToken: string | undefined): Held {
  const token = idToken ? redact(idToken) : undefined;
  const ends =
    token === undefined ? undefined : credentialExpiry({ username: '', password: token }).expiresAt;
  return {
    idToken: token,
    refreshToken: refreshToken ? redact(refreshToken) : undefined,
    until: ends === undefined ? 0 : Date.parse(ends) - MARGIN_MS,
  };
}

async function refreshed(config: OidcConfig, held: Held, file: string): Promise<Held> {
  const { 'idp-issuer-url': issuer = '', 'client-id': clientId = '' } = config;
  try {
    const oidc = await import('openid-client');
    const ca = authorityOf(config, file);
    const provider = await oidc.discovery(
      new URL(issuer),
      clientId,
      config['client-secret'],
      undefined,
      ca === undefined ? undefined : { [oidc.customFetch]: fetchTrusting(ca) },
    );
    const grant = await oidc.refreshTokenGrant(
      provider,
      held.refreshToken === undefined ? '' : reveal(held.refreshToken),
    );
    const next = holding(grant.id_token, grant.refresh_token);
    return { ...next, refreshToken: next.refreshToken ?? held.refreshToken };
  } catch {
    // The cause may hold what the provider was asked.
    throw new PullwrightError(
      `Cannot get credentials: the OpenID Connect provider "${issuer}" of the kubeconfig refreshed no token`,
      {
        code: 'CredentialPluginFailed',
        hint: 'Log in again, or use an exec plugin: the refresh token may have ended or been used elsewhere',
      },
    );
  }
}

/** PEM of the provider's own CA; undefined for those of the system. */
function authorityOf(config: OidcConfig, file: string): string | undefined {
  const { 'idp-certificate-authority': path, 'idp-certificate-authority-data': data } = config;
  if (data) return Buffer.from(data, 'base64').toString('utf8');
  return path ? readFileSync(resolve(dirname(file), path), 'utf8') : undefined;
}

/** The largest answer of a provider: its keys, or a token. */
const MOST_BYTES = 1024 * 1024;

/** The built-in fetch takes no CA. */
function fetchTrusting(ca: string): (url: string, options: FetchOptions) => Promise<Response> {
  const client = new HttpClient(new HttpsEngine({ ca }));
  return async (url, { method, headers, body }) => {
    // A refresh is a form; the rest has no body.
    const form = body instanceof URLSearchParams ? { body: body.toString() } : {};
    const { status, header, text } = await client.ask(
      { method, url: new URL(url).href, headers, timeoutMs: 30_000, ...form },
      MOST_BYTES,
    );
    const type = header('content-type') ?? 'application/json';
    return new Response(text === '' ? null : text, { status, headers: { 'content-type': type } });
  };
}

/** What openid-client hands over. */
interface FetchOptions {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}
