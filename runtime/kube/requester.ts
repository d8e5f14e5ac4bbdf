/** One request with its retries: credentials, deadlines, Retry-After, and connection loss. */
import { type BackOff, backOffMs } from '../core/back-off.ts';
import { PullwrightError } from '../core/errors.ts';
import { jsonOf } from '../core/record.ts';
import { reveal } from '../core/redacted.ts';
import { trimEndOf } from '../core/text.ts';
import { type AddressGuard, type AddressPolicy, guardedAddresses } from '../http/addresses.ts';
import { HttpClient, PASSING, pause, retry, retryAfterMs, type Tried } from '../http/client.ts';
import { HttpsEngine } from '../http/engine.ts';
import { HttpError, type HttpFailure } from '../http/http-error.ts';
import type { HttpAnswer, HttpRequest } from '../http/request.ts';
import { apiErrorOf } from './api-error.ts';
import type { Connection, Credentials } from './client.ts';

// The address of an API server from a kubeconfig in a Secret is untrusted, because the writer of the Secret chooses it.

/** Why an address is rejected. */
export const REFUSED_SERVER =
  'loopback, link-local or a cloud metadata service, which is never an API server';

/** Rejects loopback, link-local and metadata services: `KubeconfigRefused`. */
export function serverGuard(policy: AddressPolicy): AddressGuard {
  return {
    policy,
    refused: ({ origin }, address) =>
      new PullwrightError(`Cannot contact "${origin}": its address ${address} is ${REFUSED_SERVER}`, {
        code: 'KubeconfigRefused',
        retryPolicy: 'terminal',
        hint: 'Correct "server" in the kubeconfig, or allow the address by --allow-address',
      }),
  };
}

export interface RequesterOptions {
  readonly connection: Connection;
  readonly userAgent: string;
  /** Called for every response; `code` is `<error>` when there was none, as in client-go. */
  readonly onRequest?: (seen: { readonly code: string; readonly method: string }) => void;
  /** A request fails without a response after this time. @default {30000} */
  readonly timeoutMs?: number;
  /** Called right before a request that may change something is sent, after all waits; throws when it must not be sent. */
  readonly fence?: (call: Pick<Call, 'method' | 'path'>) => void;
  /** User to impersonate. */
  readonly actAs?: string;
  /** Tries of one request. @default {5} */
  readonly tries?: number;
  readonly random?: () => number;
  /** Monotonic milliseconds, for {@link Outage}. */
  readonly now?: () => number;
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
  /** @default {'application/json'} */
  readonly accept?: string | undefined;
  /** Statuses from 400 on that are not errors. */
  readonly allow?: readonly number[];
  /** Not to be sent again once it may have been received. */
  readonly once?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** A longer response is rejected. @default {33554432} */
  readonly maxBytes?: number;
  /** @default those of the options */
  readonly tries?: number;
}

const TEXT = new TextDecoder();
const BACK_OFF: BackOff = { firstMs: 100, maxMs: 5000 };
/** Longest Retry-After that is waited for here; a longer one is left to the caller's back-off. */
const LONGEST_WAIT_MS = 10_000;
/** No more retries after an outage of this time. */
const SILENCE_MS = 10_000;
/** Larger than the JSON of the largest object that an API server stores. */
const MOST_BYTES = 32 * 1024 * 1024;
/** Largest body of an error that is read. */
const MOST_WORDS_BYTES = 1024 * 1024;

/** Failures without a response of an API server. */
const SILENT: ReadonlySet<string> = new Set<HttpFailure>([
  'CertificateNotTrusted',
  'ConnectionLost',
  'ConnectionRefused',
  'HostNotFound',
  'ProxyFailed',
  'Timeout',
  'TlsFailed',
  'TlsWanted',
]);
/** Retry interval: a fifth of the outage so far, at most ten seconds. */
const SHARE = 0.2;
const MOST_WAIT_MS = 10_000;
/** After a shorter outage each informer keeps its own back-off: the cause may be its own request. */
const LONG_MS = 5000;

/**
 * One back-off for all informers of a cluster: during an outage of its API server, one of some fifty informers retries, and the
 * first response wakes the others.
 */
export class Outage {
  readonly #now: () => number;
  #since: number | undefined;
  #nextTryAt = 0;
  #end = new AbortController();

