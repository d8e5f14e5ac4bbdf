/**
 * Client for the calls of Secret Manager's REST API v1 that the Job needs. Every failure is a {@link GcpError} with the canonical
 * code. Response bodies never leave this file.
 */

import { jsonOf, recordsIn, textOf, valueAt } from '../../core/record.ts';
import { type Redacted, redact, reveal } from '../../core/redacted.ts';
import { type HttpClient, retryAfterMs as retryAfterOf } from '../../http/client.ts';
import { HttpError } from '../../http/http-error.ts';
import type { WholeAnswer } from '../../http/request.ts';
import { GcpError, statusOfHttp, unlessStatus } from './gcp-error.ts';

// CRC-32C (Castagnoli), the checksum of Secret Manager payloads. Node's zlib supports only the IEEE polynomial.

const POLYNOMIAL = 0x82f63b78;

const TABLE: Uint32Array = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ POLYNOMIAL : value >>> 1;
  return value >>> 0;
});

/** Returns the CRC-32C as an unsigned 32-bit number. */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ (TABLE[(crc ^ byte) & 0xff] ?? 0);
  return (crc ^ 0xffffffff) >>> 0;
}

/** Returns a valid token. `fresh`: the last token was rejected, so the cache must not be used. */
export type TokenSource = (fresh: boolean) => Promise<Redacted<string>>;

export interface GoogleApiOptions {
  readonly token: TokenSource;
  readonly http: HttpClient;
  /** Timeout of one request. */
  readonly timeoutMs: number;
  /** Aborts the request; the call fails with its reason. */
  readonly signal: AbortSignal;
}

/** Payloads have at most 64 KiB, and lists some hundred bytes per version. */
const MOST_BYTES = 32 * 1024 * 1024;

/** Calls a Google API. `name`: for error messages, such as `AddSecretVersion`. @returns the parsed response. @throws GcpError, and errors of `token` and `signal` */
export async function callGoogleApi<T>(
  { name, method, url }: Readonly<Record<'name' | 'method' | 'url', string>>,
  { token, http, signal, timeoutMs }: GoogleApiOptions,
  body?: unknown,
): Promise<T> {
  const exchange = async (fresh: boolean): Promise<WholeAnswer> => {
    const authorization = `Bearer ${reveal(await token(fresh))}`;
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    const headers = { authorization, accept: 'application/json', ...type };
    const text = body === undefined ? {} : { body: JSON.stringify(body) };
    try {
      return await http.ask({ method, url, headers, signal, timeoutMs, ...text }, MOST_BYTES);
    } catch (error) {
      signal.throwIfAborted();
      const late = error instanceof HttpError && error.failure === 'Timeout';
      throw new GcpError(name, late ? 'DEADLINE_EXCEEDED' : 'UNAVAILABLE', { cause: error });
    }
  };
  let response = await exchange(false);
  // The token was revoked, or has expired by a slow local clock: retry once with a new one.
  if (response.status === 401) response = await exchange(true);
  const { status, text, header } = response;
  const answer = jsonOf(text || '{}');
  const ok = status >= 200 && status < 300;
  if (ok && answer !== undefined) return answer as T;
  // A proxy page with status 200 is not a response of this API.
  throw failure(name, ok ? 502 : status, answer, header('retry-after'));
}

function failure(call: string, http: number, answer: unknown, retryAfter: string | undefined): GcpError {
  // google.rpc.ErrorInfo has `reason`, google.rpc.RetryInfo `retryDelay`.
  const details = recordsIn(valueAt(answer, 'error.details'));
  const info = details.map(({ reason }) => reason).find((reason) => typeof reason === 'string');
  // The number may have any length; its value is capped.
  const [delay] = details.flatMap(
    ({ retryDelay }) => /^(\d+(?:\.\d+)?)s$/.exec(textOf(retryDelay))?.[1] ?? [],
  );
  const wanted = delay === undefined ? undefined : Math.min(Number(delay), 1e9) * 1000;
  const retryAfterMs = retryAfterOf(retryAfter, Date.now()) ?? wanted;
  const status = textOf(valueAt(answer, 'error.status'));
  // Accept only canonical codes, because messages include the code.
  if (/^[A-Z_]{1,40}$/.test(status)) return new GcpError(call, status, { info, retryAfterMs });
  // Not from the API: a proxy that rejects the call is not a missing permission.
  const text = `HTTP ${http}, not a response of the API`;
  return new GcpError(call, statusOfHttp(http), { retryAfterMs, text });
}

