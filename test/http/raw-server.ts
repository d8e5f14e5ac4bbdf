/** A server of TLS that answers byte by byte what it likes. */
import { createServer, type TLSSocket } from 'node:tls';
import { makeCertificates } from '../support/certificates.ts';
import { listen } from '../support/loopback.ts';

export const certificates: ReturnType<typeof makeCertificates> = makeCertificates();

interface RawServer {
  readonly url: string;
  /** Heads of the requests, in lower case. */
  readonly heads: string[];
  close(): void;
}

/** Speaks TLS, and answers each request by `answer`. */
export async function rawServer(answer: (socket: TLSSocket, head: string) => unknown): Promise<RawServer> {
  const heads: string[] = [];
  const open = new Set<TLSSocket>();
  const server = createServer({ cert: certificates.cert, key: certificates.key }, (socket) => {
    open.add(socket.on('error', () => undefined));
    socket.on('data', (chunk) => {
      const head = chunk.toString('latin1').toLowerCase();
      heads.push(head);
      void answer(socket, head);
    });
  });
  const port = await listen(server);
  return {
    url: `https://127.0.0.1:${port}/`,
    heads,
    close: () => {
      for (const socket of open) socket.destroy();
      server.close();
    },
  };
}
