/**
 * HTTPS whose certificate can change while it serves. TLS and HTTP are two servers, and the one hands its connections to the other: the
 * HTTPS server of the runtime that the executable brings along cannot take another certificate, its TLS server can.
 */
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:tls';
import type { CertificatePair } from './serving-certificate.ts';

export interface HttpsServerOptions {
  readonly pair: CertificatePair;
  readonly listener: RequestListener;
  /** A connection on which nothing moves for so long is ended, and one on which a request takes so long to arrive. */
  readonly idleMs: number;
  /** Further connections are ended at once. @default {no bound} */
  readonly maxConnections?: number;
}

const HANDSHAKE_MS = 10_000;
/** How long an answered connection is kept for another request. */
const KEPT_MS = 5000;

export class HttpsServer {
  readonly #http: Server;
  readonly #tls: TlsServer;
  readonly #sockets = new Set<Socket>();
  readonly #busy = new Set<Socket>();
  readonly #expected = new Map<Socket, NodeJS.Timeout>();
  readonly #options: HttpsServerOptions;
  #connections = 0;
  #isClosing = false;

  constructor(options: HttpsServerOptions) {
    this.#options = options;
    this.#http = createServer(
      {
        maxHeaderSize: 16_384,
        keepAliveTimeout: Math.min(KEPT_MS, options.idleMs),
      },
      (request, response) => {
        this.#answering(request.socket, response);
        this.#arriving(request, response);
        options.listener(request, response);
      },
    );
    this.#tls = createTlsServer(
      { ...options.pair, minVersion: 'TLSv1.2', handshakeTimeout: HANDSHAKE_MS },
      (socket) => {
        this.#watch(socket);
        this.#expect(socket, options.idleMs);
        socket.once('close', () => this.#forget(socket));
        this.#http.emit('connection', socket);
      },
    );
    this.#tls.on('connection', (socket: Socket) => this.#admit(socket));
    // A client that does not like the certificate, or is none of TLS: nobody's fault here.
    this.#tls.on('tlsClientError', () => undefined);
  }

  /**
   * Listens, and gives the port.
   *
   * @param port 0 lets the system choose
   * @throws Error with `code`, as `listen` of Node does
   */
  async listen(port: number, host?: string): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#tls.once('error', reject);
      this.#tls.listen(port, host, () => {
        this.#tls.off('error', reject);
        resolve();
      });
    });
    return (this.#tls.address() as AddressInfo).port;
  }

  /** New connections get this certificate; those that are open go on. */
  renew(pair: CertificatePair): void {
    this.#tls.setSecureContext({ ...pair, minVersion: 'TLSv1.2' });
  }

  /** The process does not stay for it alone. */
  unref(): void {
    this.#tls.unref();
  }

  /** Takes no more, answers what is being asked within `graceMs`, and ends every connection. */
  async close(graceMs = 0): Promise<void> {
    this.#isClosing = true;
    const closed = new Promise<void>((resolve) => this.#tls.close(() => resolve()));
    for (const socket of this.#sockets) if (graceMs === 0 || !this.#isAnswering(socket)) socket.destroy();
    const timer = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, graceMs);
    await closed;
    clearTimeout(timer);
  }

  /** Of a connection there are two: the one below TLS must not go while the one above answers. */
  #isAnswering(socket: Socket): boolean {
    for (const busy of this.#busy) if (busy === socket || busy.remotePort === socket.remotePort) return true;
    return false;
  }

  #admit(socket: Socket): void {
    this.#watch(socket);
    this.#connections += 1;
    socket.once('close', () => {
      this.#connections -= 1;
    });
    if (this.#connections > (this.#options.maxConnections ?? Number.POSITIVE_INFINITY)) socket.destroy();
  }

  #watch(socket: Socket): void {
    socket.on('error', () => undefined);
    socket.once('close', () => this.#sockets.delete(socket));
    this.#sockets.add(socket);
    socket.setTimeout(this.#options.idleMs, () => socket.destroy());
  }

  /** Ends the connection unless a request has arrived within `ms`: a letter now and then keeps none open for ever. */
  #expect(socket: Socket, ms: number): void {
    this.#forget(socket);
    if (socket.destroyed) return;
    this.#expected.set(
      socket,
      setTimeout(() => socket.destroy(), ms),
    );
  }

  #forget(socket: Socket): void {
    clearTimeout(this.#expected.get(socket));
    this.#expected.delete(socket);
  }

  #arriving(request: IncomingMessage, response: { once(event: 'close', then: () => void): unknown }): void {
    const { socket } = request;
    request.once('end', () => this.#forget(socket));
    response.once('close', () => this.#expect(socket, KEPT_MS + this.#options.idleMs));
  }

  #answering(socket: Socket, response: { once(event: 'close', then: () => void): unknown }): void {
    this.#busy.add(socket);
    response.once('close', () => {
      this.#busy.delete(socket);
      if (this.#isClosing) socket.end(() => socket.destroy());
    });
  }
}