/** Without a key, encryption is managed by Google. */
export interface Encryption {
  readonly customerManagedEncryption?: { readonly kmsKeyName: string };
}

/** Replication of a secret; cannot be changed later. */
export interface Replication {
  readonly automatic?: Encryption;
  readonly userManaged?: { readonly replicas: readonly (Encryption & { readonly location: string })[] };
  /** For a regional secret, which is stored only in its location. */
  readonly regional?: Encryption;
}

/** The encryption is that of a regional secret. */
export interface GcpSecret extends Encryption {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Absent for a regional secret. */
  readonly replication?: Pick<Replication, 'automatic' | 'userManaged'>;
  /** Version numbers by alias. */
  readonly versionAliases?: Readonly<Record<string, string>>;
  /** How long a version stays disabled before it is destroyed, such as `604800s`. */
  readonly versionDestroyTtl?: string;
  readonly etag?: string;
}

/** The mutable fields of a secret. */
export type SecretFields = Pick<GcpSecret, 'labels' | 'annotations' | 'versionDestroyTtl'>;

export interface GcpVersion {
  /** `projects/NUMBER/secrets/NAME/versions/N`. */
  readonly name: string;
  /** RFC 3339. */
  readonly createTime?: string;
  /** When Google destroys it; RFC 3339. */
  readonly scheduledDestroyTime?: string;
}

/** A payload. `intact`: it matches its checksum, if it has one. */
export type GcpPayload = Readonly<NonNullable<Awaited<ReturnType<SecretManager['access']>>>>;

export interface SecretManagerOptions extends GoogleApiOptions {
  /** Base URL without path. @default {'https://secretmanager.googleapis.com'} */
  readonly endpoint: string;
  /** Base URL of Cloud Resource Manager, for labels of and permissions on the project. */
  readonly resourceManagerEndpoint: string;
  readonly project: string;
  /** Location of regional secrets, which have their own endpoint; undefined for replicated secrets. */
  readonly location: string | undefined;
}

/** Secret Manager of one project. */
export class SecretManager {
  readonly #options: SecretManagerOptions;

  constructor(options: SecretManagerOptions) {
    this.#options = options;
  }

  /** Returns the secret; undefined if it does not exist. */
  async get(secret: string): Promise<GcpSecret | undefined> {
    return unlessStatus(this.#call<GcpSecret>('GetSecret', 'GET', this.#path(secret)), 'NOT_FOUND');
  }

  async create(secret: string, body: Omit<GcpSecret, 'name' | 'etag'>): Promise<GcpSecret> {
    const query = `?secretId=${encodeURIComponent(secret)}`;
    return this.#call('CreateSecret', 'POST', `${this.#place()}/secrets${query}`, body);
  }

  /** Updates these fields if the etag still matches. */
  async update(secret: string, fields: SecretFields, etag: string | undefined): Promise<GcpSecret> {
    const path = `${this.#path(secret)}?updateMask=${Object.keys(fields).join(',')}`;
    return this.#call('UpdateSecret', 'PATCH', path, { ...fields, etag });
  }

  async addVersion(secret: string, payload: Redacted<string>): Promise<GcpVersion> {
    const bytes = Buffer.from(reveal(payload));
    const body = { payload: { data: bytes.toString('base64'), dataCrc32c: String(crc32c(bytes)) } };
    return this.#call('AddSecretVersion', 'POST', `${this.#path(secret)}:addVersion`, body);
  }

  /** Returns the payload of a version (number or alias); undefined if it does not exist. */
  async access(secret: string, version: string) {
    const path = `${this.#version(secret, version)}:access`;
    const call = this.#call<{
      readonly name?: string;
      readonly payload?: { readonly data?: string; readonly dataCrc32c?: string };
    }>('AccessSecretVersion', 'GET', path);
    const answer = await unlessStatus(call, 'NOT_FOUND');
    if (answer === undefined) return undefined;
    const { data = '', dataCrc32c: sum } = answer.payload ?? {};
    const bytes = Buffer.from(data, 'base64');
    const intact = sum === undefined || sum === String(crc32c(bytes));
    return { version: answer.name ?? version, text: redact(bytes.toString('utf8')), intact };
  }

