/** Requests by `node:https` on connections that are kept, on Node and on Bun; through a proxy as well. */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from 'node:https';
import { isIP } from 'node:net';
import { urlToHttpOptions } from 'node:url';
import { type Redacted, reveal } from '../core/redacted.ts';
import { tooLarge, torn } from './http-error.ts';
import type { EngineRequest, HttpAnswer, HttpEngine, Identity, Route } from './request.ts';

/** See {@link HttpEngine}. */
export class HttpsEngine implements HttpEngine {
  readonly #route: Route;
  readonly #plain = new HttpAgent({ keepAlive: true });
  /** Agents by proxy; the empty key means no proxy. */
  readonly #agents = new Map<string, HttpsAgent>();
  #identity = '';

  constructor(route: Route = {}) {
    this.#route = route;
  }

  async send(request: EngineRequest): Promise<HttpAnswer> {
    try {
      return await this.#once(request);
    } catch (error) {
      // The server may close a kept connection at the moment in which it is used again.
      const repeatable = request.repeatable ?? (request.method === 'GET' || request.method === 'HEAD');
      if (!(error instanceof StaleConnection)) throw error;
      if (!repeatable || request.halts.some(({ aborted }) => aborted)) throw error.cause;
      return this.#once(request);
    }
  }

  close(): void {
    this.#plain.destroy();
    for (const agent of this.#agents.values()) agent.destroy();
  }

  #once(request: EngineRequest): Promise<HttpAnswer> {
    const { method, origin, headers, body, halts } = request;
    const secure = origin.startsWith('https:');
    const target = urlToHttpOptions(new URL(origin));
    const proxy = secure ? this.#route.proxyFor?.(origin) : undefined;
    const options: RequestOptions = {
      ...target,
      ...(request.address === undefined ? {} : addressed(request.address, target)),
      path: pathOf(request.url, origin),
      method,
      headers: {
        ...(request.address === undefined ? {} : { host: origin.slice(origin.indexOf('//') + 2) }),
        ...headers,
        // Node does not set it for methods that usually have no body, such as DELETE.
        ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
      },
      agent: secure ? this.#agentFor(request.identity, proxy) : this.#plain,
    };
    return new Promise((resolve, reject) => {
      const call = (secure ? httpsRequest : httpRequest)(options);
      // Does the same as the option `signal`, at lower cost.
      const abort = (): void => void call.destroy(new Error('aborted'));
      for (const halt of halts) halt.addEventListener('abort', abort, { once: true });
      call.once('close', () => {
        for (const halt of halts) halt.removeEventListener('abort', abort);
      });
      call.once('error', (error) => {
        const stale = call.reusedSocket && 'code' in error && error.code === 'ECONNRESET';
        reject(stale ? new StaleConnection('stale', { cause: error }) : error);
      });
      call.once('response', (message) => resolve(answerOf(message, method)));
      call.end(body);
    });
  }

  /** One agent for each proxy, as long as the client certificate stays the same. */
  #agentFor(identity: Identity | undefined, proxy: Redacted<string> | undefined): HttpsAgent {
    const { certificate = '' } = identity ?? {};
    // Requests in progress on the old agents continue.
    if (this.#identity !== certificate) this.#agents.clear();
    this.#identity = certificate;
    const name = proxy === undefined ? '' : reveal(proxy);
    const known = this.#agents.get(name);
    if (known !== undefined) return known;
    const made = newAgent(this.#route, identity, name);
    this.#agents.set(name, made);
    return made;
  }
}

class StaleConnection extends Error {}

/** Keys connections by host, port and server name. Node's key also contains all certificates, but each agent here has one set. */
class OneTrustAgent extends HttpsAgent {
  override getName(options: RequestOptions = {}): string {
    return `${options.host} ${options.port} ${options.servername ?? ''}`;
  }
}

function newAgent({ ca, serverName }: Route, identity: Identity | undefined, proxy: string): HttpsAgent {
  return new OneTrustAgent({
    keepAlive: true,
    keepAliveMsecs: 30_000,
    // Under load, Node frees a connection only after the next request has opened another: without a low limit, many stay idle.
    maxFreeSockets: 4,
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment has no effect.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    ...(ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : [...ca] }),
    ...(serverName === undefined ? {} : { servername: serverName }),
    ...(identity?.certificate === undefined ? {} : { cert: identity.certificate }),
    ...(identity?.key === undefined ? {} : { key: reveal(identity.key) }),
    ...(proxy === '' ? {} : { proxyEnv: { HTTPS_PROXY: proxy } }),
  });
}

/** TLS verifies the host name of the URL. If that host is an address, the certificate is checked against the address. */
function addressed(address: string, target: ReturnType<typeof urlToHttpOptions>): RequestOptions {
  const host = (target.hostname ?? '').replace(/^\[|\]$/g, '');
  return {
    host: address,
    hostname: address,
    ...(isIP(host) === 0 ? { servername: host } : {}),
  };
}

function pathOf(url: string, origin: string): string {
  const [path = ''] = url.slice(origin.length).split('#');
  return path.startsWith('/') ? path : `/${path}`;
}

/** Unread bodies up to this size are drained, so that the connection can be reused. */
const SMALL_REST = 64 * 1024;

function answerOf(message: IncomingMessage, method: string): HttpAnswer {
  // An error of a body that has no reader must not end the process.
  message.on('error', () => undefined);
  const header = (name: string): string | undefined => [message.headers[name.toLowerCase()]].flat()[0];
  const bytes = (limitBytes: number): Promise<Uint8Array> =>
    new Promise((resolve, reject) => {
      const parts: Buffer[] = [];
      let size = 0;
      message.on('data', (chunk: Buffer) => {
        size += chunk.length;
        parts.push(chunk);
        if (size <= limitBytes) return;
        parts.length = 0;
        message.destroy(tooLarge(limitBytes));
      });
      message.once('end', () => resolve(parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts)));
      message.once('error', (error) => reject(torn(error)));
      // Creating an error is expensive, and every response closes: create one only for truncated bodies.
      message.once('close', () => {
        if (!message.readableEnded) reject(torn(undefined));
      });
    });
  const discard = (): void => {
    const length = Number(header('content-length') ?? Number.NaN);
    if (method === 'HEAD' || length <= SMALL_REST) message.resume();
    else message.destroy();
  };
  return { status: message.statusCode ?? 0, header, body: message, bytes, discard };
}
