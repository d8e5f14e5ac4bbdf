/** Requests by `node:https` on connections that are kept. */
import type { IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { urlToHttpOptions } from 'node:url';
import { reveal } from '../rules/redacted.ts';
import type { Connection, Credentials } from './connection.ts';
import { type Transport, type TransportRequest, type TransportResponse, urlOf } from './transport.ts';

/** See {@link Transport}. */
export class NodeTransport implements Transport {
  readonly #connection: Connection;
  /** Read once: reading a URL costs as much as the rest of making a request. */
  readonly #server: ReturnType<typeof urlToHttpOptions>;
  #agent: Agent | undefined;
  #identity = '';

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#server = urlToHttpOptions(new URL(urlOf(connection, '/')));
  }

  send(request: TransportRequest): Promise<TransportResponse> {
    const { method, path, headers, body, signal, credentials } = request;
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const call = httpsRequest({
        ...this.#server,
        path: `${(this.#server.path ?? '/').slice(0, -1)}${path}`,
        method,
        headers,
        agent: this.#agentFor(credentials),
      });
      // As the option `signal` does, at a tenth of its cost.
      const abort = (): void => void call.destroy(new Error('aborted'));
      signal.addEventListener('abort', abort, { once: true });
      call.once('close', () => signal.removeEventListener('abort', abort));
      call.once('error', reject);
      call.once('response', (message) => resolve(responseOf(message)));
      call.end(body);
    });
  }

  close(): void {
    this.#agent?.destroy();
  }

  /** One agent as long as the client certificate stays the same. */
  #agentFor(credentials: Credentials): Agent {
    const identity = credentials.certificate ?? '';
    if (this.#agent !== undefined && this.#identity === identity) return this.#agent;
    // Open watches on the old one go on until they end by themselves.
    this.#identity = identity;
    this.#agent = newAgent(this.#connection, credentials);
    return this.#agent;
  }
}

/** Keeps its connections under one name: it has one server. The usual name is made of all certificates, anew for each request. */
class OneServerAgent extends Agent {
  override getName(): string {
    return 'server';
  }
}

function newAgent(connection: Connection, { certificate, key }: Credentials): Agent {
  return new OneServerAgent({
    keepAlive: true,
    keepAliveMsecs: 30_000,
    maxFreeSockets: 32,
    // Said aloud: NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment must not count.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    ...(connection.ca === undefined ? {} : { ca: connection.ca }),
    ...(connection.serverName === undefined ? {} : { servername: connection.serverName }),
    ...(certificate === undefined ? {} : { cert: certificate }),
    ...(key === undefined ? {} : { key: reveal(key) }),
    ...(connection.proxy === undefined ? {} : { proxyEnv: { HTTPS_PROXY: reveal(connection.proxy) } }),
  });
}

function responseOf(message: IncomingMessage): TransportResponse {
  return {
    status: message.statusCode ?? 0,
    header: (name) => {
      const value = message.headers[name.toLowerCase()];
      return Array.isArray(value) ? value[0] : value;
    },
    body: message,
    text: (limit) => textOf(message, limit),
  };
}

function textOf(message: IncomingMessage, limit: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let size = 0;
    message.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > limit) message.destroy(new RangeError(`The answer is longer than ${limit} bytes`));
      else parts.push(chunk);
    });
    message.once('end', () => resolve(Buffer.concat(parts).toString('utf8')));
    message.once('error', reject);
    message.once('close', () => reject(new Error('The answer ended before its end')));
  });
}
