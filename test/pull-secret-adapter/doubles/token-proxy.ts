/** A forward proxy that leads to our own token endpoint, with a certificate for its real name: google-auth-library has the address built in. */
import { createServer, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:tls';
import { makeCertificates } from '../../support/certificates.ts';
import { listen, portOf } from '../../support/loopback.ts';

export class TokenProxy {
  /** `host:port` of every requested tunnel. */
  readonly connects: string[] = [];
  readonly ca: string;
  readonly #proxy: Server;
  readonly #tls: TlsServer;
  readonly #sockets = new Set<Socket>();

  private constructor(backend: number) {
    const { ca, cert, key } = makeCertificates({ hosts: ['oauth2.googleapis.com'] });
    this.ca = ca;
    this.#tls = createTlsServer({ cert, key }, (socket) => this.#join(socket, connect(backend, '127.0.0.1')));
    this.#proxy = createServer((_, response) => response.writeHead(405).end());
    this.#proxy.on('connect', (request, socket: Socket) => {
      this.connects.push(request.url ?? '');
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      this.#join(socket, connect(portOf(this.#tls), '127.0.0.1'));
    });
  }

  /** @param backend port of the double that answers */
  static async start(backend: number): Promise<TokenProxy> {
    const proxy = new TokenProxy(backend);
    for (const server of [proxy.#tls, proxy.#proxy]) await listen(server);
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${portOf(this.#proxy)}`;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    for (const server of [this.#tls, this.#proxy]) await new Promise((resolve) => server.close(resolve));
  }

  #join(one: Socket, other: Socket): void {
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      this.#sockets.add(from);
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroy());
      from.pipe(to);
    }
  }
}
