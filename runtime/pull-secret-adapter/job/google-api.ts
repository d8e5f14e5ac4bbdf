/** One call of a Google API over REST, with a token. Every failure is a {@link GcpError}; response bodies stay here. */
import type { HttpClient } from '../../http/client.ts';
import { HttpError } from '../../http/http-error.ts';
import { retryAfterMs } from '../../http/retry.ts';
import { type Redacted, reveal } from '../../rules/redacted.ts';
import { GcpError, statusOfHttp } from './gcp-error.ts';

/** Gives a token that is still valid. `fresh`: the last one was not accepted. */
export type TokenSource = (fresh: boolean) => Promise<Redacted<string>>;

export interface GoogleApiOptions {
  readonly token: TokenSource;
  readonly http: HttpClient;
  /** For one answer. */
  readonly timeoutMs: number;
  /** Ends the wait; its reason is what the call then fails with. */
  readonly signal: AbortSignal;
}

export interface ApiRequest {
  /** For messages, such as `AddSecretVersion`. */
  readonly name: string;
  readonly method: string;
  readonly url: string;
}

/** A payload has 64 KiB at most, a list of versions some hundred bytes for each. */
const MOST_BYTES = 32 * 1024 * 1024;

/** @returns the parsed answer. @throws GcpError, and whatever `token` and `signal` say */
export async function callGoogleApi<T>(
  request: ApiRequest,
  options: GoogleApiOptions,
  body?: unknown,
): Promise<T> {
  let response = await exchange(request, options, body, false);
  // Withdrawn, or this machine's clock is behind: one new token decides.
  if (response.status === 401) response = await exchange(request, options, body, true);
  const { status, text, retryAfter } = response;
  const answer = parse(text);
  const ok = status >= 200 && status < 300;
  if (ok && answer !== undefined) return answer as T;
  // A page of a proxy with status 200 is no answer of this API.
  throw failure(request.name, { status: ok ? 502 : status, answer, retryAfter });
}

interface ApiResponse {
  readonly status: number;
  readonly text: string;
  readonly retryAfter: string | undefined;
}

async function exchange(
  { name, method, url }: ApiRequest,
  options: GoogleApiOptions,
  body: unknown,
  fresh: boolean,
): Promise<ApiResponse> {
  const { signal, timeoutMs } = options;
  const bearer = await options.token(fresh);
  try {
    const { status, header, text } = await options.http.ask(
      {
        method,
        url,
        headers: {
          authorization: `Bearer ${reveal(bearer)}`,
          accept: 'application/json',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal,
        timeoutMs,
      },
      MOST_BYTES,
    );
    return { status, text, retryAfter: header('retry-after') };
  } catch (error) {
    signal.throwIfAborted();
    const late = error instanceof HttpError && error.failure === 'Timeout';
    throw new GcpError(name, late ? 'DEADLINE_EXCEEDED' : 'UNAVAILABLE', { cause: error });
  }
}

function parse(text: string): unknown {
  try {
    return text === '' ? {} : JSON.parse(text);
  } catch {
    return undefined;
  }
}

function failure(
  call: string,
  response: { readonly status: number; readonly answer: unknown; readonly retryAfter: string | undefined },
): GcpError {
  const { status: http, answer } = response;
  const error = (answer as { error?: { status?: unknown; details?: unknown } } | undefined)?.error;
  const details = (Array.isArray(error?.details) ? error.details : []).filter(
    (detail): detail is ErrorDetail => typeof detail === 'object' && detail !== null,
  );
  const info = details.map((detail) => detail.reason).find((reason) => typeof reason === 'string');
  const retryAfterMs = retryAfterOf(response.retryAfter, details);
  // A canonical code, and no other text: it is shown.
  if (typeof error?.status === 'string' && /^[A-Z_]{1,40}$/.test(error.status))
    return new GcpError(call, error.status, { info, retryAfterMs });
  // Not the API's own words: a proxy that refuses is no missing permission.
  const passing = http === 429 || http >= 500;
  const status = passing ? statusOfHttp(http) : 'UNAVAILABLE';
  return new GcpError(call, status, { retryAfterMs, text: `HTTP ${http}, and no answer of the API` });
}

function retryAfterOf(header: string | undefined, details: readonly ErrorDetail[]): number | undefined {
  const delays = details.map(({ retryDelay }) =>
    typeof retryDelay === 'string' ? /^(\d+(?:\.\d+)?)s$/.exec(retryDelay)?.[1] : undefined,
  );
  const delay = delays.find((one) => one !== undefined);
  // A number of any length is one.
  const wanted = delay === undefined ? undefined : Math.min(Number(delay), 1e9) * 1000;
  return retryAfterMs(header, Date.now()) ?? wanted;
}

/** An element of `details`: google.rpc.ErrorInfo has `reason`, google.rpc.RetryInfo `retryDelay`. */
interface ErrorDetail {
  readonly reason?: unknown;
  readonly retryDelay?: unknown;
}
