/**
 * Requests to registries over the shared HTTP client: validates addresses, reads no environment, and maps failures to
 * {@link RegistryError}.
 */

import { createHash } from 'node:crypto';
import { digestFault } from '../core/image-reference.ts';
import { type Redacted, reveal } from '../core/redacted.ts';
import {
  type AddressGuard,
  type AddressPolicy,
  bareHost,
  guardedAddresses,
  type Networks,
  type Resolve,
} from '../http/addresses.ts';
import { HttpClient, retryAfterMs } from '../http/client.ts';
import { HttpsEngine } from '../http/engine.ts';
import { HttpError } from '../http/http-error.ts';
import type { HttpAnswer, HttpRequest } from '../http/request.ts';

// Failures of registries and of the connection to them.

/**
 * `Invalid`: the credential is wrong or missing. `Forbidden`: the credential is valid, but has no permission. `Untrusted`: the
 * certificate does not verify. `Refused`: the address or the redirect is not allowed. `NotAsked`: the name is chosen by a tenant
 * and resolves to an address that we do not contact for tenants, although nodes may. `Damaged`: the response is not as requested.
 */
export type RegistryFailure =
  | 'Invalid'
  | 'Forbidden'
  | 'NotFound'
  | 'RateLimited'
  | 'Unreachable'
  | 'Untrusted'
  | 'Refused'
  | 'NotAsked'
  | 'Damaged';

/** A failed request to a registry. Contains no credential, token or body. */
export class RegistryError extends Error {
  readonly failure: RegistryFailure;
  /** For `RateLimited`: the registry's Retry-After, in seconds. */
  readonly retryAfterSeconds: number | undefined;
  /** Whether the host did not respond at all, so that further requests to it are pointless. */
  readonly silence: boolean;

  constructor(failure: RegistryFailure, message: string, retryAfterSeconds?: number, silence = false) {
    super(message);
    this.name = 'RegistryError';
    this.failure = failure;
    this.retryAfterSeconds = retryAfterSeconds;
    this.silence = silence;
  }
}

// Allowed addresses of a registry: its name is part of an image reference, which a tenant may choose.

/**
 * The address guard for hosts of registries. No policy: the user allowed the host. The message does not contain the address of a
 * tenant's name, because the tenant reads it and could query the cluster's DNS that way. Fails with RegistryError `Refused`, or
 * `NotAsked` when a tenant chose the name.
 */
export function registryGuard(policy: AddressPolicy | undefined): AddressGuard {
  return {
    policy,
    refused: (url, address) => {
      const host = bareHost(url);
      return policy?.chosenBy === 'tenant'
        ? new RegistryError(
            'NotAsked',
            `"${host}" has an address that is private, loopback, link-local or a metadata service: denied for names chosen by tenants; allow the host or network if intended`,
          )
        : new RegistryError(
            'Refused',
            `"${host}" has the address ${address}, which is loopback, link-local or a metadata service: allow the host if intended`,
          );
    },
  };
}

export interface TransportOptions {
  /** `host` or `host:port` that the user configured: their addresses are not validated. */
  readonly allowHosts?: readonly string[];
  /** Networks that may be contacted even under untrusted host names. */
  readonly allowNetworks?: Networks;
  /** `host:port` contacted without TLS. Only for hosts that the user configured. */
  readonly plainHosts?: readonly string[];
  /** Certificates (PEM) trusted in addition to the system's. */
  readonly ca?: readonly string[];
  readonly resolve?: Resolve;
  /** The proxy for an origin (`https://host:port`); undefined to go without. */
  readonly proxyFor?: (origin: string) => Redacted<string> | undefined;
}

export interface Request extends Pick<HttpRequest, 'body' | 'redirects' | 'repeatable'> {
  readonly method: 'GET' | 'HEAD' | 'POST';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Who chose the host, which determines its allowed addresses. @default {'platform'} */
  readonly chosenBy?: AddressPolicy['chosenBy'];
}

export type Response = HttpAnswer;

/** The registry's Retry-After, in whole seconds; undefined if missing or invalid. */
export function retryAfterSeconds(response: Response): number | undefined {
  const waitMs = retryAfterMs(response.header('retry-after'), Date.now());
  return waitMs === undefined ? undefined : Math.ceil(waitMs / 1000);
}

export class RegistryTransport {
  readonly #options: TransportOptions;
  readonly #clients: Readonly<Record<AddressPolicy['chosenBy'], HttpClient>>;

  constructor(options: TransportOptions = {}) {
    const { ca, proxyFor } = options;
    this.#options = options;
    const engine = new HttpsEngine({ ca, proxyFor });
    const clientFor = (chosenBy: AddressPolicy['chosenBy']): HttpClient =>
      new HttpClient(engine, {
        plain: (host) => this.isPlain(host),
        addressesFor: (url) => this.#addressesFor(url, chosenBy),
      });
    // A redirect follows the rules of its request.
    this.#clients = { tenant: clientFor('tenant'), platform: clientFor('platform') };
  }

