/**
 * Finds the cluster and the credentials of the person or pod that runs the program. Reading kubeconfigs and running exec plugins
 * is left to @kubernetes/client-node, which is imported only here and only when needed; its requests are not used.
 */

import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Cluster, KubeConfig, User } from '@kubernetes/client-node';
import { PullwrightError, UsageError } from '../rules/errors.ts';
import { redact } from '../rules/redacted.ts';
import type { Connection } from './connection.ts';
import { type OidcConfig, oidcCredentials } from './oidc-credentials.ts';
import { pluginCredentials } from './plugin-credentials.ts';
import { proxyFor } from './proxy.ts';
import { parseYaml as parse } from './yaml.ts';

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
  const path = file ?? (env['KUBERNETES_SERVICE_HOST'] === undefined ? env['KUBECONFIG'] : undefined);
  if (path === undefined && env['KUBERNETES_SERVICE_HOST'] === undefined)
    throw new UsageError('Cannot find a cluster: wanted --kubeconfig FILE, KUBECONFIG, or to run in a pod');
  const load = (): KubeConfig => {
    const config = new KubeConfig();
    try {
      if (path === undefined) config.loadFromCluster();
      else config.loadFromFile(path);
    } catch (error) {
      throw new UsageError(`Cannot read kubeconfig "${path ?? '(in-cluster)'}": ${fileFailure(error)}`);
    }
    return config;
  };
  return connectionOf(load, path, env);
}

function connectionOf(load: () => KubeConfig, file: string | undefined, env: Environment): Connection {
  const config = load();
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
    credentials: credentialsOf(load, user, file),
  };
}

function problemOf(cluster: Cluster, user: User): string | undefined {
  if (cluster.skipTLSVerify) return 'insecure-skip-tls-verify is set, wanted certificate-authority-data';
  if (!cluster.server.startsWith('https://')) return 'its server is not https';
  if (cluster.proxyUrl && !/^https?:/.test(cluster.proxyUrl))
    return 'its proxy-url is neither http nor https';
  const { name } = (user.authProvider ?? {}) as AuthProvider;
  if (name !== undefined && name !== 'oidc' && name !== 'tokenFile')
    return `its auth-provider "${name}" is not supported any more, wanted an exec plugin`;
  return user.username ? 'user name and password are not supported by API servers any more' : undefined;
}

/** What client-node calls `any`. */
interface AuthProvider {
  readonly name?: string;
  readonly config?: OidcConfig;
}

function credentialsOf(
  load: () => KubeConfig,
  user: User,
  file: string | undefined,
): Connection['credentials'] {
  const tokenFile = tokenFileOf(user, file);
  if (file !== undefined && user.exec) return pluginCredentials(load, file);
  const provider = user.authProvider as AuthProvider | undefined;
  if (file !== undefined && provider && tokenFile === undefined)
    return oidcCredentials(provider.config ?? {}, file);
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
  const provider = user.authProvider as AuthProvider | undefined;
  if (provider?.name === 'tokenFile') return provider.config?.['tokenFile'];
  if (kubeconfig === undefined) return undefined;
  const raw = parse(readFileSync(kubeconfig, 'utf8')) as {
    users?: readonly { name?: string; user?: { tokenFile?: string } }[];
  };
  const path = raw.users?.find(({ name }) => name === user.name)?.user?.tokenFile;
  return path === undefined ? undefined : resolve(dirname(kubeconfig), path);
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
