/** HTTP client for configured servers, with the system's authorities and the proxy of the environment. */
import { HttpClient } from './client.ts';
import { HttpsEngine } from './engine.ts';
import { proxyFor } from './proxy.ts';

/**
 * @param env read for `HTTPS_PROXY` and `NO_PROXY`, in Go's format
 * @param plainUrls configured URLs; hosts of `http:` URLs are contacted without TLS
 */
export function openHttpClient(
  env: Readonly<Record<string, string | undefined>>,
  plainUrls: readonly string[] = [],
): HttpClient {
  const plain = new Set(plainUrls.filter((url) => /^http:/i.test(url)).map((url) => new URL(url).host));
  const engine = new HttpsEngine({ proxyFor: (origin) => proxyFor(origin, env) });
  return new HttpClient(engine, { plain: (host) => plain.has(host) });
}
