/** One request and its repetitions: credentials, deadlines, Retry-After, and connection loss. */
import { PullwrightError } from '../rules/errors.ts';
import { reveal } from '../rules/redacted.ts';
import { apiErrorOf } from './api-error.ts';
import { type BackOff, backOffMs, pause, retryAfterMs } from './back-off.ts';
import type { Connection, Credentials } from './connection.ts';
import { bodyText } from './lines.ts';
import type { Transport, TransportResponse } from './transport.ts';

export interface RequesterOptions {
  readonly connection: Connection;
  readonly transport: Transport;
  readonly userAgent: string;
  /** Told about every answer; `code` is `<error>` when there was none, as in client-go. */
  readonly onRequest?: (seen: { readonly code: string; readonly method: string }) => void;
  /** Without an answer after this time a request has failed. @default {30000} */
  readonly timeoutMs?: number;
  /** Tries of one request. @default {5} */
  readonly tries?: number;
  readonly random?: () => number;
}

export interface Call {
  /** For messages: `get`, `apply`. */
  readonly verb: string;
  readonly subject: string;
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
  readonly contentType?: string;
  /** Statuses from 400 on that are answers, not errors. */
  readonly allow?: readonly number[];
  /** Not to be sent again once it may have been received. */
  readonly once?: boolean;
  readonly signal?: AbortSignal;
}

const BACK_OFF: BackOff = { firstMs: 100, maxMs: 5000 };
/** A server that asks for more patience than this is left to the caller's back-off. */
const LONGEST_RETRY_AFTER_MS = 10_000;
const MAX_BODY_BYTES = 256 * 1024 * 1024;
const RETRIED_STATUSES: readonly number[] = [429, 500, 502, 503, 504];

export class Requester {
  readonly #options: RequesterOptions;
  readonly #random: () => number;
  readonly #closing = new AbortController();

  constructor(options: RequesterOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
  }

  /** Ends what is under way, watches included; nothing is sent any more. */
  close(): void {
    this.#closing.abort();
    this.#options.transport.close();
  }

  /** Sends `call` until it is answered, and gives the parsed body. */
  async json(call: Call): Promise<{ readonly status: number; readonly body: unknown }> {
    return this.#repeat(call, async (signal) => {
      const response = await this.#send(call, signal);
      const body = parsed(await textOf(response));
      if (response.status >= 400 && call.allow?.includes(response.status) !== true)
        throw this.#refusal(call, response, body);
      return { status: response.status, body };
    });
  }

  /** The body of `call` as it arrives; the deadline is for its head only. Not repeated: a watch has its own rhythm. */
  async stream(call: Call): Promise<AsyncIterable<Uint8Array>> {
    const deadline = deadlineFor([call.signal, this.#closing.signal], this.#timeoutMs);
    try {
      const response = await this.#send(call, deadline.signal);
      if (response.status < 400) return releasing(response.body, deadline);
      throw this.#refusal(call, response, parsed(await textOf(response)));
    } catch (error) {
      deadline.release();
      throw this.#readable(call, error, deadline.expired());
    } finally {
      deadline.stop();
    }
  }

  get #timeoutMs(): number {
    return this.#options.timeoutMs ?? 30_000;
  }

  async #repeat<T>(call: Call, attempt: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const tries = this.#options.tries ?? 5;
    for (let round = 0; ; round++) {
      const deadline = deadlineFor([call.signal, this.#closing.signal], this.#timeoutMs);
      try {
        return await attempt(deadline.signal);
      } catch (error) {
        const failure = this.#readable(call, error, deadline.expired());
        const waitMs = this.#waitFor(call, failure, round);
        if (waitMs === undefined || round + 1 >= tries || this.#isOver(call)) throw failure;
        await pause(waitMs, call.signal ?? this.#closing.signal);
      } finally {
        deadline.stop();
        deadline.release();
      }
    }
  }

  #isOver(call: Call): boolean {
    return call.signal?.aborted === true || this.#closing.signal.aborted;
  }

  /** How long to wait before the next try, or undefined for none. */
  #waitFor(call: Call, failure: PullwrightError, round: number): number | undefined {
    const status = 'status' in failure ? Number(failure.status) : undefined;
    const own = backOffMs(BACK_OFF, round, this.#random());
    if (status === undefined)
      return call.once === true && failure.code !== 'ConnectionRefused' ? undefined : own;
    if (!RETRIED_STATUSES.includes(status)) return undefined;
    // Only these two say that nothing was done.
    if (call.once === true && status !== 429 && status !== 503) return undefined;
    if (failure.afterMs === undefined) return own;
    return failure.afterMs > LONGEST_RETRY_AFTER_MS ? undefined : failure.afterMs + own;
  }

  async #send(call: Call, signal: AbortSignal): Promise<TransportResponse> {
    const { connection } = this.#options;
    const response = await this.#once(call, signal, await connection.credentials(false));
    if (response.status !== 401) return response;
    // The token may have been renewed since it was read. A body that nobody reads would hold the connection.
    await textOf(response);
    return this.#once(call, signal, await connection.credentials(true));
  }

  async #once(call: Call, signal: AbortSignal, credentials: Credentials): Promise<TransportResponse> {
    const { transport, onRequest } = this.#options;
    const { method, body } = call;
    const text = body === undefined ? undefined : JSON.stringify(body);
    try {
      const response = await transport.send({
        method,
        path: call.path + queryText(call.query),
        headers: this.#headers(call, text, credentials),
        signal,
        credentials,
        ...(text === undefined ? {} : { body: text }),
      });
      onRequest?.({ code: String(response.status), method });
      return response;
    } catch (error) {
      onRequest?.({ code: '<error>', method });
      throw error;
    }
  }

  #headers(call: Call, text: string | undefined, { token }: Credentials): Record<string, string> {
    return {
      accept: 'application/json',
      // Compression costs more than it saves on the short way from a pod to its API server.
      'accept-encoding': 'identity',
      'user-agent': this.#options.userAgent,
      ...(token === undefined ? {} : { authorization: `Bearer ${reveal(token)}` }),
      ...(text === undefined
        ? {}
        : {
            'content-type': call.contentType ?? 'application/json',
            'content-length': String(Buffer.byteLength(text)),
          }),
    };
  }

  #refusal(call: Call, response: TransportResponse, body: unknown): PullwrightError {
    const after = retryAfterMs(response.header('retry-after'), Date.now());
    const { verb, subject } = call;
    const { status } = response;
    return apiErrorOf({
      verb,
      subject,
      status,
      body,
      ...(after === undefined ? {} : { retryAfterMs: after }),
    });
  }

  /** A failure without an answer, in words of ours: the runtime's may quote the URL with a proxy's password. */
  #readable(call: Call, error: unknown, expired: boolean): PullwrightError {
    if (error instanceof PullwrightError) return error;
    const [code, text] = expired
      ? ['Timeout', `no answer within ${this.#timeoutMs} ms`]
      : connectionFailure(error, this.#isOver(call));
    const { host } = new URL(this.#options.connection.server);
    return new PullwrightError(`Cannot ${call.verb} "${call.subject}": ${text} (${host})`, { code });
  }
}