  /** @param now monotonic milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Duration of the outage. */
  get silentMs(): number {
    return this.#since === undefined ? 0 : this.#now() - this.#since;
  }

  answered(): void {
    if (this.#since === undefined) return;
    const isLong = this.silentMs >= LONG_MS;
    this.#since = undefined;
    this.#nextTryAt = 0;
    if (!isLong) return;
    this.#end.abort();
    this.#end = new AbortController();
  }

  /** Whether `code` means that there was no response. If so, the outage starts or continues. */
  failed(code: string): boolean {
    if (SILENT.has(code)) this.#since ??= this.#now();
    return SILENT.has(code);
  }

  /**
   * Resolves when the caller may try again, or when `signal` is aborted.
   *
   * @param code of its failure
   * @param waitMs its own back-off
   */
  async wait(code: string, waitMs: number, signal: AbortSignal): Promise<void> {
    if (!this.failed(code)) return pause(waitMs, signal);
    const end = AbortSignal.any([signal, this.#end.signal]);
    await pause(waitMs, end);
    for (let ms = this.#turnMs(); ms > 0 && !end.aborted; ms = this.#turnMs()) await pause(ms, end);
  }

  /** Milliseconds until the next try; 0 for the caller that takes it. */
  #turnMs(): number {
    if (this.#since === undefined) return 0;
    const now = this.#now();
    if (now < this.#nextTryAt) return this.#nextTryAt - now;
    this.#nextTryAt = now + Math.min(MOST_WAIT_MS, SHARE * this.silentMs);
    return 0;
  }
}

export class Requester {
  readonly #options: RequesterOptions;
  readonly #server: string;
  readonly #client: HttpClient;
  readonly #closing = new AbortController();
  readonly #outage: Outage;
  #judged = false;

  constructor(options: RequesterOptions) {
    const { server, ca, serverName, proxy, addresses } = options.connection;
    this.#options = options;
    this.#outage = new Outage(options.now);
    this.#server = trimEndOf(server, '/');
    this.#client = new HttpClient(new HttpsEngine({ ca, serverName, proxyFor: () => proxy }), {
      addressesFor: addresses && ((url) => this.#addressesFor(url, addresses)),
    });
  }

  /** Behind a proxy, addresses are checked once: DNS often does not resolve there, and is slow to fail. */
  async #addressesFor(url: URL, policy: AddressPolicy): Promise<readonly string[] | undefined> {
    if (this.#judged) return undefined;
    const isProxied = this.#options.connection.proxy !== undefined;
    const found = await guardedAddresses(url, { ...serverGuard(policy), isProxied });
    this.#judged = isProxied;
    return found;
  }

  /** Aborts all requests and watches. */
  close(): void {
    this.#closing.abort();
    this.#client.close();
  }

  /** Sends `call` with retries and returns the parsed body. */
  json(call: Call) {
    return retry(() => this.#jsonOnce(call), {
      tries: call.tries ?? this.#options.tries ?? 5,
      waitMs: (round) => backOffMs(BACK_OFF, round, (this.#options.random ?? Math.random)()),
      longestWaitMs: LONGEST_WAIT_MS,
      again: (tried) =>
        this.#isOver(call) || this.#outage.silentMs >= SILENCE_MS ? undefined : again(call, tried),
      pause: (ms) => pause(ms, call.signal ?? this.#closing.signal),
    });
  }

  /** The body of `call` as it arrives; the deadline covers only the head. No retries: an informer has its own. */
  async stream(call: Call): Promise<AsyncIterable<Uint8Array>> {
    const answer = await this.#answered(call, (request) => this.#client.open(request));
    if (answer.status < 400) return answer.body;
    throw refusal(call, answer, jsonOf(TEXT.decode(await wordsOf(answer))));
  }

  async #jsonOnce(call: Call) {
    const most = call.maxBytes ?? MOST_BYTES;
    const answer = await this.#answered(call, (request) =>
      this.#client.read(request, async (found) => ({
        status: found.status,
        header: (name: string) => found.header(name),
        text: TEXT.decode(found.status < 400 ? await found.bytes(most) : await wordsOf(found)),
      })),
    );
    const body = jsonOf(answer.text);
    if (answer.status >= 400 && call.allow?.includes(answer.status) !== true)
      throw refusal(call, answer, body);
    if (answer.status < 400 && body === undefined)
      throw this.#readable(call, new HttpError('AnswerUnreadable', 'the response is not JSON'));
    return { status: answer.status, body, /** Size of the body. */ bytes: answer.text.length };
  }

  /** One response, with fresh credentials after a 401. */
  async #answered<T extends Pick<HttpAnswer, 'status'> & { discard?(): void }>(
    call: Call,
    send: (request: HttpRequest) => Promise<T>,
  ): Promise<T> {
    const { credentials } = this.#options.connection;
    const answer = await this.#once(call, send, await credentials(false));
    if (answer.status !== 401) return answer;
    // The token may have been renewed since it was read. An unread body would block the connection.
    answer.discard?.();
    return this.#once(call, send, await credentials(true));
  }

