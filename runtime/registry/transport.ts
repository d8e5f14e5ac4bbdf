/**
 * Requests to registries: addresses guarded, no environment read, failures in words about registries. The rest is the one HTTP
 * client's.
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
import { HttpClient } from '../http/client.ts';
import { HttpsEngine } from '../http/engine.ts';
import { HttpError } from '../http/http-error.ts';
import type { HttpAnswer } from '../http/request.ts';

// What a registry, or the way to it, said instead of an answer.

/**
 * `Invalid`: the credential is wrong, or one is missing. `Forbidden`: it is right and not enough. `Untrusted`: its certificate
 * does not verify. `Refused`: the address or the redirect is one that we do not follow. `NotAsked`: a tenant's name led to an address
 * that we do not contact for tenants, and nodes may. `Damaged`: what came is not what was
 * asked for.
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

/** Never holds a credential, a token or a body. */
export class RegistryError extends Error {
  readonly failure: RegistryFailure;
  /** For `RateLimited`: the registry's Retry-After, in seconds. */
  readonly retryAfterSeconds: number | undefined;
  /** Whether the host did not answer at all, so that further requests to it are pointless. */
  readonly silence: boolean;

  constructor(failure: RegistryFailure, message: string, retryAfterSeconds?: number, silence = false) {
    super(message);
    this.name = 'RegistryError';
    this.failure = failure;
    this.retryAfterSeconds = retryAfterSeconds;
    this.silence = silence;
  }
}

// Which addresses a registry may have: its name comes from an image, and so often from a tenant.

/**
 * The guard for hosts of registries. No policy: the host is one that a person allowed. The address that a tenant's name has is not
 * said: the text reaches the tenant, who could ask the cluster's DNS by it. Gives RegistryError `Refused`, or `NotAsked` where a
 * tenant chose the name.
 */
export function registryGuard(policy: AddressPolicy | undefined): AddressGuard {
  return {
    policy,
    refused: (url, address) => {
      const host = bareHost(url);
      return policy?.chosenBy === 'tenant'
        ? new RegistryError(
            'NotAsked',
            `"${host}" has an address that is private, loopback, link-local or a metadata service, which names of tenants may not lead to: allow the host or the network if it is meant`,
          )
        : new RegistryError(
            'Refused',
            `"${host}" has the address ${address}, which is loopback, link-local or a metadata service: allow the host if it is meant`,
          );
    },
  };
}

export interface TransportOptions {
  /** `host` or `host:port` that a person named: the guard of addresses does not apply to them. */
  readonly allowHosts?: readonly string[];
  /** Networks that may be contacted even under untrusted host names. */
  readonly allowNetworks?: Networks;
  /** `host:port` contacted without TLS. Only for hosts that a person named. */
  readonly plainHosts?: readonly string[];
  /** Certificates (PEM) trusted beside the system's. */
  readonly ca?: readonly string[];
  readonly resolve?: Resolve;
  /** The proxy for an origin (`https://host:port`); undefined to go without. */
  readonly proxyFor?: (origin: string) => Redacted<string> | undefined;
}

export interface Request {
  readonly method: 'GET' | 'HEAD' | 'POST';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** How many redirects are followed. Another origin gets no credential. @default {none: a redirect is an answer} */
  readonly redirects?: number;
  /** Who named the host: it decides to which addresses the name may lead. @default {'platform'} */
  readonly chosenBy?: AddressPolicy['chosenBy'];
  /** Whether a second copy does no harm. @default {GET and HEAD} */
  readonly repeatable?: boolean;
}

export type Response = HttpAnswer;

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
    // A redirect is followed by the same rules as the request that it answers.
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
        return new RegistryError('Untrusted', `the certificate of "${host}" does not verify: ${error.code}`);
      case 'TlsFailed':
        return new RegistryError('Untrusted', `"${host}" does not speak TLS as expected: ${error.code}`);
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

// Bytes are what their digest says, or they are not used.

/** Reads a body of at most `limit` bytes. @throws RegistryError `Damaged` */
export async function readLimited(response: Response, limit: number): Promise<Uint8Array> {
  try {
    return await response.bytes(limit);
  } catch (error) {
    const large = error instanceof HttpError && error.failure === 'AnswerTooLarge';
    throw new RegistryError(
      'Damaged',
      large ? `the answer is longer than ${limit} bytes` : 'the answer breaks off before its end',
    );
  }
}

/**
 * A digest as part of a path: a registry's own documents name the next ones, and whatever else they say leads elsewhere on its host.
 *
 * @throws RegistryError `Damaged` when it is none
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
  throw new RegistryError('Damaged', `"${algorithm.slice(0, 20)}" is not a digest that we can check`);
}
