/**
 * Requests over one TLS connection of the compiled runtime, one after the other.
 *
 * Its `fetch` reads the certificates of every public authority, twice, before it connects to a server whose authority it was
 * given; here nothing is read but that one.
 */
import type { Exchange, RawAnswer } from './api-client.ts';
import type { ApiServer } from './api-server.ts';
import { AnswerReader } from './http-answer.ts';

interface BunSocket {
  readonly authorized: boolean;
  /** Gives how much was taken. */
  write(bytes: Uint8Array): number;
  terminate(): void;
}

interface BunHandlers {
  readonly binaryType: 'uint8array';
  handshake(socket: BunSocket, isTrusted: boolean, reason: Error | null): void;
  data(socket: BunSocket, bytes: Uint8Array): void;
  drain(socket: BunSocket): void;
  close(): void;
  end(): void;
  error(socket: BunSocket, error: Error): void;
  connectError(socket: BunSocket, error: Error): void;
}

interface BunGlobal {
  connect(options: {
    readonly hostname: string;
    readonly port: number;
    readonly tls: { readonly ca: string; readonly rejectUnauthorized: true; readonly serverName: string };
    readonly socket: BunHandlers;
  }): Promise<unknown>;
}

/** Exchanges with one server. Everything under way fails when `signal` is aborted, and the connection is gone. */
export function socketExchange(signal: AbortSignal): Exchange {
  let line: Line | undefined;
  let last: Promise<unknown> = Promise.resolve();
  signal.addEventListener('abort', () => line?.lose(new Error('aborted')), { once: true });
  const ask: Exchange = async (url, headers, server) => {
    signal.throwIfAborted();
    if (line === undefined || line.isLost) line = new Line(server);
    return line.ask(requestText(url, headers));
  };
  return (url, headers, server) => {
    const answer = last.then(() => ask(url, headers, server));
    last = answer.catch(() => undefined);
    return answer;
  };
}

function requestText(url: string, headers: Readonly<Record<string, string>>): string {
  const { host, pathname, search } = new URL(url);
  let lines = `GET ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\n`;
  for (const name in headers) {
    const value = headers[name] ?? '';
    if (value.includes('\n') || value.includes('\r')) throw new Error(`header "${name}" has a line break`);
    lines += `${name}: ${value}\r\n`;
  }
  return `${lines}\r\n`;
}

interface Waiting {
  resolve(answer: RawAnswer): void;
  reject(error: Error): void;
}

/** One connection. Nothing is written before the server has shown a certificate of the given authority for its name. */
class Line {
  #socket: BunSocket | undefined;
  #unsent: Uint8Array = new Uint8Array();
  #reader = new AnswerReader();
  #waiting: Waiting | undefined;
  #lost: Error | undefined;

  constructor(server: ApiServer) {
    const { hostname, port } = new URL(server.url);
    const name = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
    const lose = (error: Error): void => this.lose(error);
    const bun = (globalThis as unknown as { Bun: BunGlobal }).Bun;
    try {
      bun
        .connect({
          hostname: name,
          port: port === '' ? 443 : Number(port),
          // Verification is asked for explicitly, because the environment can change the default.
          tls: { ca: server.ca, rejectUnauthorized: true, serverName: name },
          socket: {
            binaryType: 'uint8array',
            handshake: (socket, isTrusted, reason) => this.#trust(socket, isTrusted, reason),
            data: (_, bytes) => this.#take(bytes),
            drain: () => this.#send(),
            end: () => this.#closed(),
            close: () => this.#closed(),
            error: (_, error) => lose(error),
            connectError: (_, error) => lose(error),
          },
        })
        .catch(lose);
    } catch (error) {
      // A CA that is no certificate is refused here.
      lose(error instanceof Error ? error : new Error('no connection'));
    }
  }

  get isLost(): boolean {
    return this.#lost !== undefined;
  }

  ask(text: string): Promise<RawAnswer> {
    return new Promise((resolve, reject) => {
      if (this.#lost !== undefined) return reject(this.#lost);
      this.#waiting = { resolve, reject };
      this.#reader = new AnswerReader();
      this.#unsent = new TextEncoder().encode(text);
      this.#send();
    });
  }

  lose(error: Error): void {
    this.#lost ??= error;
    this.#waiting?.reject(this.#lost);
    this.#waiting = undefined;
    this.#socket?.terminate();
    this.#socket = undefined;
  }

  #trust(socket: BunSocket, isTrusted: boolean, reason: Error | null): void {
    if (!isTrusted || !socket.authorized) {
      this.lose(reason ?? new Error('the certificate of the server is not trusted'));
      socket.terminate();
    } else if (this.#lost !== undefined) socket.terminate();
    else {
      this.#socket = socket;
      this.#send();
    }
  }

  #send(): void {
    if (this.#socket === undefined || this.#unsent.length === 0) return;
    this.#unsent = this.#unsent.subarray(Math.max(0, this.#socket.write(this.#unsent)));
  }

  #take(bytes: Uint8Array): void {
    if (this.#waiting === undefined) this.lose(new Error('the server spoke without being asked'));
    else this.#finish(() => this.#reader.add(bytes));
  }

  #closed(): void {
    if (this.#waiting !== undefined) this.#finish(() => this.#reader.end());
    this.lose(new Error('the connection was closed'));
  }

  #finish(read: () => RawAnswer | undefined): void {
    try {
      const answer = read();
      if (answer === undefined) return;
      this.#waiting?.resolve(answer);
      this.#waiting = undefined;
      if (this.#reader.isLast) this.lose(new Error('the connection was closed'));
    } catch (error) {
      this.lose(error instanceof Error ? error : new Error('no answer'));
    }
  }
}
