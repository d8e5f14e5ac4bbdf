/**
 * The HTTP client: deadline, size limit and redirects. The engine implements CA, proxy and connections. Fast to load for programs
 * that run for milliseconds: it imports no Node modules.
 */
import { HttpError, httpErrorOf, MAY_WORK_ELSEWHERE } from './http-error.ts';
import type { HttpAnswer, HttpEngine, HttpRequest, WholeAnswer } from './request.ts';

export interface HttpClientOptions {
  /** Whether `host[:port]` may be contacted without TLS. @default {TLS everywhere} */
  readonly plain?: (host: string) => boolean;
  /**
   * Returns the addresses to connect to, in order; undefined to resolve the host. Called for every request, including redirects.
   * Rejects for hosts that must not be contacted.
   */
  readonly addressesFor?: ((url: URL) => Promise<readonly string[] | undefined>) | undefined;
}

/** Stateless: every text is decoded in one call. */
const TEXT = new TextDecoder();

/** Minimum number of turns of the event loop before a timeout. */
const STEPS = 10;

/**
 * Calls `run` after `ms`, and after at least ten turns of the event loop. Returns a function that cancels it. On a throttled CPU,
 * a turn of the event loop may take seconds while responses wait unread. Counting those seconds would make a healthy server look
 * silent.
 */
export function afterAttended(ms: number, run: () => void): () => void {
  let timer: ReturnType<typeof setTimeout>;
  const step = (left: number): void => {
    timer = setTimeout(() => (left > 1 ? step(left - 1) : run()), ms / STEPS);
  };
  step(STEPS);
  return () => clearTimeout(timer);
}

export class HttpClient {
  readonly #engine: HttpEngine;
  readonly #options: HttpClientOptions;
  readonly #closing = new AbortController();

  constructor(engine: HttpEngine, options: HttpClientOptions = {}) {
    this.#engine = engine;
    this.#options = options;
  }

  /**
   * Returns the head of the response. The deadline covers only the head.
   *
   * @throws HttpError without a response; errors of `addressesFor`
   */
  open(request: HttpRequest): Promise<HttpAnswer> {
    return this.#within(request, (answer) => answer);
  }

  /**
   * Returns the whole response as text, within the deadline.
   *
   * @param limitBytes of the body, counted as it arrives
   * @throws HttpError without a response, or if it is too long, truncated, or in an encoding that was not requested
   */
  ask(request: HttpRequest, limitBytes: number): Promise<WholeAnswer> {
    return this.read(request, async (answer) => {
      const text = TEXT.decode(await answer.bytes(limitBytes));
      return { status: answer.status, header: (name) => answer.header(name), text };
    });
  }

  /**
   * The result of `take` for the response, within the deadline.
   *
   * @param take may read the body to its end
   * @throws HttpError like {@link ask}; errors of `take`
   */
  read<T>(request: HttpRequest, take: (answer: HttpAnswer) => Promise<T>): Promise<T> {
    return this.#within(request, (answer) => {
      if (!isPacked(answer)) return take(answer);
      answer.discard();
      throw new HttpError('AnswerUnreadable', 'the response is compressed, which was not requested');
    });
  }

  /** Aborts all requests and bodies, and rejects new requests. */
  close(): void {
    this.#closing.abort();
    this.#engine.close();
  }

  async #within<T>(request: HttpRequest, take: (answer: HttpAnswer) => T | Promise<T>): Promise<T> {
    const { signal, timeoutMs } = request;
    const closing = this.#closing.signal;
    const late = new AbortController();
    const stop = timeoutMs === undefined ? undefined : afterAttended(timeoutMs, () => late.abort());
    const halts = [closing, late.signal, ...(signal === undefined ? [] : [signal])];
    try {
      return await take(await this.#follow(request, halts));
    } catch (error) {
      if (late.signal.aborted) throw new HttpError('Timeout', `no response within ${timeoutMs} ms`);
      if (signal?.aborted === true || closing.aborted) throw new HttpError('Aborted', 'stopped');
      throw error;
    } finally {
      stop?.();
    }
  }

  async #follow(request: HttpRequest, halts: readonly AbortSignal[]): Promise<HttpAnswer> {
    const { redirects } = request;
    if (redirects === undefined) return this.#send(request, halts);
    let next = request;
    for (let left = redirects; ; left -= 1) {
      const answer = await this.#send(next, halts);
      const target = redirectOf(answer, next);
      if (target === undefined) return answer;
      answer.discard();
      if (left <= 0)
        throw new HttpError('RedirectRefused', `the server redirects more than ${redirects} times`);
      next = target;
    }
  }

  async #send(request: HttpRequest, halts: readonly AbortSignal[]): Promise<HttpAnswer> {
    const { url } = request;
    const origin = originOf(url);
    const isPlain = url.startsWith('http://') && this.#options.plain?.(new URL(url).host) === true;
    if (!isPlain && !url.startsWith('https://'))
      throw new HttpError('TlsWanted', `"${origin}" must use TLS: expected https`);
    // Compression costs more than it saves on a short path, and an uncompressed body is not a decompression bomb.
    const headers = { 'accept-encoding': 'identity', ...request.headers };
    const addresses = (await this.#options.addressesFor?.(new URL(url))) ?? [undefined];
    let failure: unknown;
    for (const address of addresses) {
      if (halts.some(({ aborted }) => aborted)) throw new HttpError('Aborted', 'stopped');
      request.fence?.();
      try {
        return await this.#engine.send({ ...request, origin, headers, halts, address });
      } catch (error) {
        const known = httpErrorOf(error, new URL(url).host);
        failure = known;
        if (!MAY_WORK_ELSEWHERE.includes(known.failure)) break;
      }
    }
    throw failure ?? new HttpError('HostNotFound', 'the host name has no address');
  }
}

