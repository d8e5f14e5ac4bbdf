/** Bytes to and from an API server. Two implementations: `node:https` everywhere, but Bun's fetch where Bun must go through a proxy. */
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
  /** The whole body, where the runtime has a shorter way to it. Rejects with a RangeError when it is longer than `limit` bytes. */
  text?(limit: number): Promise<string>;
}

/** Rejects only when there is no answer; every status is an answer. */
export interface Transport {
  send(request: TransportRequest): Promise<TransportResponse>;
  close(): void;
}

/**
 * The transport for this runtime and connection. Bun's fetch has at most 256 requests under way, a watch is one of them, and
 * the limit can only be raised before the process starts; Bun's `node:https` has no such limit, but knows no proxies.
 */
export async function openTransport(connection: Connection): Promise<Transport> {
  if (process.versions['bun'] !== undefined && connection.proxy !== undefined)
    return new (await import('./transport-bun.ts')).BunTransport(connection);
  return new (await import('./transport-node.ts')).NodeTransport(connection);
}

/** The whole URL of a request. */
export function urlOf(connection: Connection, path: string): string {
  return connection.server.replace(/\/+$/, '') + path;
}