  /** Lists versions in a state, newest first. */
  async versions(secret: string, state: 'ENABLED' | 'DISABLED'): Promise<readonly GcpVersion[]> {
    const found: GcpVersion[] = [];
    const query = new URLSearchParams({ pageSize: '100', filter: `state:${state}` });
    for (;;) {
      const path = `${this.#path(secret)}/versions?${query.toString()}`;
      const { versions = [], nextPageToken = '' } = await this.#call<{
        readonly versions?: readonly GcpVersion[];
        readonly nextPageToken?: string;
      }>('ListSecretVersions', 'GET', path);
      found.push(...versions);
      if (nextPageToken === '') return found;
      // A server that repeats a page token would cause an endless loop.
      if (nextPageToken === query.get('pageToken'))
        throw new GcpError('ListSecretVersions', 'UNKNOWN', { text: 'same page repeated' });
      query.set('pageToken', nextPageToken);
    }
  }

  async disable(secret: string, version: string): Promise<void> {
    await this.#call('DisableSecretVersion', 'POST', `${this.#version(secret, version)}:disable`, {});
  }

  async destroy(secret: string, version: string): Promise<void> {
    await this.#call('DestroySecretVersion', 'POST', `${this.#version(secret, version)}:destroy`, {});
  }

  /** Deletes the secret if the etag still matches; a missing secret is not an error. */
  async delete(secret: string, etag: string | undefined): Promise<void> {
    const query = etag === undefined ? '' : `?etag=${encodeURIComponent(etag)}`;
    await unlessStatus(this.#call('DeleteSecret', 'DELETE', `${this.#path(secret)}${query}`), 'NOT_FOUND');
  }

  /** Returns the labels of the project. Requires `resourcemanager.projects.get`, part of `roles/secretmanager.admin`. */
  async projectLabels(): Promise<Readonly<Record<string, string>>> {
    const { resourceManagerEndpoint: endpoint, project } = this.#options;
    const url = `${endpoint}/v3/projects/${encodeURIComponent(project)}`;
    const request = { name: 'GetProject', method: 'GET', url };
    const { labels = {} } = await callGoogleApi<Pick<GcpSecret, 'labels'>>(request, this.#options);
    return labels;
  }

  /**
   * Returns those of `permissions` that the identity has on a secret.
   *
   * @param secret undefined for the project, because Secret Manager cannot test a missing secret
   */
  async testPermissions(
    secret: string | undefined,
    permissions: readonly string[],
  ): Promise<readonly string[]> {
    const { endpoint, resourceManagerEndpoint } = this.#options;
    const resource =
      secret === undefined
        ? `${resourceManagerEndpoint}${this.#parent()}`
        : `${endpoint}${this.#path(secret)}`;
    const name = secret === undefined ? 'TestProjectPermissions' : 'TestIamPermissions';
    const request = { name, method: 'POST', url: `${resource}:testIamPermissions` };
    const answer = await callGoogleApi<{ permissions?: string[] }>(request, this.#options, { permissions });
    return answer.permissions ?? [];
  }

  #parent(): string {
    return `/v1/projects/${encodeURIComponent(this.#options.project)}`;
  }

  #place(): string {
    const { location } = this.#options;
    return `${this.#parent()}${location === undefined ? '' : `/locations/${encodeURIComponent(location)}`}`;
  }

  #path(secret: string): string {
    return `${this.#place()}/secrets/${encodeURIComponent(secret)}`;
  }

  #version(secret: string, version: string): string {
    return `${this.#path(secret)}/versions/${encodeURIComponent(version)}`;
  }

  #call<T>(name: string, method: string, path: string, body?: unknown): Promise<T> {
    const url = `${this.#options.endpoint}${path}`;
    return callGoogleApi<T>({ name, method, url }, this.#options, body);
  }
}