  /** Ends idle connections. They do not keep the process alive. */
  close(): void {
    for (const client of Object.values(this.#clients)) client.close();
  }

  /** Whether `host` (with its port, if any) is contacted without TLS. */
  isPlain(host: string): boolean {
    return this.#options.plainHosts?.includes(host) === true;
  }

  /**
   * @throws RegistryError `Refused`, `Untrusted` or `Unreachable`
   */
  async send(request: Request): Promise<Response> {
    try {
      const { chosenBy = 'platform', ...rest } = request;
      return await this.#clients[chosenBy].open({ ...rest, url: request.url.href });
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      throw this.#explained(error, request.url);
    }
  }

  #addressesFor(url: URL, chosenBy: AddressPolicy['chosenBy']): Promise<readonly string[] | undefined> {
    const { allowHosts, allowNetworks: allow, resolve } = this.#options;
    const host = bareHost(url);
    const isNamed =
      allowHosts?.some((name) => name === url.host || name === host) === true || this.isPlain(url.host);
    const policy = isNamed ? undefined : { chosenBy, allow };
    const isProxied = this.#proxyOf(url) !== undefined;
    return guardedAddresses(url, { ...registryGuard(policy), isProxied, resolve });
  }

  #proxyOf(url: URL): Redacted<string> | undefined {
    return url.protocol === 'https:' ? this.#options.proxyFor?.(url.origin) : undefined;
  }

  #explained(error: HttpError, asked: URL): RegistryError {
    const host = error.host ?? asked.host;
    const proxy = this.#proxyOf(new URL(`${asked.protocol}//${host}`));
    const way = proxy === undefined ? '' : ` through the proxy "${proxyHost(proxy)}"`;
    switch (error.failure) {
      case 'Timeout':
      case 'Aborted':
        return new RegistryError('Unreachable', `"${host}" did not answer in time${way}`);
      case 'CertificateNotTrusted':
        return new RegistryError(
          'Untrusted',
          `the certificate of "${host}" failed verification: ${error.code}`,
        );
      case 'TlsFailed':
        return new RegistryError('Untrusted', `"${host}" failed the TLS handshake: ${error.code}`);
      case 'RedirectRefused':
        return new RegistryError('Refused', `"${host}" is not contacted: ${error.message}`);
      case 'TlsWanted':
        return new RegistryError('Refused', error.message);
      default:
        return new RegistryError(
          'Unreachable',
          `"${host}" cannot be reached${way}: ${error.code ?? error.message}`,
          undefined,
          true,
        );
    }
  }
}

/** Host and port of the proxy, for messages: never its password. */
function proxyHost(proxy: Redacted<string>): string {
  const text = reveal(proxy);
  return URL.canParse(text) ? new URL(text).host : 'the proxy';
}

// Bodies are used only if their digest matches.

/** Reads a body of at most `limit` bytes. @throws RegistryError `Damaged` */
export async function readLimited(response: Response, limit: number): Promise<Uint8Array> {
  try {
    return await response.bytes(limit);
  } catch (error) {
    const large = error instanceof HttpError && error.failure === 'AnswerTooLarge';
    throw new RegistryError(
      'Damaged',
      large ? `the response is longer than ${limit} bytes` : 'the response is incomplete',
    );
  }
}

/**
 * Validates a digest for use in a URL path: it may come from a document of the registry, and any other text could change the
 * path.
 *
 * @throws RegistryError `Damaged` when the digest is invalid
 */
export function digestInPath(digest: string): string {
  const fault = digestFault(digest);
  if (fault === undefined) return digest;
  throw new RegistryError(
    'Damaged',
    `${JSON.stringify(digest.slice(0, 80))} is not a digest (${fault}), expected sha256, sha384 or sha512 with all digits in lower case`,
  );
}

/** The digest of `bytes`; throws `Damaged` when it is not `wanted`. */
export function checkedBytes(bytes: Uint8Array, wanted: string | undefined): string {
  const algorithm = wanted === undefined ? 'sha256' : algorithmOf(wanted);
  const digest = `${algorithm}:${createHash(algorithm).update(bytes).digest('hex')}`;
  if (wanted === undefined || digest === wanted) return digest;
  throw new RegistryError('Damaged', `${bytes.length} bytes have the digest ${digest}, expected ${wanted}`);
}

function algorithmOf(digest: string): 'sha256' | 'sha384' | 'sha512' {
  const [algorithm = ''] = digest.split(':');
  if (algorithm === 'sha256' || algorithm === 'sha384' || algorithm === 'sha512') return algorithm;
  throw new RegistryError('Damaged', `"${algorithm.slice(0, 20)}" is an unsupported digest`);
}
