/**
 * GET requests to the API server with the pod's own token: certificate verified, whatever the environment says, one retry,
 * one budget for all. What only a failure needs is loaded then.
 *
 * It is no Kubernetes client: that would take longer to load than the whole run.
 */
import { HttpClient } from '../../http/client.ts';
import { FetchEngine } from '../../http/fetch-engine.ts';
import type { HttpEngine, Route, WholeAnswer } from '../../http/request.ts';
import type { Tried } from '../../http/retry.ts';
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

const LOOPBACK = /^https:\/\/(?:localhost|127\.[0-9.]+|\[::1\]):/;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * A client for `server`, straight to it, or through the proxy that `env` names for it. In the executable the runtime's own
 * fetch carries it, which need not be loaded; what Node and a proxy need is loaded for them alone.
 */
export async function httpClientFor(server: ApiServer, env: Environment): Promise<HttpClient> {
  const proxy = await proxyOf(server.url, env);
  return new HttpClient(
    await engineFor({
      ca: server.ca,
      ...(server.serverName === undefined ? {} : { serverName: server.serverName }),
      ...(proxy === undefined ? {} : { proxyFor: () => proxy }),
    }),
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
      const first: Tried<WholeAnswer> = await once(path).then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      );
      if ('value' in first && first.value.status < 408) return read(first.value);
      const { tryAgain } = await import('./second-try.ts');
      return read(await tryAgain(first, () => once(path), { server, signal }));
    },
  };
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