/** A compressed body, which was not requested, is not text. */
function isPacked(answer: HttpAnswer): boolean {
  const coding = answer.header('content-encoding') ?? 'identity';
  const transfer = answer.header('transfer-encoding') ?? 'chunked';
  return !/^(?:identity|)$/i.test(coding.trim()) || !/^(?:identity|chunked|)$/i.test(transfer.trim());
}

/** `https://host:port` of an absolute URL. */
function originOf(url: string): string {
  const end = url.slice(8).search(/[/?#]/);
  return end === -1 ? url : url.slice(0, end + 8);
}

// Redirects: the target, and the headers to send. Source of the rule: RFC 9110, section 15.4, and decision 073: a credential is
// sent only to its own origin.

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
const FOR_ONE_ORIGIN: readonly string[] = ['authorization', 'cookie', 'proxy-authorization'];

/**
 * Returns the request that follows a redirect; undefined if the response is not a redirect. Only GET and HEAD are followed.
 *
 * @throws HttpError `RedirectRefused` if the target is not a URL or contains a user name
 */
export function redirectOf(
  answer: Pick<HttpAnswer, 'status' | 'header'>,
  request: HttpRequest,
): HttpRequest | undefined {
  const { method, url, headers = {} } = request;
  if (!REDIRECTS.includes(answer.status) || (method !== 'GET' && method !== 'HEAD')) return undefined;
  const location = answer.header('location') ?? '';
  const target = location !== '' && URL.canParse(location, url) ? new URL(location, url) : undefined;
  if (target === undefined || target.username !== '' || target.password !== '')
    throw new HttpError('RedirectRefused', 'the server redirects to an invalid URL');
  const stays = target.origin === new URL(url).origin;
  const kept = Object.entries(headers).filter(
    ([name]) => stays || !FOR_ONE_ORIGIN.includes(name.toLowerCase()),
  );
  return { ...request, url: target.href, headers: Object.fromEntries(kept) };
}

// Retries of transient failures. They honour Retry-After. Pauses are arguments, so that tests need no clock.

/** Statuses after which the same request may succeed. */
export const PASSING: readonly number[] = [408, 429, 500, 502, 503, 504];

/** The result or the error of one try. */
export type Tried<T> = { readonly value: T } | { readonly error: unknown };

export interface RetryOptions<T> {
  /** Maximum number of calls. */
  readonly tries: number;
  /** Pause after try `round` (from 0), in addition to Retry-After; see `runtime/core/back-off.ts`. */
  readonly waitMs: (round: number) => number;
  /** A longer Retry-After ends the retries, because the caller has its own schedule. */
  readonly longestWaitMs: number;
  /** Returns the Retry-After, if any; undefined if a retry cannot succeed. */
  readonly again: (tried: Tried<T>) => { readonly afterMs?: number | undefined } | undefined;
  /** Waits; rejects if the run was interrupted. */
  readonly pause: (ms: number) => Promise<void>;
}

/** Retries `attempt`. Returns the value of the last try, or throws its error. */
export async function retry<T>(attempt: () => Promise<T>, options: RetryOptions<T>): Promise<T> {
  for (let round = 0; ; round += 1) {
    const tried = await attempt().then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    const next = round + 1 >= options.tries ? undefined : options.again(tried);
    if (next === undefined || (next.afterMs ?? 0) > options.longestWaitMs) {
      if ('value' in tried) return tried.value;
      throw tried.error;
    }
    await options.pause((next.afterMs ?? 0) + options.waitMs(round));
  }
}

/** Thirty years: an upper bound, because header values may have any length. */
const MOST_SECONDS = 1_000_000_000;

/**
 * Parses the header `Retry-After` to milliseconds; undefined if missing or invalid.
 * Source of the rule: RFC 9110: seconds, or a date.
 *
 * @param header value of the header
 * @param now milliseconds since 1970
 */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d+$/.test(header)) return Math.min(Number(header), MOST_SECONDS) * 1000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

/** Resolves after `ms`, or at once when `signal` is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end, { once: true });
  });
}
