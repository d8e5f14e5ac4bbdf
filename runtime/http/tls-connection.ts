/** One kept TLS connection that carries one request after the other. */
import type { TLSSocket } from 'node:tls';
import { AnswerReader } from './answer-reader.ts';
import type { Halting } from './halt.ts';
import { tooLarge, torn } from './http-error.ts';
import type { HttpAnswer } from './request.ts';

/** A kept connection had ended before the answer began. */
export class StaleConnection extends Error {}

export interface ConnectionEvents {
  /** It can carry another request. */
  free(): void;
  gone(): void;
}

export interface ConnectionRequest {
  readonly method: string;
  /** Head and body. */
  readonly text: string;
  /** Any of them ends the connection. */
  readonly halts: readonly Halting[];
}

const KEEP_ALIVE_MS = 30_000;

export class TlsConnection {
  readonly #socket: TLSSocket;
  readonly #events: ConnectionEvents;
  #asked: Asked | undefined;
  #isUsed = false;
  #isSecure = false;
  #waiting: string | undefined;
  #isGone = false;

  constructor(socket: TLSSocket, events: ConnectionEvents) {
    this.#socket = socket;
    this.#events = events;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    // Nothing is written before the certificate has been checked.
    socket.once('secureConnect', () => {
      this.#isSecure = true;
      if (this.#waiting !== undefined) socket.write(this.#waiting);
      this.#waiting = undefined;
    });
    socket.on('data', (bytes: Buffer) => this.#take(bytes));
    socket.on('error', (error) => this.#end(error));
    socket.on('end', () => this.#end(undefined));
    socket.on('close', () => this.#end(undefined));
  }

  /** Sends a request; one at a time. */
  ask({ method, text, halts }: ConnectionRequest): Promise<HttpAnswer> {
    const asked = new Asked(new AnswerReader(method), () => this.destroy());
    this.#asked = asked;
    const abort = (): void => this.#end(new Error('aborted'));
    for (const halt of halts) halt.listen(abort);
    asked.whenOver = () => {
      for (const halt of halts) halt.unlisten(abort);
    };
    if (this.#isUsed) this.#socket.ref();
    if (this.#isSecure) this.#socket.write(text);
    else this.#waiting = text;
    return asked.head;
  }

  destroy(): void {
    this.#end(undefined);
  }

  #take(bytes: Buffer): void {
    const asked = this.#asked;
    // Nobody has asked for anything.
    if (asked === undefined) return this.destroy();
    try {
      asked.reader.take(bytes);
    } catch (error) {
      return this.#end(error);
    }
    const { done, reusable } = asked.reader;
    if (done) this.#asked = undefined;
    asked.tell();
    if (reusable) this.#rest();
    else if (done) this.destroy();
  }

  /** Waits for another request, and does not keep the process alive for it. */
  #rest(): void {
    this.#isUsed = true;
    this.#socket.unref();
    this.#events.free();
  }

  #end(error: unknown): void {
    if (this.#isGone) return;
    this.#isGone = true;
    const asked = this.#asked;
    this.#asked = undefined;
    this.#socket.destroy();
    this.#events.gone();
    if (asked === undefined) return;
    if (error === undefined && asked.reader.end()) return asked.tell();
    const isStale = this.#isUsed && !asked.hasBegun && isReset(error);
    asked.fail(isStale ? new StaleConnection('stale', { cause: error ?? reset() }) : (error ?? reset()));
  }
}

function isReset(error: unknown): boolean {
  if (error === undefined) return true;
  return error instanceof Error && 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
}

function reset(): Error {
  return Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
}

/** One request that is under way, and its answer. */
class Asked implements HttpAnswer {
  readonly reader: AnswerReader;
  readonly head: Promise<HttpAnswer>;
  whenOver: () => void = () => undefined;
  readonly #destroy: () => void;
  readonly #begun: (answer: HttpAnswer) => void;
  readonly #failed: (error: unknown) => void;
  #body:
    | {
        readonly limit: number;
        readonly resolve: (bytes: Uint8Array) => void;
        readonly reject: (error: unknown) => void;
      }
    | undefined;
  #error: { readonly reason: unknown } | undefined;
  #isTold = false;

  constructor(reader: AnswerReader, destroy: () => void) {
    this.reader = reader;
    this.#destroy = destroy;
    const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
    this.head = promise;
    this.#begun = resolve;
    this.#failed = reject;
  }

  /** Whether a byte of the answer has come. */
  get hasBegun(): boolean {
    return this.reader.head !== undefined;
  }

  get status(): number {
    return this.reader.head?.status ?? 0;
  }

  get body(): AsyncIterable<Uint8Array> {
    return this.#whole();
  }

  header(name: string): string | undefined {
    return this.reader.head?.headers.get(name.toLowerCase());
  }

  /** More of it has come. */
  tell(): void {
    if (this.reader.done) this.whenOver();
    if (!this.#isTold && this.reader.head !== undefined) {
      this.#isTold = true;
      this.#begun(this);
    }
    this.#settle();
  }

  fail(reason: unknown): void {
    this.whenOver();
    this.#error = { reason };
    if (!this.#isTold) this.#failed(reason);
    this.#settle();
  }

  bytes(limit: number): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#body = { limit, resolve, reject };
      this.#settle();
    });
  }

  discard(): void {
    if (!this.reader.done) this.#destroy();
  }

  #settle(): void {
    const { reader } = this;
    if (this.#body === undefined) return;
    const { limit, resolve, reject } = this.#body;
    if (reader.size > limit) {
      reject(tooLarge(limit));
      this.#destroy();
    } else if (reader.done) resolve(reader.body());
    else if (this.#error !== undefined) reject(torn(this.#error.reason));
  }

  async *#whole(): AsyncGenerator<Uint8Array> {
    yield await this.bytes(Number.POSITIVE_INFINITY);
  }
}
