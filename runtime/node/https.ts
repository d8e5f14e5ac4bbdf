/**
 * HTTPS server whose certificate can be renewed while it serves. A TLS server hands its connections to an HTTP server,
 * because in Bun only the TLS server can replace its certificate.
 */

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createSecureContext, createServer as createTlsServer, type Server as TlsServer } from 'node:tls';
import { errnoOf, PullwrightError } from '../core/errors.ts';
import { scalarText } from '../core/record.ts';

export interface HttpsServerOptions {
  readonly pair: CertificatePair;
  readonly listener: RequestListener;
  /** Timeout of idle connections, and of requests that are being received. */
  readonly idleMs: number;
  /** Connections beyond this number are closed at once. @default {no bound} */
  readonly maxConnections?: number;
}

const HANDSHAKE_MS = 10_000;
/** Keep-alive timeout. */
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
      { maxHeaderSize: 16_384, keepAliveTimeout: Math.min(KEPT_MS, options.idleMs) },
      (request, response) => {
        this.#follow(request, response);
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
    // The client rejects the certificate, or does not speak TLS: not an error of this server.
    this.#tls.on('tlsClientError', () => undefined);
  }

  /**
   * Listens, and returns the port.
   *
   * @param port 0: chosen by the system
   * @throws Error with `code`, as `listen` of Node does
   */
  async listen(port: number, host?: string): Promise<number> {
    const listening = once(this.#tls, 'listening');
    this.#tls.listen(port, host);
    await listening;
    return (this.#tls.address() as AddressInfo).port;
  }

  /** Uses this certificate for new connections; open ones continue. */
  renew(pair: CertificatePair): void {
    this.#tls.setSecureContext({ ...pair, minVersion: 'TLSv1.2' });
  }

  /** The server alone does not keep the process alive. */
  unref(): void {
    this.#tls.unref();
  }

  /** Stops listening, finishes open requests within `graceMs`, and closes every connection. */
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

  /** A connection has two sockets: the raw one must stay open while the TLS one responds. */
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

  /** Closes the connection unless a whole request arrives within `ms`, so that a slow client cannot hold it open. */
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

  /** Marks the connection as busy until the response is done, and then waits for the next request. */
  #follow(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    this.#busy.add(socket);
    request.once('end', () => this.#forget(socket));
    response.once('close', () => {
      this.#busy.delete(socket);
      if (this.#isClosing) socket.end(() => socket.destroy());
      this.#expect(socket, KEPT_MS + this.#options.idleMs);
    });
  }
}

// A serving certificate from files that cert-manager or service-ca renews. The kubelet updates a mounted Secret by swapping a
// symbolic link, which file watchers can miss, so the files are polled. A pair that does not match, as between two writes, is
// ignored: the old one stays in use.

export interface CertificateFiles {
  readonly certificate: string;
  readonly key: string;
}

/** PEM of a matching pair. */
export type CertificatePair = Readonly<Awaited<ReturnType<typeof readPair>>>;

/** Reads the pair. @throws PullwrightError `CertificateUnusable` with the file and the cause */
export async function readPair(files: CertificateFiles) {
  const [cert, key] = await Promise.all([readText(files.certificate), readText(files.key)]);
  const problem = pairProblem(cert, key);
  if (problem === undefined) return { cert, key };
  throw unusable(`"${files.certificate}" and "${files.key}": ${problem}`);
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw unusable(`"${file}": cannot read it (${errnoOf(error) ?? 'unknown error'})`);
  }
}

function unusable(what: string): PullwrightError {
  return new PullwrightError(`Cannot use the certificate ${what}`, {
    code: 'CertificateUnusable',
    hint: 'Expected tls.crt and tls.key of one pair in PEM, as cert-manager and service-ca write them',
  });
}

function notTaken(error: unknown): PullwrightError {
  const why = error instanceof Error ? error.message : scalarText(error);
  return new PullwrightError(`Cannot load the new certificate: ${why}`, {
    code: 'CertificateUnusable',
    hint: 'Restart the pod to load the current files',
  });
}

function pairProblem(cert: string, key: string): string | undefined {
  try {
    const leaf = new X509Certificate(cert);
    if (!leaf.checkPrivateKey(createPrivateKey(key))) return 'the key is not that of the certificate';
    createSecureContext({ cert, key });
    return undefined;
  } catch {
    return 'they are not a PEM certificate and key';
  }
}

/** When the certificate expires. */
export function expiry(pair: CertificatePair): Date {
  return new Date(new X509Certificate(pair.cert).validTo);
}

/** Why the certificate is invalid now: expired, or not yet valid. */
export function untimely(pair: CertificatePair, now: Date): string | undefined {
  const { validFrom, validTo } = new X509Certificate(pair.cert);
  const [from, to] = [new Date(validFrom), new Date(validTo)];
  if (now >= to)
    return `its certificate expired at ${to.toISOString()}, and the API server rejects it: check the renewal by service-ca or cert-manager`;
  return now < from
    ? `its certificate is not valid before ${from.toISOString()}: check the clocks and the issuer`
    : undefined;
}

export interface CertificateWatchOptions {
  readonly files: CertificateFiles;
  readonly everyMs: number;
  /** The pair in use. */
  readonly present: CertificatePair;
  readonly onChange: (pair: CertificatePair) => void;
  /** Called once per kind of failure; the old pair stays in use. */
  readonly onProblem: (problem: PullwrightError) => void;
}

/** Polls until stopped. */
export function watchPair(options: CertificateWatchOptions): () => void {
  let { present } = options;
  let said = '';
  let looking = false;
  const look = async (): Promise<void> => {
    if (looking) return;
    looking = true;
    try {
      const next = await readPair(options.files);
      said = '';
      if (next.cert === present.cert && next.key === present.key) return;
      options.onChange(next);
      present = next;
    } catch (error) {
      // Report it before the old certificate expires.
      const problem = error instanceof PullwrightError ? error : notTaken(error);
      if (problem.message === said) return;
      said = problem.message;
      options.onProblem(problem);
    } finally {
      looking = false;
    }
  };
  const timer = setInterval(() => void look(), options.everyMs);
  return () => clearInterval(timer);
}
