/**
 * Requests to registries: addresses guarded, no environment read, failures in words about registries. The rest is the one HTTP
 * client's.
 */
import type { AddressPolicy, Networks, Resolve } from '../http/addresses.ts';
import { HttpClient } from '../http/client.ts';
import { HttpError } from '../http/http-error.ts';
import { HttpsEngine } from '../http/https-engine.ts';
import type { HttpAnswer } from '../http/request.ts';
import { type Redacted, reveal } from '../rules/redacted.ts';
import { guardedAddresses, guardProxied } from './address.ts';
import { RegistryError } from './registry-error.ts';

export interface TransportOptions {
  /** `host` or `host:port` that a person named: the guard of addresses does not apply to them. */
  readonly allowHosts?: readonly string[];
  /** Networks that may be contacted whoever named the host. */
  readonly allowNetworks?: Networks;
  /** `host:port` spoken to without TLS. Only for hosts that a person named. */
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
    const engine = new HttpsEngine({
      ...(ca === undefined ? {} : { ca }),
      ...(proxyFor === undefined ? {} : { proxyFor }),
    });
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

  /** Whether `host` (with its port, if any) is spoken to without TLS. */
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

  async #addressesFor(url: URL, chosenBy: AddressPolicy['chosenBy']): Promise<readonly string[] | undefined> {
    const { allowHosts, allowNetworks: allow, resolve } = this.#options;
    const host = url.hostname.replace(/^\[|\]$/g, '');
    const configured = allowHosts?.some((name) => name === url.host || name === host) === true;
    const policy = { chosenBy, ...(allow === undefined ? {} : { allow }) };
    if (this.#proxyOf(url) === undefined)
      return guardedAddresses(host, configured || this.isPlain(url.host) ? undefined : policy, resolve);
    await guardProxied(host, configured ? undefined : policy, resolve);
    return undefined;
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
        return new RegistryError('Untrusted', `"${host}" does not speak TLS as wanted: ${error.code}`);
      case 'RedirectRefused':
        return new RegistryError('Refused', `"${host}" is asked no further: ${error.message}`);
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
