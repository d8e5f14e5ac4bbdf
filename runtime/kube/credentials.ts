/**
 * The token of an OpenID Connect provider that a kubeconfig names (`auth-provider: oidc`), refreshed when it ends. Refreshing is
 * openid-client's; @kubernetes/client-node 2.0.1 gives it a text where a URL is wanted, an answer of its own making where the
 * provider has a CA of its own, and refreshes at every request from then on.
 */
import { readFileSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { basename, dirname, resolve } from 'node:path';
import type { KubeConfig } from '@kubernetes/client-node';
import { credentialExpiry } from '../core/docker-config/expiry.ts';
import { PullwrightError } from '../core/errors.ts';
import { type Redacted, redact, reveal } from '../core/redacted.ts';
import { HttpClient } from '../http/client.ts';
import { HttpsEngine } from '../http/engine.ts';
import type { Connection, Credentials } from './client.ts';

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

// Credentials that an exec plugin gives, by way of @kubernetes/client-node, which runs it. What that lacks is here: it gives an
// answer again although the API server refused it, tells the plugin nothing, and looks for it in the working folder.

/** Many requests are refused at once; the answer that the first of them gets is for all. */
const REFUSAL_MS = 1000;

/**
 * The credentials of the current user.
 *
 * @param load reads the kubeconfig; what a plugin answered is remembered in the result, until the time that it named
 * @param file path of the kubeconfig, from which a relative command of a plugin counts
 */
export function pluginCredentials(load: () => KubeConfig, file: string): Connection['credentials'] {
  let config = prepared(load(), file);
  let pending: Promise<Credentials> | undefined;
  let renewedAt = Number.NEGATIVE_INFINITY;
  return async (refused) => {
    // By a clock that nobody sets back.
    if (refused && performance.now() - renewedAt > REFUSAL_MS) {
      renewedAt = performance.now();
      config = prepared(load(), file);
      pending = undefined;
    }
    // One run of the plugin for all that ask meanwhile.
    const asked = (pending ??= ask(config));
    try {
      return await asked;
    } finally {
      if (pending === asked) pending = undefined;
    }
  };
}

/** Source of the rule: client-go's exec plugin: relative commands that are no mere name, and `KUBERNETES_EXEC_INFO`. */
function prepared(config: KubeConfig, file: string): KubeConfig {
  const exec = config.getCurrentUser()?.exec as ExecConfig | undefined;
  if (!exec) return config;
  if (exec.command && basename(exec.command) !== exec.command)
    exec.command = resolve(dirname(file), exec.command);
  const cluster = config.getCurrentCluster();
  const info = {
    apiVersion: exec.apiVersion,
    kind: 'ExecCredential',
    spec: {
      interactive: false,
      ...(exec.provideClusterInfo === true && cluster !== null
        ? { cluster: { server: cluster.server, 'certificate-authority-data': cluster.caData } }
        : {}),
    },
  };
  exec.env = [...(exec.env ?? []), { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) }];
  return config;
}

/** What client-node calls `any`. */
interface ExecConfig {
  command?: string;
  readonly apiVersion?: string;
  readonly provideClusterInfo?: boolean;
  env?: readonly { readonly name: string; readonly value: string }[] | null;
}

async function ask(config: KubeConfig): Promise<Credentials> {
  const options: RequestOptions = {};
  try {
    await config.applyToHTTPSOptions(options);
  } catch {
    throw failure(config);
  }
  const { Authorization: authorization = '' } = (options.headers ?? {}) as { Authorization?: string };
  const token = authorization.startsWith('Bearer ') ? redact(authorization.slice(7)) : undefined;
  if (token === undefined && options.cert === undefined) throw failure(config);
  return {
    ...(token === undefined ? {} : { token }),
    ...(options.cert === undefined ? {} : { certificate: pemText(options.cert) }),
    ...(options.key === undefined ? {} : { key: redact(pemText(options.key)) }),
  };
}

/** Without the cause: what the plugin printed may hold a credential. */
function failure(config: KubeConfig): PullwrightError {
  const { command = '' } = (config.getCurrentUser()?.exec ?? {}) as ExecConfig;
  return new PullwrightError(`Cannot get credentials: the plugin "${command}" of the kubeconfig gave none`, {
    code: 'CredentialPluginFailed',
    hint: 'Run kubectl with the same kubeconfig to see what it says',
  });
}

/** node:https takes PEM as text or bytes. */
function pemText(value: unknown): string {
  return Buffer.isBuffer(value) ? value.toString('utf8') : (value as string);
}
