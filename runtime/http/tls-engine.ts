/**
 * Requests for whole answers on kept TLS connections, written and read by ourselves, on Node and on Bun: a third to a quarter of the processor time
 * that `node:https` takes, which counts where thousands of small objects are written. Everything else goes by {@link HttpsEngine}: bodies that are
 * read as they arrive, proxies, servers without TLS.
 */
import { isIP } from 'node:net';
import { type ConnectionOptions, connect } from 'node:tls';
import { reveal } from '../rules/redacted.ts';
import { HttpsEngine } from './https-engine.ts';
import type { EngineRequest, HttpAnswer, HttpEngine, Identity, Route } from './request.ts';
import { StaleConnection, TlsConnection } from './tls-connection.ts';

/** Connections to one place that wait for another request. */
const MOST_IDLE = 32;
const PRINTABLE = /^[\t\x20-\x7e]*$/;
const PATH = /^[\x21-\x7e]+$/;

/** See {@link HttpEngine}. */
export class TlsEngine implements HttpEngine {
  readonly #route: Route;
  readonly #others: HttpsEngine;
  /** By origin and address. */
  readonly #idle = new Map<string, TlsConnection[]>();
  readonly #open = new Set<TlsConnection>();
  #certificate = '';

  constructor(route: Route = {}) {
    this.#route = route;
    this.#others = new HttpsEngine(route);
  }

  async send(request: EngineRequest): Promise<HttpAnswer> {
    if (!this.#isOurs(request)) return this.#others.send(request);
    try {
      return await this.#once(request);
    } catch (error) {
      // The server may close a kept connection at the moment in which it is used again.
      const repeatable = request.repeatable ?? (request.method === 'GET' || request.method === 'HEAD');
      if (!(error instanceof StaleConnection)) throw error;
      if (!repeatable || request.halts.some(({ halted }) => halted)) throw error.cause;
      return this.#once(request);
    }
  }

  close(): void {
    this.#others.close();
    for (const connection of this.#open) connection.destroy();
  }

  #isOurs({ whole, origin, url, headers }: EngineRequest): boolean {
    if (whole !== true || !origin.startsWith('https:') || this.#route.proxyFor?.(origin) !== undefined)
      return false;
    return PATH.test(url) && Object.values(headers).every((value) => PRINTABLE.test(value));
  }

  #once(request: EngineRequest): Promise<HttpAnswer> {
    const { method, halts } = request;
    const connection = this.#connectionFor(request);
    return connection.ask({ method, text: requestText(request), halts });
  }

  #connectionFor({ origin, address, identity }: EngineRequest): TlsConnection {
    const { certificate = '' } = identity ?? {};
    // What is under way on the old ones goes on until it ends by itself.
    if (this.#certificate !== certificate) this.#endIdle();
    this.#certificate = certificate;
    const place = `${origin} ${address ?? ''}`;
    const idle = this.#idle.get(place)?.pop();
    if (idle !== undefined) return idle;
    const made: TlsConnection = new TlsConnection(
      connect(optionsOf(this.#route, { origin, address, identity })),
      {
        free: () => this.#free(place, certificate, made),
        gone: () => this.#forget(place, made),
      },
    );
    this.#open.add(made);
    return made;
  }

  #free(place: string, certificate: string, connection: TlsConnection): void {
    const idle = this.#idle.get(place) ?? [];
    if (idle.length >= MOST_IDLE || certificate !== this.#certificate) return connection.destroy();
    idle.push(connection);
    this.#idle.set(place, idle);
  }

  #forget(place: string, connection: TlsConnection): void {
    this.#open.delete(connection);
    const idle = (this.#idle.get(place) ?? []).filter((one) => one !== connection);
    if (idle.length === 0) this.#idle.delete(place);
    else this.#idle.set(place, idle);
  }

  #endIdle(): void {
    for (const connection of [...this.#idle.values()].flat()) connection.destroy();
  }
}

function requestText({ method, url, origin, headers, body }: EngineRequest): string {
  let head = `${method} ${pathOf(url, origin)} HTTP/1.1\r\nhost: ${origin.slice('https://'.length)}\r\n`;
  for (const name in headers) head += `${name}: ${headers[name]}\r\n`;
  return body === undefined
    ? `${head}\r\n`
    : `${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function pathOf(url: string, origin: string): string {
  const [path = ''] = url.slice(origin.length).split('#', 1);
  return path.startsWith('/') ? path : `/${path}`;
}

/** Of TLS, the name is that of the URL. An address has none; the certificate is then checked against the address. */
function optionsOf(
  { ca, serverName }: Route,
  {
    origin,
    address,
    identity,
  }: { origin: string; address: string | undefined; identity: Identity | undefined },
): ConnectionOptions {
  const { hostname, port } = new URL(origin);
  const host = hostname.replace(/^\[|\]$/g, '');
  const name = serverName ?? (isIP(host) === 0 ? host : undefined);
  return {
    host: address ?? host,
    port: port === '' ? 443 : Number(port),
    // Said aloud: NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment must not count.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
    ...(name === undefined ? {} : { servername: name }),
    ...(ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : [...ca] }),
    ...(identity?.certificate === undefined ? {} : { cert: identity.certificate }),
    ...(identity?.key === undefined ? {} : { key: reveal(identity.key) }),
  };
}
