/**
 * One call of the HyperFleet API: its tries, its pauses and its limits. Response bodies stay here and in `hyperfleet-api.ts`: they
 * hold pull secrets.
 */
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
  readonly fetch?: typeof fetch;
  /** One answer: status, or 0 where there was none. */
  readonly onAnswer?: (seen: { readonly method: string; readonly status: number }) => void;
}

/** An answer, or, with status 0, why there was none of this API. */
export interface Answer {
  readonly status: number;
  /** Code of the API, or of what went wrong. */
  readonly code: string;
  readonly body: unknown;
  readonly retryAfterMs?: number;
}

const MAX_BODY_BYTES = 32 * 1024 * 1024;
/** Longest pause that a server may ask for; what needs longer is given back to the broker. */
const MAX_PAUSE_MS = 30_000;

/** Tries again what may come right: no answer, 408, 429, 5xx; as late as the server asks. @throws PullwrightError */
export async function callHyperfleet(
  options: HyperfleetOptions,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  const tries = options.tries ?? 4;
  for (let attempt = 1; ; attempt += 1) {
    const answer = await once(options, { method, path, body });
    options.onAnswer?.({ method, status: answer.status });
    if (![0, 408, 429].includes(answer.status) && answer.status < 500) return answer;
    if (attempt >= tries) throw refused(method.toLowerCase(), path.split('?')[0] ?? path, answer);
    await options.pause(Math.max(answer.retryAfterMs ?? 0, Math.min(250 * 2 ** (attempt - 1), 4000)));
  }
}

interface Request {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}

async function once(options: HyperfleetOptions, { method, path, body }: Request): Promise<Answer> {
  const { baseUrl, token, userAgent } = options;
  try {
    const bearer = token === undefined ? {} : { authorization: `Bearer ${reveal(await token())}` };
    const response = await (options.fetch ?? fetch)(`${baseUrl}${path}`, {
      method,
      headers: {
        accept: 'application/json, application/problem+json',
        'user-agent': userAgent,
        ...bearer,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(options.timeoutMs ?? 10_000),
      // A page to log in is no answer.
      redirect: 'manual',
    });
    return answerOf(response, await readLimited(response));
  } catch (error) {
    if (error instanceof PullwrightError) throw error;
    return { status: 0, code: connectionFault(error), body: undefined };
  }
}

/** Undefined when there is more than anybody could mean. */
async function readLimited(response: Response): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** A page of a proxy is no answer of this API, whatever its status. */
function answerOf({ status, headers }: Response, text: string | undefined): Answer {
  if (text === undefined) return { status: 0, code: 'an answer that is too large', body: undefined };
  const body = parse(text);
  if (status < 300 && body === undefined) return { status: 0, code: `HTTP ${status} without JSON`, body };
  const code = (body as { readonly code?: unknown } | null | undefined)?.code;
  const retryAfterMs = retryAfter(headers.get('retry-after'));
  return {
    status,
    code: typeof code === 'string' ? code.slice(0, 64) : '',
    body,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

/** Seconds or a date; undefined for neither. */
function retryAfter(header: string | null): number | undefined {
  if (header === null) return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), MAX_PAUSE_MS) : undefined;
}

function parse(text: string): unknown {
  try {
    return text === '' ? {} : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Names of the runtime and the system only: messages may hold the URL. */
function connectionFault(error: unknown): string {
  if (!(error instanceof Error)) return 'no connection';
  if (error.name === 'TimeoutError') return 'no answer in time';
  const { code: own, cause } = error as {
    readonly code?: unknown;
    readonly cause?: { readonly code?: unknown };
  };
  const code = cause?.code ?? own;
  return typeof code === 'string' && /^\w{1,60}$/.test(code) ? `no connection (${code})` : 'no connection';
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
    code: denied ? 'ApiAccessDenied' : own ? 'ApiRefused' : 'ApiUnavailable',
    ...(own ? { disposition: 'terminal' as const } : {}),
    ...(hint === undefined ? {} : { hint }),
  });
}
