/** Address and CA of the API server, from files on the node. */

import { readFileSync } from 'node:fs';
import { PullwrightError } from '../../core/errors.ts';
import { jsonOf, recordOf, recordsIn, textOf, valueAt } from '../../core/record.ts';
import { type Redacted, reveal } from '../../core/redacted.ts';
import { trimEndOf } from '../../core/text.ts';
import { HttpClient, PASSING, pause, retry, retryAfterMs, type Tried } from '../../http/client.ts';
import { fetchEngine } from '../../http/fetch-engine.ts';
import { HttpError } from '../../http/http-error.ts';
import type { WholeAnswer } from '../../http/request.ts';
import type { ProviderOptions } from '../provider-flags.ts';

export interface ApiServer {
  /** `https://host:port` with an optional path, IPv6 in brackets. */
  readonly url: string;
  /** PEM. */
  readonly ca: string;
  /** Name in the certificate, where it is not the host of {@link url}. */
  readonly serverName?: string;
}

const LOCAL = 'https://localhost:6443';

/** The address in `apiserver-url.env`; undefined unless host and port are there. */
function addressOfEnv(envFile: string | undefined): Address | undefined {
  const host = variable(envFile ?? '', 'KUBERNETES_SERVICE_HOST');
  const port = variable(envFile ?? '', 'KUBERNETES_SERVICE_PORT');
  if (host === undefined || port === undefined) return undefined;
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  const url = `https://${bare.includes(':') ? `[${bare}]` : bare}:${port}`;
  if (/^[0-9]+$/.test(port) && URL.canParse(url)) return { url };
  throw new PullwrightError(`unable to get secrets: "${host}:${port}" is not the address of an API server`, {
    code: 'ApiServerAddress',
    hint: 'Correct KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT in apiserver-url.env',
  });
}

