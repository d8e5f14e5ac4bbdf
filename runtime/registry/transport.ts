/**
 * One HTTP request to a registry: TLS verified, addresses guarded, no redirect followed, no environment read, through a proxy
 * where one is given. Runs on Node and on Bun.
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import type { Redacted } from '../rules/redacted.ts';
import { guardedAddresses, guardProxied, type Resolve } from './address.ts';
import { RegistryError } from './registry-error.ts';
import { type ProxyRoute, proxyHost, sendThroughProxy } from './through-proxy.ts';

export interface TransportOptions {
  /** `host` or `host:port` that a person named: the guard of addresses does not apply to them. */
  readonly allowHosts?: readonly string[];
  /** `host:port` spoken to without TLS. Only for hosts that a person named. */
  readonly plainHosts?: readonly string[];
  /** Certificates (PEM) trusted beside the system's. */
  readonly ca?: readonly string[];
  readonly resolve?: Resolve;
  /** The proxy for an https URL; undefined to go without. */
  readonly proxyFor?: (url: string) => Redacted<string> | undefined;
}

export interface Request {
  readonly method: 'GET' | 'HEAD' | 'POST';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

export interface Response {
  readonly status: number;
  header(name: string): string | undefined;
  readonly body: AsyncIterable<Uint8Array>;
  /** The body is not wanted: the connection ends, or is used again. */
  discard(): void;
}

/** Node keys its idle connections by address, server name and trust; Bun does not, so that there each request has its own. */
const REUSES_CONNECTIONS = process.versions['bun'] === undefined;

export class RegistryTransport {
  readonly #options: TransportOptions;
  readonly #plain = new HttpAgent({ keepAlive: true });
  readonly #secure = new HttpsAgent({ keepAlive: true });

  constructor(options: TransportOptions = {}) {
    this.#options = options;
  }

  /** Ends idle connections. They do not keep the process alive. */
  close(): void {
    this.#plain.destroy();
    this.#secure.destroy();
  }

  /** Whether `host` (with its port, if any) is spoken to without TLS. */
  isPlain(host: string): boolean {
    return this.#options.plainHosts?.includes(host) === true;
  }

  /**
   * @throws RegistryError `Refused`, `Untrusted` or `Unreachable`
   */
  async send(request: Request): Promise<Response> {
    const { url } = request;
    if (url.protocol !== 'https:' && !(url.protocol === 'http:' && this.isPlain(url.host)))
      throw new RegistryError('Refused', `"${url.origin}" is not spoken to without TLS: wanted https`);
    const host = url.hostname.replace(/^\[|\]$/g, '');
    const configured = this.#options.allowHosts?.some((name) => name === url.host || name === host) === true;
    const proxy = this.#proxyOf(url);
    if (proxy !== undefined) {
      await guardProxied(host, configured, this.#options.resolve);
      return this.#throughProxy(request, proxy);
    }
    return this.#directly(request, host, configured);
  }

  #proxyOf(url: URL): Redacted<string> | undefined {
    return url.protocol === 'https:' ? this.#options.proxyFor?.(url.href) : undefined;
  }

  async #directly(request: Request, host: string, configured: boolean): Promise<Response> {
    const { url } = request;
    const addresses = await guardedAddresses(
      host,
      configured || this.isPlain(url.host),
      this.#options.resolve,
    );
    let failure: RegistryError | undefined;
    for (const address of addresses) {
      try {
        return await this.#connect(request, host, address);
      } catch (error) {
        failure = explain(error, url.host, request.signal);
        if (failure.failure !== 'Unreachable' || request.signal.aborted) break;
      }
    }
    throw failure ?? new RegistryError('Unreachable', `"${url.host}" has no address`);
  }

  async #throughProxy(request: Request, proxy: Redacted<string>): Promise<Response> {
    const { ca } = this.#options;
    const route: ProxyRoute = { proxy, ...(ca === undefined ? {} : { ca }) };
    try {
      return await sendThroughProxy(request, route);
    } catch (error) {
      throw explain(error, request.url.host, request.signal, ` through the proxy "${proxyHost(route)}"`);
    }
  }

  async #connect(request: Request, host: string, address: string): Promise<Response> {
    try {
      return await this.#once(request, host, address);
    } catch (error) {
      // The server may close an idle connection at the moment in which it is used again.
      if (!(error instanceof StaleConnection)) throw error;
      return this.#once(request, host, address);
    }
  }

  #once(request: Request, host: string, address: string): Promise<Response> {
    const { url, method, headers, body, signal } = request;
    const secure = url.protocol === 'https:';
    const agent = secure ? this.#secure : this.#plain;
    return new Promise((resolve, reject) => {
      const call = (secure ? httpsRequest : httpRequest)({
        host: address,
        port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
        path: url.pathname + url.search,
        method,
        headers: {
          ...headers,
          host: url.host,
          ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
        },
        signal,
        agent: REUSES_CONNECTIONS ? agent : false,
        // Said aloud: NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment must not count.
        ...(secure ? { rejectUnauthorized: true, minVersion: 'TLSv1.2' as const } : {}),
        // An address has no server name; the certificate is then checked against the address.
        ...(secure && isIP(host) === 0 ? { servername: host } : {}),
        ...(this.#options.ca === undefined ? {} : { ca: [...this.#options.ca] }),
      });
      call.once('error', (error) => {
        const stale = call.reusedSocket && 'code' in error && error.code === 'ECONNRESET';
        reject(stale && !signal.aborted ? new StaleConnection() : error);
      });
      call.once('response', (message) => resolve(responseOf(message, method)));
      call.end(body);
    });
  }
}

class StaleConnection extends Error {}

/** Rests of answers that are read to their end, so that the connection can be used again. */
const SMALL_REST = 64 * 1024;

function discard(message: IncomingMessage, method: Request['method']): void {
  const length = Number(message.headers['content-length'] ?? Number.NaN);
  const small = method === 'HEAD' || length <= SMALL_REST;
  if (small && REUSES_CONNECTIONS) message.resume();
  else message.destroy();
}

function responseOf(message: IncomingMessage, method: Request['method']): Response {
  // A body that breaks off is seen by whoever reads it; one that nobody reads must not end the process.
  message.on('error', () => undefined);
  return {
    status: message.statusCode ?? 0,
    header: (name) => {
      const value = message.headers[name.toLowerCase()];
      return Array.isArray(value) ? value[0] : value;
    },
    body: message,
    discard: () => discard(message, method),
  };
}

const TLS_CODES = /^(?:CERT_|ERR_TLS_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|ERR_SSL|HOSTNAME_MISMATCH|EPROTO)/;

function explain(error: unknown, host: string, signal: AbortSignal, way = ''): RegistryError {
  if (error instanceof RegistryError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
  if (signal.aborted) return new RegistryError('Unreachable', `"${host}" did not answer in time${way}`);
  if (TLS_CODES.test(code))
    return new RegistryError('Untrusted', `the certificate of "${host}" does not verify: ${code}`);
  return new RegistryError('Unreachable', `"${host}" cannot be reached${way}: ${code}`, undefined, true);
}
