/**
 * GET requests to the API server with the pod's own token: certificate verified, whatever the environment says, one retry,
 * one budget for all.
 *
 * It is no Kubernetes client: that would take longer to load than the whole run.
 */
import { HttpClient } from '../../http/client.ts';
import { FetchEngine } from '../../http/fetch-engine.ts';
import { HttpError } from '../../http/http-error.ts';
import type { HttpEngine, Route, WholeAnswer } from '../../http/request.ts';
import { isPassingStatus, pause, retry, retryAfterMs, type Tried } from '../../http/retry.ts';
import { PullwrightError } from '../../rules/errors.ts';
import { type Redacted, redact, reveal } from '../../rules/redacted.ts';
import type { ApiServer } from './api-server.ts';

/** The answer of the API server: parsed JSON for 200, else what its Status object says. */
export type ApiAnswer =
  | { readonly code: 200; readonly body: unknown }
  | { readonly code: number; readonly message: string };

export interface ApiClient {
  get(path: string): Promise<ApiAnswer>;
}

/** A namespace's secrets are a few megabytes at most; a server that never ends must not take the node's memory. */
const MOST_BYTES = 64 * 2 ** 20;
const TRIES = 2;
const RETRY_DELAY_MS = 150;
/** A pull waits meanwhile: longer than this, the kubelet's own next try is the better one. */
const LONGEST_WAIT_MS = 5000;
/** Failures that are the same a moment later. */
const FOR_GOOD: readonly string[] = ['CertificateNotTrusted', 'TlsFailed', 'TlsWanted', 'AnswerTooLarge'];

const LOOPBACK = /^https:\/\/(?:localhost|127\.[0-9.]+|\[::1\]):/;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * A client for `server`, straight to it, or through the proxy that `env` names for it. In the executable the runtime's own
 * fetch carries it, which need not be loaded; what Node and a proxy need is loaded for them alone.
 */
export async function httpClientFor(server: ApiServer, env: Environment): Promise<HttpClient> {
  const proxy = await proxyOf(server.url, env);
  return new HttpClient(
    await engineFor({ ca: server.ca, ...(proxy === undefined ? {} : { proxyFor: () => proxy }) }),
  );
}

async function engineFor(route: Route): Promise<HttpEngine> {
  if ('Bun' in globalThis) return new FetchEngine(route);
  return new (await import('../../http/https-engine.ts')).HttpsEngine(route);
}

async function proxyOf(url: string, env: Environment): Promise<Redacted<string> | undefined> {
  const named = env['HTTPS_PROXY'] || env['https_proxy'];
  if (!named || LOOPBACK.test(url)) return undefined;
  const proxy = (await import('../../http/proxy.ts')).proxyFor(url, env);
  return proxy === undefined ? undefined : redact(proxy);
}

/** Asks `server`, and gives up when `signal` is aborted. */
export function apiClient(
  server: ApiServer,
  token: Redacted<string>,
  signal: AbortSignal,
  client: Promise<HttpClient>,
): ApiClient {
  const headers = {
    authorization: `Bearer ${reveal(token)}`,
    accept: 'application/json',
    'user-agent': 'crio-credential-provider',
  };
  const once = async (path: string): Promise<WholeAnswer> =>
    (await client).ask({ method: 'GET', url: server.url + path, headers, signal }, MOST_BYTES);
  return {
    async get(path) {
      try {
        const answer = await retry(() => once(path), {
          tries: TRIES,
          waitMs: () => RETRY_DELAY_MS * (1 + Math.random()),
          longestWaitMs: LONGEST_WAIT_MS,
          again: (tried) => (signal.aborted ? undefined : again(tried)),
          pause: (ms) => pause(ms, signal),
        });
        return read(answer);
      } catch (error) {
        throw unreachable(server, error, signal);
      }
    },
  };
}

function again(tried: Tried<WholeAnswer>): { readonly afterMs?: number | undefined } | undefined {
  if ('error' in tried)
    return tried.error instanceof HttpError && !FOR_GOOD.includes(tried.error.failure) ? {} : undefined;
  const { status } = tried.value;
  return isPassingStatus(status)
    ? { afterMs: retryAfterMs(tried.value.header('retry-after'), Date.now()) }
    : undefined;
}

function read(answer: WholeAnswer): ApiAnswer {
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

function unreachable(server: ApiServer, error: unknown, signal: AbortSignal): PullwrightError {
  const known = error instanceof HttpError ? error : undefined;
  const reason = signal.aborted ? 'no answer within the budget' : (known?.message ?? 'unknown failure');
  return new PullwrightError(`unable to get secrets: "${server.url}" cannot be reached: ${reason}`, {
    code: 'ApiUnreachable',
    hint:
      known?.failure === 'CertificateNotTrusted'
        ? 'The certificate of the API server does not come from the CA of this node: check the CA files or set --ca-file'
        : 'Check the address in apiserver-url.env and the connection of this node to the API server',
    cause: error,
  });
}