  async #once<T extends Pick<HttpAnswer, 'status'>>(
    call: Call,
    send: (request: HttpRequest) => Promise<T>,
    credentials: Credentials,
  ): Promise<T> {
    const { onRequest, fence } = this.#options;
    const { method, body } = call;
    const text = body === undefined ? undefined : JSON.stringify(body);
    try {
      const answer = await send({
        method,
        url: this.#server + call.path + queryText(call.query),
        headers: this.#headers(call, text, credentials),
        signal: call.signal,
        timeoutMs: this.#options.timeoutMs ?? 30_000,
        identity: credentials,
        fence: method === 'GET' ? undefined : () => fence?.(call),
        body: text,
      });
      this.#outage.answered();
      onRequest?.({ code: String(answer.status), method });
      return answer;
    } catch (error) {
      // A PullwrightError is from the fence: the request was not sent.
      if (!(error instanceof PullwrightError)) onRequest?.({ code: '<error>', method });
      throw this.#readable(call, error);
    }
  }

  #isOver(call: Call): boolean {
    return call.signal?.aborted === true || this.#closing.signal.aborted;
  }

  #headers(call: Call, text: string | undefined, { token }: Credentials): Record<string, string> {
    return {
      accept: call.accept ?? 'application/json',
      'user-agent': this.#options.userAgent,
      ...(this.#options.actAs === undefined ? {} : { 'impersonate-user': this.#options.actAs }),
      ...(token === undefined ? {} : { authorization: `Bearer ${reveal(token)}` }),
      ...(text === undefined ? {} : { 'content-type': call.contentType ?? 'application/json' }),
    };
  }

  #readable(call: Call, error: unknown): unknown {
    if (!(error instanceof HttpError)) return error;
    this.#outage.failed(error.failure);
    const { host } = new URL(this.#server);
    return new PullwrightError(`Cannot ${call.verb} "${call.subject}": ${error.message} (${host})`, {
      code: error.failure,
    });
  }
}

function refusal(call: Call, answer: Pick<HttpAnswer, 'status' | 'header'>, body: unknown): PullwrightError {
  const after = retryAfterMs(answer.header('retry-after'), Date.now());
  return apiErrorOf({ ...call, status: answer.status, body, retryAfterMs: after });
}

/** The body of an error; empty when it is too large or incomplete, because the status suffices. */
function wordsOf(answer: HttpAnswer): Promise<Uint8Array> {
  return answer.bytes(MOST_WORDS_BYTES).catch(() => new Uint8Array());
}

/** Failures that a retry does not fix. */
const FOR_GOOD: readonly string[] = ['AnswerTooLarge', 'CertificateNotTrusted', 'NotLeader', 'TlsWanted'];

/** Whether a retry may help, and when. */
function again<T>(
  call: { readonly once?: boolean },
  tried: Tried<T>,
): { readonly afterMs?: number | undefined } | undefined {
  if ('value' in tried || !(tried.error instanceof PullwrightError)) return undefined;
  const failure = tried.error;
  const status = 'status' in failure ? Number(failure.status) : undefined;
  if (FOR_GOOD.includes(failure.code)) return undefined;
  if (status === undefined)
    return call.once === true && failure.code !== 'ConnectionRefused' ? undefined : {};
  if (!PASSING.includes(status)) return undefined;
  // Only these two mean that the server did nothing.
  return call.once === true && status !== 429 && status !== 503 ? undefined : { afterMs: failure.afterMs };
}

/** Empty without parameters. Undefined ones are omitted. */
function queryText(query: Readonly<Record<string, string | number | undefined>> = {}): string {
  const parameters = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(String(value))}`);
  return parameters.length === 0 ? '' : `?${parameters.join('&')}`;
}
