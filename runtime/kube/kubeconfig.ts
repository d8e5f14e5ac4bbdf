/**
 * Finds the cluster and the credentials of the person or pod that runs the program. Reading kubeconfigs, exec plugins and
 * OIDC is left to @kubernetes/client-node, which is imported only here and only when needed; its requests are not used.
 */
import { readFileSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { dirname, resolve } from 'node:path';
import type { Cluster, KubeConfig, User } from '@kubernetes/client-node';
import { parse } from 'yaml';
import { PullwrightError, UsageError } from '../rules/errors.ts';
import { redact } from '../rules/redacted.ts';
import type { Connection, Credentials } from './connection.ts';
import { proxyFor } from './proxy.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** How long a file with a token or key is not looked at again. Kubelet renews tokens long before they end. */
const FILE_CACHE_MS = 10_000;

/**
 * The connection of `file`; without one, that of the pod; without that, what `KUBECONFIG` names.
 *
 * @throws UsageError when there is none, or it is not usable; a message never holds a value
 */
export async function loadConnection(file: string | undefined, env: Environment): Promise<Connection> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  const path = file ?? (env['KUBERNETES_SERVICE_HOST'] === undefined ? env['KUBECONFIG'] : undefined);
  if (path === undefined && env['KUBERNETES_SERVICE_HOST'] === undefined)
    throw new UsageError('Cannot find a cluster: wanted --kubeconfig FILE, KUBECONFIG, or to run in a pod');
  try {
    if (path === undefined) config.loadFromCluster();
    else config.loadFromFile(path);
  } catch (error) {
    throw new UsageError(`Cannot read kubeconfig "${path ?? '(in-cluster)'}": ${fileFailure(error)}`);
  }
  return connectionOf(config, path, env);
}

function connectionOf(config: KubeConfig, file: string | undefined, env: Environment): Connection {
  const path = file ?? '(in-cluster)';
  const cluster = config.getCurrentCluster();
  const user = config.getCurrentUser();
  if (cluster === null || user === null)
    throw new UsageError(`Cannot use kubeconfig "${path}": its current context names no cluster and user`);
  const problem = problemOf(cluster, user);
  if (problem !== undefined) throw new UsageError(`Cannot use kubeconfig "${path}": ${problem}`);
  // client-node gives null for what a kubeconfig leaves out, whatever its types say.
  const proxy = cluster.proxyUrl || proxyFor(cluster.server, env);
  const ca = fileOrData(cluster.caFile, cluster.caData);
  return {
    server: cluster.server,
    ...(ca === undefined ? {} : { ca: ca() }),
    ...(cluster.tlsServerName ? { serverName: cluster.tlsServerName } : {}),
    ...(proxy === undefined ? {} : { proxy: redact(proxy) }),
    credentials: credentialsOf(config, user, tokenFileOf(user, file)),
  };
}

function problemOf(cluster: Cluster, user: User): string | undefined {
  if (cluster.skipTLSVerify) return 'insecure-skip-tls-verify is set, wanted certificate-authority-data';
  if (!cluster.server.startsWith('https://')) return 'its server is not https';
  if (cluster.proxyUrl && !/^https?:/.test(cluster.proxyUrl))
    return 'its proxy-url is neither http nor https';
  return user.username ? 'user name and password are not supported by API servers any more' : undefined;
}

function credentialsOf(
  config: KubeConfig,
  user: User,
  tokenFile: string | undefined,
): Connection['credentials'] {
  if (user.exec || (user.authProvider && tokenFile === undefined)) return () => pluginCredentials(config);
  const certificate = fileOrData(user.certFile, user.certData);
  const key = fileOrData(user.keyFile, user.keyData);
  const token = tokenFile === undefined ? undefined : cachedFile(tokenFile);
  return (refused) =>
    Promise.resolve({
      ...(certificate === undefined ? {} : { certificate: certificate(refused) }),
      ...(key === undefined ? {} : { key: redact(key(refused)) }),
      ...(token === undefined ? {} : { token: redact(token(refused).trim()) }),
      ...(user.token && token === undefined ? { token: redact(user.token) } : {}),
    });
}

/** In a pod client-node keeps the path in a made-up provider of this name; out of a kubeconfig it reads the file only once. */
function tokenFileOf(user: User, kubeconfig: string | undefined): string | undefined {
  const provider = user.authProvider as { name?: string; config?: { tokenFile?: string } } | undefined;
  if (provider?.name === 'tokenFile') return provider.config?.tokenFile;
  if (kubeconfig === undefined) return undefined;
  const raw = parse(readFileSync(kubeconfig, 'utf8')) as {
    users?: readonly { name?: string; user?: { tokenFile?: string } }[];
  };
  const path = raw.users?.find(({ name }) => name === user.name)?.user?.tokenFile;
  return path === undefined ? undefined : resolve(dirname(kubeconfig), path);
}

/** Exec plugins and OIDC. */
async function pluginCredentials(config: KubeConfig): Promise<Credentials> {
  const options: RequestOptions = {};
  try {
    await config.applyToHTTPSOptions(options);
  } catch {
    // What the plugin printed may hold a credential.
    throw new PullwrightError(
      'Cannot get credentials: the exec or auth-provider plugin of the kubeconfig failed',
      {
        code: 'CredentialPluginFailed',
        hint: 'Run kubectl with the same kubeconfig to see what it says',
      },
    );
  }
  const { Authorization: authorization = '' } = (options.headers ?? {}) as { Authorization?: string };
  return {
    ...(authorization.startsWith('Bearer ') ? { token: redact(authorization.slice(7)) } : {}),
    ...(options.cert === undefined ? {} : { certificate: pemText(options.cert) }),
    ...(options.key === undefined ? {} : { key: redact(pemText(options.key)) }),
  };
}

/** node:https takes PEM as text or bytes. */
function pemText(value: unknown): string {
  return Buffer.isBuffer(value) ? value.toString('utf8') : (value as string);
}

type Reader = (refused?: boolean) => string;

function fileOrData(file: string | undefined, data: string | undefined): Reader | undefined {
  if (file) return cachedFile(file);
  if (!data) return undefined;
  const text = Buffer.from(data, 'base64').toString('utf8');
  return () => text;
}

/** Reads the file again after a while; keeps the last content when it cannot be read (it is being replaced). */
function cachedFile(path: string): Reader {
  let known: { readonly text: string; readonly at: number } | undefined;
  return (refused = false) => {
    if (known !== undefined && !refused && performance.now() - known.at < FILE_CACHE_MS) return known.text;
    try {
      known = { text: readFileSync(path, 'utf8'), at: performance.now() };
    } catch (error) {
      if (known === undefined)
        throw new PullwrightError(`Cannot read "${path}": ${fileFailure(error)}`, {
          code: 'CredentialFileUnreadable',
        });
    }
    return known.text;
  };
}

function fileFailure(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : 'it is not a valid kubeconfig';
}
