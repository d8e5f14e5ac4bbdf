/** Where the API server is and which CA its certificate must come from, as files on the node say. */

import { readFileSync } from 'node:fs';
import { PullwrightError } from '../../core/errors.ts';
import { type Redacted, redact, reveal } from '../../core/redacted.ts';
import { trimEndOf } from '../../core/text.ts';
import { HttpClient, isPassingStatus, pause, retry, retryAfterMs, type Tried } from '../../http/client.ts';
import { FetchEngine } from '../../http/fetch-engine.ts';
import { HttpError } from '../../http/http-error.ts';
import type { HttpEngine, Route, WholeAnswer } from '../../http/request.ts';
import type { Log } from './journal.ts';
import { currentCluster, type KubeconfigCluster, plainKubeconfig } from './kubeconfig.ts';
import type { ProviderOptions } from './options.ts';

export interface ApiServer {
  /** `https://host:port` with the path that a kubeconfig may give, IPv6 in brackets. */
  readonly url: string;
  /** PEM. */
  readonly ca: string;
  /** Name that the certificate must be for, where it is not the host of {@link url}. */
  readonly serverName?: string;
}

/** An API server, and the file that its CA is from. */
export interface FoundServer extends ApiServer {
  readonly caFrom: string;
}

const LOCAL = 'https://localhost:6443';

/** The address in `apiserver-url.env`; undefined unless host and port are there. */
function urlOfEnv(envFile: string | undefined): string | undefined {
  const host = variable(envFile ?? '', 'KUBERNETES_SERVICE_HOST');
  const port = variable(envFile ?? '', 'KUBERNETES_SERVICE_PORT');
  if (host === undefined || port === undefined) return undefined;
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  const url = `https://${bare.includes(':') ? `[${bare}]` : bare}:${port}`;
  if (/^[0-9]+$/.test(port) && URL.canParse(url)) return url;
  throw new PullwrightError(`unable to get secrets: "${host}:${port}" is no address of an API server`, {
    code: 'ApiServerAddress',
    retryPolicy: 'terminal',
    hint: 'Correct KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT in apiserver-url.env',
  });
}

