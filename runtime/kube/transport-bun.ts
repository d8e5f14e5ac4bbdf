/** Requests by the fetch of Bun, for the compiled executable behind a proxy: its `node:https` does not know proxies. */
import { reveal } from '../rules/redacted.ts';
import type { Connection, Credentials } from './connection.ts';
import { type Transport, type TransportRequest, type TransportResponse, urlOf } from './transport.ts';

/** What Bun's fetch takes beyond the standard. */
interface BunRequestInit extends RequestInit {
  readonly tls: {
    readonly rejectUnauthorized: true;
    readonly ca?: string;
    readonly cert?: string;
    readonly key?: string;
    readonly serverName?: string;
  };
  readonly proxy?: string;
  /** Without it, Bun ends a request after five minutes: shorter than a watch. */
  readonly timeout: false;
}

/** See {@link Transport}. */
export class BunTransport implements Transport {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    const { proxy } = this.#connection;
    const init: BunRequestInit = {
      method: request.method,
      headers: request.headers,
      signal: request.signal,
      redirect: 'manual',
      timeout: false,
      tls: tlsOf(this.#connection, request.credentials),
      ...(request.body === undefined ? {} : { body: request.body }),
      ...(proxy === undefined ? {} : { proxy: reveal(proxy) }),
    };
    const response = await fetch(urlOf(this.#connection, request.path), init);
    return {
      status: response.status,
      header: (name) => response.headers.get(name) ?? undefined,
      body: response.body ?? emptyBody(),
    };
  }

  close(): void {
    // Connections belong to the runtime.
  }
}

function tlsOf(connection: Connection, { certificate, key }: Credentials): BunRequestInit['tls'] {
  return {
    rejectUnauthorized: true,
    ...(connection.ca === undefined ? {} : { ca: connection.ca }),
    ...(connection.serverName === undefined ? {} : { serverName: connection.serverName }),
    ...(certificate === undefined ? {} : { cert: certificate }),
    ...(key === undefined ? {} : { key: reveal(key) }),
  };
}

async function* emptyBody(): AsyncGenerator<Uint8Array> {
  // A response without a body ends at once.
}
