/** One request and its repetitions: credentials, deadlines, Retry-After, and connection loss. */
import { type BackOff, backOffMs } from '../core/back-off.ts';
import { PullwrightError } from '../core/errors.ts';
import { jsonOf } from '../core/record.ts';
import { reveal } from '../core/redacted.ts';
import { trimEndOf } from '../core/text.ts';
import { type AddressGuard, type AddressPolicy, guardedAddresses } from '../http/addresses.ts';
import { HttpClient, isPassingStatus, pause, retry, retryAfterMs, type Tried } from '../http/client.ts';
import { HttpsEngine } from '../http/engine.ts';
import { HttpError, type HttpFailure } from '../http/http-error.ts';
import type { HttpAnswer, HttpRequest } from '../http/request.ts';
import { apiErrorOf } from './api-error.ts';
import type { Connection, Credentials } from './client.ts';

// Addresses of an API server from a kubeconfig in a Secret: untrusted, chosen by the writer of that Secret.

/** What is wrong with an address that is refused. */
export const REFUSED_SERVER =
  'loopback, link-local or the metadata service of a cloud, where no API server is';

/** Refuses loopback, link-local and metadata services: `KubeconfigRefused`. */
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
  /** Told about every answer; `code` is `<error>` when there was none, as in client-go. */
  readonly onRequest?: (seen: { readonly code: string; readonly method: string }) => void;
  /** Without an answer after this time a request has failed. @default {30000} */
  readonly timeoutMs?: number;
  /** Asked each time before a request that may change something is sent, after everything that it waited for; throws where it must not be sent. */
  readonly fence?: (call: Pick<Call, 'method' | 'path'>) => void;
  /** Whom to act as, where our own rights allow it. */
  readonly actAs?: string;
  /** Tries of one request. @default {5} */
  readonly tries?: number;
  readonly random?: () => number;
  /** Milliseconds that only grow, for {@link Outage}. */
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
  /** Statuses from 400 on that are answers, not errors. */
  readonly allow?: readonly number[];
  /** Not to be sent again once it may have been received. */
  readonly once?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** A longer answer is refused. @default {33554432} */
  readonly maxBytes?: number;
  /** @default those of the options */
  readonly tries?: number;
}

/** What was answered. */
export interface JsonAnswer {
  readonly status: number;
  readonly body: unknown;
  /** Of the body, as it was sent. */
  readonly bytes: number;
}

const TEXT = new TextDecoder();
const BACK_OFF: BackOff = { firstMs: 100, maxMs: 5000 };
/** A server that asks for more patience than this is left to the caller's back-off. */
const LONGEST_WAIT_MS = 10_000;
/** After so long without an answer, further tries are pointless. */
const SILENCE_MS = 10_000;
/** More than the largest object that an API server stores has as JSON. */
const MOST_BYTES = 32 * 1024 * 1024;
/** Why something was refused is said in a few words. */
const MOST_WORDS_BYTES = 1024 * 1024;

/** Failures in which no API server answered. */
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
/** From one try to the next lies a fifth of the outage so far, at most ten seconds. */
const SHARE = 0.2;
const MOST_WAIT_MS = 10_000;
/** After a shorter outage each informer ends its own back-off: it may be its own request that fails. */
const LONG_MS = 5000;

/**
 * One back-off for all that follows a cluster: while its API server does not answer, one of some fifty informers tries for all, and the first
 * answer wakes the others.
 */
export class Outage {
  readonly #now: () => number;
  #since: number | undefined;
  #nextTryAt = 0;
  #end = new AbortController();

  /** @param now milliseconds that only grow */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** How long nothing was answered. */
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

  /** Whether `code` says that there was no answer. */
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
    this.#client = new HttpClient(
      new HttpsEngine({
        ca,
        serverName,
        proxyFor: () => proxy,
      }),
      { addressesFor: addresses && ((url) => this.#addressesFor(url, addresses)) },
    );
  }

  /** Through a proxy once: where one is needed, other names often do not resolve, and that takes long to fail. */
  async #addressesFor(url: URL, policy: AddressPolicy): Promise<readonly string[] | undefined> {
    if (this.#judged) return undefined;
    const isProxied = this.#options.connection.proxy !== undefined;
    const found = await guardedAddresses(url, { ...serverGuard(policy), isProxied });
    this.#judged = isProxied;
    return found;
  }

  /** Aborts all requests and watches; nothing is sent any more. */
  close(): void {
    this.#closing.abort();
    this.#client.close();
  }

  /** Sends `call` until it is answered, and gives the parsed body. */
  json(call: Call): Promise<JsonAnswer> {
    return retry(() => this.#jsonOnce(call), {
      tries: call.tries ?? this.#options.tries ?? 5,
      waitMs: (round) => backOffMs(BACK_OFF, round, (this.#options.random ?? Math.random)()),
      longestWaitMs: LONGEST_WAIT_MS,
      again: (tried) =>
        this.#isOver(call) || this.#outage.silentMs >= SILENCE_MS ? undefined : again(call, tried),
      pause: (ms) => pause(ms, call.signal ?? this.#closing.signal),
    });
  }

  /** The body of `call` as it arrives; the deadline is for its head only. Not repeated: a watch has its own rhythm. */
  async stream(call: Call): Promise<AsyncIterable<Uint8Array>> {
    const answer = await this.#answered(call, (request) => this.#client.open(request));
    if (answer.status < 400) return answer.body;
    throw refusal(call, answer, jsonOf(TEXT.decode(await wordsOf(answer))));
  }

  async #jsonOnce(call: Call): Promise<JsonAnswer> {
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
    return { status: answer.status, body, bytes: answer.text.length };
  }

  /** One answer, with new credentials where those that are kept are refused. */
  async #answered<T extends Pick<HttpAnswer, 'status'> & { discard?(): void }>(
    call: Call,
    send: (request: HttpRequest) => Promise<T>,
  ): Promise<T> {
    const { credentials } = this.#options.connection;
    const answer = await this.#once(call, send, await credentials(false));
    if (answer.status !== 401) return answer;
    // The token may have been renewed since it was read. An unread body would hold the connection.
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
      // What the fence throws was never sent.
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

/** Of a refusal; none where they are too long or break off: the status says the most of it. */
function wordsOf(answer: HttpAnswer): Promise<Uint8Array> {
  return answer.bytes(MOST_WORDS_BYTES).catch(() => new Uint8Array());
}

/** Failures that are the same a moment later. */
const FOR_GOOD: readonly string[] = ['AnswerTooLarge', 'CertificateNotTrusted', 'NotLeader', 'TlsWanted'];

/** Whether another try may help, and when. */
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
  if (!isPassingStatus(status)) return undefined;
  // Only these two say that nothing was done.
  return call.once === true && status !== 429 && status !== 503 ? undefined : { afterMs: failure.afterMs };
}

/** Empty without parameters. Undefined ones are omitted. */
function queryText(query: Readonly<Record<string, string | number | undefined>> = {}): string {
  const parameters = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(String(value))}`);
  return parameters.length === 0 ? '' : `?${parameters.join('&')}`;
}