/** The last assignment of `name` in dotenv text; quotes, `export` and comments are allowed. Empty counts as absent. */
function variable(text: string, name: string): string | undefined {
  const lines = text.matchAll(new RegExp(`^[ \\t]*(?:export[ \\t]+)?${name}[ \\t]*[=:][ \\t]*(.*)$`, 'gm'));
  const raw = [...lines].at(-1)?.[1]?.trim() ?? '';
  const quoted = /^(['"])(.*?)\1/.exec(raw);
  const value = quoted === null ? raw.split(/[ \t]#/, 1)[0]?.trim() : quoted[2];
  return value === '' ? undefined : value;
}

/**
 * Address and CA: the address of `apiserver-url.env`, else of the first kubeconfig with one, else this host; the CA of the same
 * kubeconfigs, then the CA files. Without a CA no request may be sent, so that is an error.
 */
export async function findApiServer(options: ProviderOptions): Promise<FoundServer> {
  const url = urlOfEnv(textOf(options.apiServerEnv));
  const given = options.caFile === undefined ? undefined : firstOf([options.caFile]);
  if (options.caFile !== undefined && given === undefined) throw noAuthority(options);
  const known: Known = {
    ...(url === undefined ? {} : { address: { url } }),
    ...(given === undefined ? {} : { authority: given }),
  };
  // With both there is nothing to ask a kubeconfig.
  const { address, authority } =
    url !== undefined && given !== undefined ? known : await askKubeconfigs(options.kubeconfigs, known);
  const trusted = authority ?? firstOf(options.caFiles);
  if (trusted === undefined) throw noAuthority(options);
  return { ...(address ?? { url: LOCAL }), ...trusted };
}

type Address = Pick<ApiServer, 'url' | 'serverName'>;

interface Known {
  readonly address?: Address;
  readonly authority?: Authority;
}

/** Fills in what is not known yet, from as few kubeconfigs as it takes. */
async function askKubeconfigs(paths: readonly string[], { address, authority }: Known): Promise<Known> {
  for (const path of paths) {
    const cluster = await clusterIn(path);
    if (cluster === undefined) continue;
    address = withAddress(address, cluster, path);
    authority ??= authorityOf(path, caOf(cluster, path));
    if (authority !== undefined && address !== undefined) break;
  }
  return { ...(address === undefined ? {} : { address }), ...(authority === undefined ? {} : { authority }) };
}

/** The same server with each other CA of the node, for when its certificate is not from the first. */
export async function otherAuthorities(
  options: ProviderOptions,
  server: FoundServer,
): Promise<readonly FoundServer[]> {
  if (options.caFile !== undefined) return [];
  const found: Authority[] = [];
  for (const path of options.kubeconfigs) {
    const cluster = await clusterIn(path);
    const authority = cluster && authorityOf(path, caOf(cluster, path));
    if (authority !== undefined) found.push(authority);
  }
  for (const path of options.caFiles) {
    const authority = authorityOf(path, pemOf(path));
    if (authority !== undefined) found.push(authority);
  }
  const seen = new Set([server.ca]);
  return found.flatMap((authority) => {
    if (seen.has(authority.ca)) return [];
    seen.add(authority.ca);
    return [{ ...server, ...authority }];
  });
}

type Authority = Pick<FoundServer, 'ca' | 'caFrom'>;

function authorityOf(caFrom: string, ca: string | undefined): Authority | undefined {
  return ca === undefined ? undefined : { ca, caFrom };
}

function firstOf(paths: readonly string[]): Authority | undefined {
  for (const path of paths) {
    const authority = authorityOf(path, pemOf(path));
    if (authority !== undefined) return authority;
  }
  return undefined;
}

function noAuthority({ caFile, kubeconfigs, caFiles }: ProviderOptions): PullwrightError {
  const places = caFile === undefined ? [...kubeconfigs, ...caFiles] : [caFile];
  return new PullwrightError(
    `unable to get secrets: no CA to verify the API server with in ${places.join(', ')}, and nothing is sent to a server that is not verified`,
    {
      code: 'NoApiServerCa',
      retryPolicy: 'terminal',
      hint: "Point --kubeconfig at the kubelet's kubeconfig, or --ca-file at the PEM file of the API server's CA (provider.kubeconfigs and provider.caFile of the section)",
    },
  );
}

/** What is known of the address already wins; the name in the certificate belongs to the kubeconfig's own address. */
function withAddress(
  known: Address | undefined,
  { server, serverName }: KubeconfigCluster,
  path: string,
): Address | undefined {
  if (server === undefined) return known;
  const url = urlOf(server, path);
  if (known !== undefined && known.url !== url) return known;
  const name = known?.serverName ?? serverName;
  return { url, ...(name === undefined ? {} : { serverName: name }) };
}

/** The address of a kubeconfig in the form that requests are made with. */
function urlOf(server: string, path: string): string {
  const parsed = URL.canParse(server) ? new URL(server) : undefined;
  if (parsed?.protocol === 'https:')
    return `https://${parsed.hostname}:${parsed.port === '' ? '443' : parsed.port}${trimEndOf(parsed.pathname, '/')}`;
  throw new PullwrightError(
    `unable to get secrets: server "${server.slice(0, 200)}" of "${path}" is no address of an API server`,
    {
      code: 'ApiServerAddress',
      retryPolicy: 'terminal',
      hint: `Correct clusters[].cluster.server of "${path}" to https://host:port, or set KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT in apiserver-url.env`,
    },
  );
}

/** The YAML library is loaded only for a kubeconfig that is not of the usual form. */
async function clusterIn(path: string): Promise<KubeconfigCluster | undefined> {
  const text = textOf(path);
  if (text === undefined) return undefined;
  const plain = plainKubeconfig(text);
  if (plain !== undefined) return currentCluster(plain);
  try {
    return currentCluster((await import('../../kube/yaml.ts')).parseYaml(text));
  } catch {
    return undefined;
  }
}

function caOf({ caData, caFile }: KubeconfigCluster, path: string): string | undefined {
  if (caData !== undefined) return pem(Buffer.from(caData, 'base64').toString('latin1'));
  if (caFile === undefined) return undefined;
  return pemOf(caFile.startsWith('/') ? caFile : `${path.slice(0, path.lastIndexOf('/'))}/${caFile}`);
}

function pemOf(path: string): string | undefined {
  return pem(textOf(path));
}

function pem(text: string | undefined): string | undefined {
  return text?.includes('-----BEGIN') === true ? text : undefined;
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

// GET requests to the API server with the pod's own token: certificate verified, whatever the environment says, one retry,
// one budget for all. What only a failure needs is loaded then.
// It is no Kubernetes client: that would take longer to load than the whole run.

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
  return new (await import('../../http/engine.ts')).HttpsEngine(route);
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

// What is tried when the API server's certificate is not from the first CA that the node has. Loaded only then.

interface Trust {
  readonly options: ProviderOptions;
  readonly server: FoundServer;
  readonly open: (server: ApiServer) => ApiClient;
  readonly log: Log;
}

/** A client for each other CA of the node; none when the certificate is not what failed. */
export async function otherClients(
  error: unknown,
  { options, server, open, log }: Trust,
): Promise<readonly ApiClient[]> {
  const cause = error instanceof PullwrightError ? error.cause : undefined;
  if (!(cause instanceof HttpError) || cause.failure !== 'CertificateNotTrusted') return [];
  const others = await otherAuthorities(options, server);
  if (others.length > 0)
    log.warn(
      `The certificate of the API server is not from the CA in ${server.caFrom}, trying ${others.map(({ caFrom }) => caFrom).join(', ')}`,
    );
  return others.map(open);
}

// What becomes of a request to the API server that was not answered, or answered that it may be another time.

const TRIES = 2;
const RETRY_DELAY_MS = 150;
/** A pull waits meanwhile: longer than this, the kubelet's own next try is the better one. */
const LONGEST_WAIT_MS = 5000;
/** Failures that are the same a moment later. */
const FOR_GOOD: readonly string[] = ['CertificateNotTrusted', 'TlsFailed', 'TlsWanted', 'AnswerTooLarge'];

/**
 * The answer of the second try, where there is one.
 *
 * @throws PullwrightError when there is no answer
 */
export async function tryAgain(
  first: Tried<WholeAnswer>,
  once: () => Promise<WholeAnswer>,
  { server, signal }: { readonly server: ApiServer; readonly signal: AbortSignal },
): Promise<WholeAnswer> {
  let made: Tried<WholeAnswer> | undefined = first;
  const attempt = async (): Promise<WholeAnswer> => {
    const tried = made;
    made = undefined;
    if (tried === undefined) return once();
    if ('error' in tried) throw tried.error;
    return tried.value;
  };
  try {
    return await retry(attempt, {
      tries: TRIES,
      waitMs: () => RETRY_DELAY_MS * (1 + Math.random()),
      longestWaitMs: LONGEST_WAIT_MS,
      again: (tried) => (signal.aborted ? undefined : again(tried)),
      pause: (ms) => pause(ms, signal),
    });
  } catch (error) {
    throw unreachable(server, error, signal);
  }
}

function again(tried: Tried<WholeAnswer>): { readonly afterMs?: number | undefined } | undefined {
  if ('error' in tried)
    return tried.error instanceof HttpError && !FOR_GOOD.includes(tried.error.failure) ? {} : undefined;
  const { status } = tried.value;
  return isPassingStatus(status)
    ? { afterMs: retryAfterMs(tried.value.header('retry-after'), Date.now()) }
    : undefined;
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