function connectionFailure(error: unknown, aborted: boolean): readonly [code: string, text: string] {
  if (aborted) return ['Aborted', 'stopped'];
  if (error instanceof RangeError) return ['AnswerTooLarge', error.message];
  const { code = '' } = error as { code?: string };
  if (/REFUSED|ConnectionRefused/.test(code)) return ['ConnectionRefused', 'the connection was refused'];
  if (/CERT|SELF_SIGNED|UNABLE_TO|ALTNAME/.test(code))
    return ['CertificateNotTrusted', `the server's certificate is not trusted (${code})`];
  if (/ENOTFOUND|EAI_AGAIN/.test(code)) return ['HostNotFound', 'the host name is not known'];
  return ['ConnectionLost', `the connection was lost${/^\w{1,64}$/.test(code) ? ` (${code})` : ''}`];
}

interface Deadline {
  readonly signal: AbortSignal;
  expired(): boolean;
  /** No longer ends by time. */
  stop(): void;
  /** No longer ends with the outer signals either. */
  release(): void;
}

/** `body`, forgetting `deadline` at its end: a client lives for years, and its signals must not remember every watch. */
async function* releasing(body: AsyncIterable<Uint8Array>, deadline: Deadline): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } finally {
    deadline.release();
  }
}

function deadlineFor(outer: readonly (AbortSignal | undefined)[], ms: number): Deadline {
  const controller = new AbortController();
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    controller.abort();
  }, ms);
  const abort = (): void => controller.abort();
  for (const signal of outer) {
    if (signal?.aborted === true) abort();
    signal?.addEventListener('abort', abort, { once: true });
  }
  return {
    signal: controller.signal,
    expired: () => late,
    stop: () => clearTimeout(timer),
    release: () => {
      for (const signal of outer) signal?.removeEventListener('abort', abort);
    },
  };
}

function queryText(query: Call['query']): string {
  const parameters = Object.entries(query ?? {})
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(String(value))}`);
  return parameters.length === 0 ? '' : `?${parameters.join('&')}`;
}

function textOf(response: TransportResponse): Promise<string> {
  return response.text?.(MAX_BODY_BYTES) ?? bodyText(response.body, MAX_BODY_BYTES);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
