/** The small HTTP servers of a pod: `/healthz` and `/readyz` on one port, `/metrics` on another (or the same). */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Why something is not well; undefined when it is. */
export type Check = () => string | undefined;

/** Content of a page. */
export interface Page {
  readonly text: string;
  readonly contentType: string;
}

export interface ServeOptions {
  /** 0 lets the system choose. */
  readonly port: number;
  /** @default {'::' where IPv6 is there, else '0.0.0.0'} */
  readonly host?: string;
  readonly checks?: Readonly<Record<'/healthz' | '/readyz', Check>>;
  readonly metrics?: () => Promise<Page>;
}

export interface ProbeServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Listens. A check that fails answers 503 with its reason. */
export async function serveProbes(options: ServeOptions): Promise<ProbeServer> {
  const server = createServer((request, response) => {
    answer(options, request, response).catch(() => send(response, 500, 'the page failed'));
  });
  server.requestTimeout = 10_000;
  server.listen(options.port, options.host);
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, close: () => closeServer(server) };
}

async function answer(
  options: ServeOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const path = (request.url ?? '').split('?')[0] ?? '';
  if (request.method !== 'GET' && request.method !== 'HEAD') return send(response, 405, 'GET only');
  if (path === '/metrics' && options.metrics !== undefined) {
    const { text, contentType } = await options.metrics();
    return send(response, 200, text, contentType);
  }
  if ((path === '/healthz' || path === '/readyz') && options.checks !== undefined) {
    const problem = options.checks[path]();
    return problem === undefined ? send(response, 200, 'ok') : send(response, 503, problem);
  }
  send(response, 404, 'not found');
}

function send(response: ServerResponse, status: number, text: string, contentType = 'text/plain'): void {
  response.writeHead(status, { 'content-type': contentType, 'x-content-type-options': 'nosniff' });
  response.end(`${text.trimEnd()}\n`);
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}
