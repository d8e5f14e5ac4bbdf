/** Which way requests go to the API server. */
import type { Exchange } from './api-client.ts';
import type { ApiServer } from './api-server.ts';
import { socketExchange } from './socket-exchange.ts';

const LOOPBACK = /^https:\/\/(?:localhost|127\.[0-9.]+|\[::1\]):/;
const PROXIES: readonly string[] = ['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'];

/**
 * The exchange for `server` in a process with the environment `env`: straight to the server, or where the environment names a
 * proxy and the server is not on this host, by the runtime's `fetch`, which knows proxies and their exceptions.
 */
export function exchangeFor(
  server: ApiServer,
  env: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
): Exchange {
  if (!('Bun' in globalThis))
    return async (url, headers) =>
      (await import('./node-exchange.ts')).nodeExchange(url, headers, { server, signal });
  const isProxied = PROXIES.some((name) => (env[name] ?? '') !== '') && !LOOPBACK.test(server.url);
  return isProxied ? fetchExchange(signal) : socketExchange(signal);
}

interface BunTls {
  readonly tls: { readonly ca: string; readonly rejectUnauthorized: true };
}

function fetchExchange(signal: AbortSignal): Exchange {
  return async (url, headers, server) => {
    // Verification is asked for explicitly, because the environment can change the default.
    const tls = { ca: server.ca, rejectUnauthorized: true } as const;
    const options: RequestInit & BunTls = { headers, signal, redirect: 'error', tls };
    const response = await fetch(url, options);
    return {
      status: response.status,
      text: await response.text(),
      retryAfter: response.headers.get('retry-after'),
    };
  };
}
