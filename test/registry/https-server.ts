/** An HTTPS server on loopback that does as it is told and remembers what it got. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { close, listen } from '../support/loopback.ts';

export interface Seen {
  readonly method: string;
  readonly url: string;
  /** As the client names the server. */
  readonly host: string;
  readonly authorization: string | undefined;
  readonly body: string;
}

export interface TestServer {
  /** `localhost:<port>` */
  readonly host: string;
  readonly seen: Seen[];
  stop(): void;
}

/** One CA for all servers of a file. */
export const certificates: Certificates = makeCertificates();

const started: TestServer[] = [];

/** Stops every server of this file. */
export function stopServers(): void {
  for (const one of started) one.stop();
}

export async function startServer(
  handle: (request: Seen, response: ServerResponse, raw: IncomingMessage) => void,
  own: Certificates = certificates,
): Promise<TestServer> {
  const seen: Seen[] = [];
  const server = createServer({ cert: own.cert, key: own.key }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const one: Seen = {
        method: request.method ?? '',
        url: request.url ?? '',
        host: request.headers.host ?? '',
        authorization: request.headers.authorization,
        body: Buffer.concat(chunks).toString(),
      };
      seen.push(one);
      handle(one, response, request);
    });
  });
  // A client that does not trust us hangs up during the handshake.
  server.on('tlsClientError', () => undefined);
  const port = await listen(server);
  const one: TestServer = {
    host: `localhost:${port}`,
    seen,
    stop: () => void close(server),
  };
  started.push(one);
  return one;
}

/** A handler that answers every request alike. */
export const answering =
  (status: number, headers: OutgoingHttpHeaders = {}, body?: string) =>
  (_: Seen, response: ServerResponse): void =>
    void response.writeHead(status, headers).end(body);
