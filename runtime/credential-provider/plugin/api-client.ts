/**
 * GET requests to the API server with the pod's own token: certificate verified, whatever the environment says, one retry,
 * one budget for all.
 *
 * It is no Kubernetes client: that would take longer to load than the whole run.
 */
import { PullwrightError } from '../../rules/errors.ts';
import { type Redacted, reveal } from '../../rules/redacted.ts';
import type { ApiServer } from './api-server.ts';

/** The answer of the API server: parsed JSON for 200, else what its Status object says. */
export type ApiAnswer =
  | { readonly code: 200; readonly body: unknown }
  | { readonly code: number; readonly message: string };

export interface ApiClient {
  get(path: string): Promise<ApiAnswer>;
}

export interface RawAnswer {
  readonly status: number;
  readonly text: string;
  readonly retryAfter: string | null;
}

/** One exchange with the server; see exchanges.ts. */
export type Exchange = (
  url: string,
  headers: Readonly<Record<string, string>>,
  tls: ApiServer,
) => Promise<RawAnswer>;

const AGAIN: readonly number[] = [429, 500, 502, 503, 504];
const RETRY_DELAY_MS = 200;

/** A client for `server` that gives up when `signal` is aborted. */
export function apiClient(
  server: ApiServer,
  token: Redacted<string>,
  signal: AbortSignal,
  exchange: Exchange,
): ApiClient {
  const headers = {
    authorization: `Bearer ${reveal(token)}`,
    accept: 'application/json',
    // The list is small and near: packing costs more than it saves.
    'accept-encoding': 'identity',
    'user-agent': 'crio-credential-provider',
  };
  const once = (path: string): Promise<RawAnswer> => exchange(server.url + path, headers, server);
  return {
    async get(path) {
      const first = await attempt(() => once(path), signal);
      const answer =
        'failed' in first || AGAIN.includes(first.status)
          ? await again(first, () => once(path), signal)
          : first;
      if ('failed' in answer) throw unreachable(server, answer.failed, signal);
      return read(answer);
    },
  };
}

type Attempt = RawAnswer | { readonly failed: unknown };

async function attempt(once: () => Promise<RawAnswer>, signal: AbortSignal): Promise<Attempt> {
  try {
    signal.throwIfAborted();
    return await once();
  } catch (error) {
    return { failed: error };
  }
}

async function again(first: Attempt, once: () => Promise<RawAnswer>, signal: AbortSignal): Promise<Attempt> {
  if (signal.aborted || ('failed' in first && isCertificateError(first.failed))) return first;
  const wanted = 'failed' in first ? 0 : Number(first.retryAfter ?? 0) * 1000;
  await pause(Number.isFinite(wanted) && wanted > 0 ? wanted : RETRY_DELAY_MS, signal);
  const second = await attempt(once, signal);
  return 'failed' in second && !('failed' in first) ? first : second;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done, { once: true });
  });
}

function read(answer: RawAnswer): ApiAnswer {
  const body = parsed(answer.text);
  if (answer.status === 200 && body !== undefined) return { code: 200, body };
  if (answer.status === 200) return { code: 502, message: 'the answer is no JSON' };
  const message = typeof body === 'object' && body !== null && 'message' in body ? body.message : undefined;
  return {
    code: answer.status,
    message: typeof message === 'string' ? message.slice(0, 500) : `HTTP status ${answer.status}`,
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isCertificateError(error: unknown): boolean {
  return /CERT|SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET_ISSUER)|ALTNAME|certificate|Invalid CA/i.test(
    reasonOf(error),
  );
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown failure';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  const cause = error.cause instanceof Error ? `: ${reasonOf(error.cause)}` : '';
  return `${code ?? error.message}${cause}`;
}

function unreachable(server: ApiServer, error: unknown, signal: AbortSignal): PullwrightError {
  const reason = signal.aborted ? 'no answer within the budget' : reasonOf(error);
  return new PullwrightError(`unable to get secrets: "${server.url}" cannot be reached: ${reason}`, {
    code: 'ApiUnreachable',
    hint: isCertificateError(error)
      ? 'The certificate of the API server does not come from the CA of this node: check the CA files or set --ca-file'
      : 'Check the address in apiserver-url.env and the connection of this node to the API server',
    cause: error,
  });
}