/** The last assignment of `name` in dotenv text, with quotes, `export` and comments. An empty value counts as absent. */
function variable(text: string, name: string): string | undefined {
  const lines = text.matchAll(new RegExp(`^[ \\t]*(?:export[ \\t]+)?${name}[ \\t]*[=:][ \\t]*(.*)$`, 'gm'));
  const raw = [...lines].at(-1)?.[1]?.trim() ?? '';
  const quoted = /^(['"])(.*?)\1/.exec(raw);
  const value = quoted === null ? raw.split(/[ \t]#/, 1)[0]?.trim() : quoted[2];
  return value === '' ? undefined : value;
}

type Address = Pick<ApiServer, 'url' | 'serverName'>;

/**
 * Address from `apiserver-url.env`, else from the first kubeconfig with one, else this host. CA from the same kubeconfigs, then
 * the CA files.
 *
 * @throws PullwrightError without a CA, since no request may be sent to an unverified server
 */
export async function findApiServer(options: ProviderOptions): Promise<ApiServer> {
  const { caFile, kubeconfigs, caFiles } = options;
  let address = addressOfEnv(textIn(options.apiServerEnv));
  let ca = caFile === undefined ? undefined : pem(textIn(caFile));
  // With address and CA, read no further kubeconfig.
  for (const path of caFile !== undefined && ca === undefined ? [] : kubeconfigs) {
    if (address !== undefined && ca !== undefined) break;
    const cluster = await clusterIn(path);
    if (cluster === undefined) continue;
    address = withAddress(address, cluster, path);
    ca ??= caOf(cluster, path);
  }
  if (caFile === undefined) for (const path of caFiles) ca ??= pem(textIn(path));
  if (ca !== undefined) return { ...(address ?? { url: LOCAL }), ca };
  const places = caFile === undefined ? [...kubeconfigs, ...caFiles] : [caFile];
  throw new PullwrightError(
    `unable to get secrets: no CA found in ${places.join(', ')}, and the API server must be verified`,
    {
      code: 'NoApiServerCa',
      hint: "Point --kubeconfig at the kubelet's kubeconfig, or --ca-file at the PEM file of the API server's CA (provider.kubeconfigs and provider.caFile of the section)",
    },
  );
}

/** A known address wins; the certificate's name in a kubeconfig is valid for its own address only. */
function withAddress(known: Address | undefined, { server, serverName }: KubeconfigCluster, path: string) {
  if (server === undefined) return known;
  const url = urlOf(server, path);
  if (known !== undefined && known.url !== url) return known;
  const name = known?.serverName ?? serverName;
  return { url, ...(name === undefined ? {} : { serverName: name }) };
}

/** Normalized server address of a kubeconfig. */
function urlOf(server: string, path: string): string {
  const parsed = URL.canParse(server) ? new URL(server) : undefined;
  if (parsed?.protocol === 'https:')
    return `https://${parsed.hostname}:${parsed.port === '' ? '443' : parsed.port}${trimEndOf(parsed.pathname, '/')}`;
  throw new PullwrightError(
    `unable to get secrets: server "${server.slice(0, 200)}" of "${path}" is not the address of an API server`,
    {
      code: 'ApiServerAddress',
      hint: `Correct clusters[].cluster.server of "${path}" to https://host:port, or set KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT in apiserver-url.env`,
    },
  );
}

// The API server in a kubeconfig. Source of the rule: client-go `clientcmd` (current-context, context, cluster).

/** The cluster of the current context. */
type KubeconfigCluster = Readonly<ReturnType<typeof clusterOf>>;

async function clusterIn(path: string): Promise<KubeconfigCluster | undefined> {
  const text = textIn(path);
  // On OpenShift kubelet.conf is a KubeletConfiguration.
  if (text === undefined || !/\bclusters\b/.test(text)) return undefined;
  try {
    return usualCluster(text) ?? currentCluster((await import('../../kube/yaml.ts')).parseYaml(text));
  } catch {
    return undefined;
  }
}

/** A kubelet's kubeconfig as client-go writes it: one cluster with one context, the current one; only plain scalars. */
const ONE_CLUSTER =
  /^clusters:\n- cluster:\n((?: {4}[a-z-]+: [\w/.]\S*\n)+) {2}name: (\w\S*)\ncontexts:\n- context:\n {4}cluster: \2\n(?: {4}[a-z]+: \w\S*\n)* {2}name: (\w\S*)\ncurrent-context: \3\n(?=\w)/m;

/** Parses the usual form without a YAML library, which takes longer to load than a run; undefined for other forms. */
export function usualCluster(text: string): KubeconfigCluster | undefined {
  const [, lines] = ONE_CLUSTER.exec(text) ?? [];
  if (lines === undefined) return undefined;
  return clusterOf(Object.fromEntries(lines.split('\n').map((line) => line.trim().split(': '))));
}

/** Cluster of the current context, or the only cluster without one; undefined when there is none. */
export function currentCluster(config: unknown): KubeconfigCluster | undefined {
  const { clusters, contexts, 'current-context': current } = recordOf(config);
  const named = (list: unknown, name: unknown) => recordsIn(list).find((one) => one['name'] === name);
  const only = Array.isArray(clusters) && clusters.length === 1 ? recordOf(clusters[0]) : undefined;
  const wanted = recordOf(named(contexts, current)?.['context'])['cluster'];
  const found = textOf(current) === '' && only !== undefined ? only : named(clusters, wanted);
  return found === undefined ? undefined : clusterOf(recordOf(found['cluster']));
}

function clusterOf(fields: Readonly<Record<string, unknown>>) {
  return {
    server: textOf(fields['server']) || undefined,
    /** Name in the certificate, where it is not the host of `server`. */
    serverName: textOf(fields['tls-server-name']) || undefined,
    /** Base64 of PEM. Wins over `caFile`. */
    caData: textOf(fields['certificate-authority-data']) || undefined,
    /** Path; relative to the folder of the kubeconfig. */
    caFile: textOf(fields['certificate-authority']) || undefined,
  };
}

function caOf({ caData, caFile }: KubeconfigCluster, path: string): string | undefined {
  if (caData !== undefined) return pem(Buffer.from(caData, 'base64').toString('latin1'));
  if (caFile === undefined) return undefined;
  return pem(textIn(caFile.startsWith('/') ? caFile : `${path.slice(0, path.lastIndexOf('/'))}/${caFile}`));
}

function pem(text: string | undefined): string | undefined {
  return text?.includes('-----BEGIN') === true ? text : undefined;
}

function textIn(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

// GET requests to the API server with the pod's own token: certificate always verified, one retry, one budget for all.
// Not a Kubernetes client: loading one would take longer than the whole run.

/** Response of the API server: parsed JSON for 200, else the message of its Status. */
export type ApiAnswer =
  | { readonly code: 200; readonly body: unknown }
  | { readonly code: number; readonly message: string };

/** One GET request. */
export type ApiGet = (path: string) => Promise<ApiAnswer>;

/** Bounds the memory of a run; the Secrets of a namespace have a few megabytes at most. */
const MOST_BYTES = 64 * 2 ** 20;

const LOOPBACK = /^https:\/\/(?:localhost|127\.[0-9.]+|\[::1\]):/;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * A client for `server`, direct or through the proxy in `env`. Bun's built-in fetch needs no loading; modules for Node and for a
 * proxy are loaded on demand.
 */
export async function httpClientFor(server: ApiServer, env: Environment): Promise<HttpClient> {
  const proxy = await proxyOf(server.url, env);
  const { ca, serverName } = server;
  const route = { ca, serverName, proxyFor: () => proxy };
  if ('Bun' in globalThis) return new HttpClient(fetchEngine(route));
  return new HttpClient(new (await import('../../http/engine.ts')).HttpsEngine(route));
}

async function proxyOf(url: string, env: Environment): Promise<Redacted<string> | undefined> {
  const named = env['HTTPS_PROXY'] || env['https_proxy'];
  if (!named || LOOPBACK.test(url)) return undefined;
  return (await import('../../http/proxy.ts')).proxyFor(url, env);
}

/** Sends requests to `server`, until `signal` is aborted. */
export function apiClient(
  server: ApiServer,
  token: Redacted<string>,
  signal: AbortSignal,
  client: Promise<HttpClient>,
): ApiGet {
  const headers = {
    authorization: `Bearer ${reveal(token)}`,
    accept: 'application/json',
    'user-agent': 'crio-credential-provider',
  };
  return async (path) => {
    try {
      return read(
        await retry(
          async () =>
            (await client).ask({ method: 'GET', url: server.url + path, headers, signal }, MOST_BYTES),
          {
            tries: TRIES,
            waitMs: () => RETRY_DELAY_MS * (1 + Math.random()),
            longestWaitMs: LONGEST_WAIT_MS,
            again: (tried) => (signal.aborted ? undefined : again(tried)),
            pause: (ms) => pause(ms, signal),
          },
        ),
      );
    } catch (error) {
      throw unreachable(server, error, signal);
    }
  };
}

function read(answer: WholeAnswer): ApiAnswer {
  const body = jsonOf(answer.text);
  if (answer.status === 200 && body !== undefined) return { code: 200, body };
  if (answer.status === 200) return { code: 502, message: 'the response is not JSON' };
  const message = textOf(valueAt(body, 'message')).slice(0, 500) || `HTTP status ${answer.status}`;
  return { code: answer.status, message };
}

const TRIES = 2;
const RETRY_DELAY_MS = 150;
/** A pull waits meanwhile: after a longer wait the kubelet's next attempt is better. */
const LONGEST_WAIT_MS = 5000;
/** Failures that a retry does not fix. */
const FOR_GOOD: readonly string[] = ['CertificateNotTrusted', 'TlsFailed', 'TlsWanted', 'AnswerTooLarge'];

function again(tried: Tried<WholeAnswer>): { readonly afterMs?: number | undefined } | undefined {
  if ('error' in tried)
    return tried.error instanceof HttpError && !FOR_GOOD.includes(tried.error.failure) ? {} : undefined;
  const { status, header } = tried.value;
  return PASSING.includes(status) ? { afterMs: retryAfterMs(header('retry-after'), Date.now()) } : undefined;
}

function unreachable(server: ApiServer, error: unknown, signal: AbortSignal): PullwrightError {
  const known = error instanceof HttpError ? error : undefined;
  const reason = signal.aborted ? 'request timed out' : (known?.message ?? 'unknown failure');
  return new PullwrightError(`unable to get secrets: "${server.url}" is unreachable: ${reason}`, {
    code: 'ApiUnreachable',
    hint:
      known?.failure === 'CertificateNotTrusted'
        ? "The CA of this node did not sign the API server's certificate: check the CA files or set --ca-file"
        : 'Check the address in apiserver-url.env and the connection of this node to the API server',
    cause: error,
  });
}
