/**
 * One call of the HyperFleet API: its tries, its pauses and its limits. Response bodies stay here and in `hyperfleet-api.ts`: they
 * hold pull secrets.
 */
import type { HttpClient } from '../http/client.ts';
import { HttpError } from '../http/http-error.ts';
import type { WholeAnswer } from '../http/request.ts';
import { isPassingStatus, retry, retryAfterMs } from '../http/retry.ts';
import { type BackOff, backOffMs } from '../rules/back-off.ts';
import { PullwrightError } from '../rules/errors.ts';
import { type Redacted, reveal } from '../rules/redacted.ts';

export interface HyperfleetOptions {
  /** Without path. */
  readonly baseUrl: string;
  /** Absent: no authentication. Read again for every try. */
  readonly token?: () => Promise<Redacted<string>>;
  /** `PUT`, `POST`, or find out. @default {'auto'} */
  readonly statusMethod?: 'PUT' | 'POST' | 'auto';
  readonly userAgent: string;
  /** @default {10000} */
  readonly timeoutMs?: number;
  /** Tries of one call. @default {4} */
  readonly tries?: number;
  /** Rejects when the process ends. */
  readonly pause: (ms: number) => Promise<void>;
  readonly http: HttpClient;
  /** In [0, 1). */
  readonly random?: () => number;
  /** One answer: status, or 0 where there was none. */
  readonly onAnswer?: (seen: { readonly method: string; readonly status: number }) => void;
  /** A document of a list that is too large by itself: the list goes on without it. `position` counts from 0. */
  readonly onLeftOut?: (seen: { readonly subject: string; readonly position: number }) => void;
}

/** An answer, or, with status 0, why there was none of this API. */
export interface Answer {
  readonly status: number;
  /** Code of the API, or of what went wrong. */
  readonly code: string;
  readonly body: unknown;
  readonly retryAfterMs?: number;
}

const MOST_BYTES = 32 * 1024 * 1024;
const BACK_OFF: BackOff = { firstMs: 250, maxMs: 4000 };
/** The longest pause that a server may ask for; what needs longer is given back to the broker. */
const LONGEST_WAIT_MS = 30_000;

/** Tries again what may come right: no answer, 408, 429, 5xx; as late as the server asks. @throws PullwrightError */
export async function callHyperfleet(
  options: HyperfleetOptions,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  const attempt = async (): Promise<Answer> => {
    const answer = await once(options, { method, path, body });
    options.onAnswer?.({ method, status: answer.status });
    return answer;
  };
  const answer = await retry(attempt, {
    tries: options.tries ?? 4,
    waitMs: (round) => backOffMs(BACK_OFF, round, (options.random ?? Math.random)()),
    longestWaitMs: LONGEST_WAIT_MS,
    again: (tried) =>
      'value' in tried && isTrouble(tried.value) && !isTooLarge(tried.value)
        ? { afterMs: Math.min(tried.value.retryAfterMs ?? 0, LONGEST_WAIT_MS) }
        : undefined,
    pause: options.pause,
  });
  if (isTrouble(answer)) throw refused(method.toLowerCase(), path.split('?')[0] ?? path, answer);
  return answer;
}

function isTrouble({ status }: Answer): boolean {
  return status === 0 || status >= 500 || isPassingStatus(status);
}

interface Request {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}

async function once(options: HyperfleetOptions, { method, path, body }: Request): Promise<Answer> {
  const { baseUrl, token, userAgent, http } = options;
  const bearer = token === undefined ? {} : { authorization: `Bearer ${reveal(await token())}` };
  const request = {
    method,
    url: `${baseUrl}${path}`,
    headers: {
      accept: 'application/json, application/problem+json',
      'user-agent': userAgent,
      ...bearer,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    timeoutMs: options.timeoutMs ?? 10_000,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  };
  try {
    return answerOf(await http.ask(request, MOST_BYTES));
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    return { status: 0, code: FAULTS[error.failure] ?? noConnection(error), body: undefined };
  }
}

/** A page of a proxy, or one to log in, is no answer of this API, whatever its status. */
function answerOf({ status, header, text }: WholeAnswer): Answer {
  const body = parse(text);
  if (status < 300 && body === undefined) return { status: 0, code: `HTTP ${status} without JSON`, body };
  const code = (body as { readonly code?: unknown } | null | undefined)?.code;
  const waitMs = retryAfterMs(header('retry-after'), Date.now());
  return {
    status,
    code: typeof code === 'string' ? code.slice(0, 64) : '',
    body,
    ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }),
  };
}

const FAULTS: Readonly<Record<string, string>> = {
  AnswerTooLarge: 'an answer that is too large',
  Timeout: 'no answer in time',
};

function isTooLarge({ status, code }: Answer): boolean {
  return status === 0 && code === FAULTS['AnswerTooLarge'];
}

function noConnection({ code }: HttpError): string {
  return code === undefined ? 'no connection' : `no connection (${code})`;
}

function parse(text: string): unknown {
  try {
    return text === '' ? {} : JSON.parse(text);
  } catch {
    return undefined;
  }
}

const HINTS: Readonly<Record<number, string>> = {
  401: 'Look at the token file',
  403: 'Give the identity of the adapter the right to write statuses',
  404: 'Look at the base URL of the API',
};

/**
 * An answer as an error. `terminal`: about this one cluster, and the same at every try; else the API, the way to it or the
 * identity is at fault, and every cluster is concerned.
 */
export function refused(verb: string, subject: string, answer: Answer): PullwrightError {
  const { status } = answer;
  const said = [status === 0 ? undefined : `HTTP ${status}`, answer.code].filter(Boolean).join(' ');
  const hint = status >= 300 && status < 400 ? HINTS[404] : HINTS[status];
  const denied = status === 401 || status === 403;
  const own = status >= 400 && status < 500 && ![401, 403, 404, 405, 408, 429].includes(status);
  return new PullwrightError(`Cannot ${verb} "${subject}": the HyperFleet API answered ${said}`, {
    code: denied
      ? 'ApiAccessDenied'
      : own
        ? 'ApiRefused'
        : isTooLarge(answer)
          ? 'AnswerTooLarge'
          : 'ApiUnavailable',
    ...(own ? { disposition: 'terminal' as const } : {}),
    ...(hint === undefined ? {} : { hint }),
  });
}
