/**
 * One HTTPS request to a registry through an HTTP proxy (CONNECT): TLS is with the registry, and verified. Node has it in its
 * agent; Bun only in its fetch.
 */
import { Agent, request as httpsRequest } from 'node:https';
import { type Redacted, reveal } from '../rules/redacted.ts';
import type { Request } from './transport.ts';

/** The proxy, and whom to trust. */
export interface ProxyRoute {
  /** `http://[user:password@]host:port` */
  readonly proxy: Redacted<string>;
  readonly ca?: readonly string[];
}

/** The answer's head, with its body still to be read. */
export interface ProxiedAnswer {
  readonly status: number;
  header(name: string): string | undefined;
  readonly body: AsyncIterable<Uint8Array>;
  discard(): void;
}

/** Host and port of the proxy, for messages: never its password. */
export function proxyHost({ proxy }: ProxyRoute): string {
  const text = reveal(proxy);
  return URL.canParse(text) ? new URL(text).host : 'the proxy';
}

/** Sends the request; rejects with what the runtime says. */
export function sendThroughProxy(request: Request, route: ProxyRoute): Promise<ProxiedAnswer> {
  return process.versions['bun'] === undefined ? byAgent(request, route) : byFetch(request, route);
}

function byAgent(
  { url, method, headers, body, signal }: Request,
  { proxy, ca }: ProxyRoute,
): Promise<ProxiedAnswer> {
  const agent = new Agent({ proxyEnv: { HTTPS_PROXY: reveal(proxy) } });
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const call = httpsRequest(url, {
      method,
      headers: { ...headers, ...length },
      signal,
      agent,
      rejectUnauthorized: true,
      minVersion: 'TLSv1.2',
      ...(ca === undefined ? {} : { ca: [...ca] }),
    });
    call.once('error', reject);
    call.once('response', (message) => {
      message.on('error', () => undefined);
      resolve({
        status: message.statusCode ?? 0,
        header: (name) => {
          const value = message.headers[name.toLowerCase()];
          return Array.isArray(value) ? value[0] : value;
        },
        body: message,
        discard: () => message.destroy(),
      });
    });
    call.end(body);
  });
}

/** What Bun's fetch takes beyond the standard. */
interface BunRequestInit extends RequestInit {
  readonly tls: { readonly rejectUnauthorized: true; readonly ca?: readonly string[] };
  readonly proxy: string;
  readonly timeout: false;
  readonly decompress: false;
}

async function byFetch(
  { url, method, headers, body, signal }: Request,
  { proxy, ca }: ProxyRoute,
): Promise<ProxiedAnswer> {
  const control = new AbortController();
  const init: BunRequestInit = {
    method,
    headers,
    signal: AbortSignal.any([signal, control.signal]),
    redirect: 'manual',
    timeout: false,
    decompress: false,
    proxy: reveal(proxy),
    tls: { rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) },
    ...(body === undefined ? {} : { body }),
  };
  const response = await fetch(url, init);
  return {
    status: response.status,
    header: (name) => response.headers.get(name) ?? undefined,
    body: response.body ?? nothing(),
    discard: () => control.abort(),
  };
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  // An answer without a body ends at once.
}
