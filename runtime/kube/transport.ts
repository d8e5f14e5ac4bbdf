/** Bytes to and from an API server. Two implementations, chosen by what runs us: `node:https`, and Bun's fetch. */
import type { Connection, Credentials } from './connection.ts';

export interface TransportRequest {
  readonly method: string;
  /** Path and query, below the server's own path. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly credentials: Credentials;
  readonly signal: AbortSignal;
}

export interface TransportResponse {
  readonly status: number;
  header(name: string): string | undefined;
  /** The body as it arrives. Must be read to its end, or the signal aborted. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** Rejects only when there is no answer; every status is an answer. */
export interface Transport {
  send(request: TransportRequest): Promise<TransportResponse>;
  close(): void;
}

/** The transport for this runtime. */
export async function openTransport(connection: Connection): Promise<Transport> {
  if (process.versions['bun'] !== undefined)
    return new (await import('./transport-bun.ts')).BunTransport(connection);
  return new (await import('./transport-node.ts')).NodeTransport(connection);
}

/** The whole URL of a request. */
export function urlOf(connection: Connection, path: string): string {
  return connection.server.replace(/\/+$/, '') + path;
}
