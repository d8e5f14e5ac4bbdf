/**
 * Finds the cluster and the credentials of the person or pod that runs the program. @kubernetes/client-node reads kubeconfigs,
 * certificates and tokens and runs exec plugins. It is imported only here and only when needed; its requests are not used.
 *
 * The order is that of kubectl (`--kubeconfig`, `KUBECONFIG`, `~/.kube/config`, the pod): otherwise our kubectl plugin would use
 * another cluster than kubectl itself.
 */
import { existsSync, readFileSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { basename, delimiter, dirname, join, resolve } from 'node:path';
import type { Cluster, KubeConfig, User } from '@kubernetes/client-node';
import { errnoOf, PullwrightError, UsageError } from '../core/errors.ts';
import { redact } from '../core/redacted.ts';
import { proxyFor } from '../http/proxy.ts';
import type { Connection, Credentials } from './client.ts';
import { fileFailure, podConnection, readCredentialFile, SERVICE_ACCOUNT_DIR } from './pod-connection.ts';
import { parseYaml } from './yaml.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** The flags that select a cluster, as for kubectl. */
export interface ClusterChoice {
  readonly kubeconfig?: string | undefined;
  /** @default the current one */
  readonly context?: string | undefined;
}

/**
 * The connection of `file`, or the default of kubectl without one.
 *
 * @param context a context of the kubeconfig, in place of the current one
 * @throws UsageError when no cluster is found or it is not usable; messages contain no credentials
 */
export async function loadConnection(
  file: string | undefined,
  env: Environment,
  context?: string,
): Promise<Connection> {
  const files = kubeconfigFiles(file, env);
  if (files === undefined) {
    const connection = podConnection(env, SERVICE_ACCOUNT_DIR);
    return { ...connection, proxy: proxyFor(connection.server, env) };
  }
  const load = await loader(files, context);
  const config = load();
  const cluster = config.getCurrentCluster();
  const problem = problemOf(config);
  if (cluster === null || problem !== undefined)
    throw new UsageError(`Cannot use kubeconfig "${files.join(delimiter)}": ${problem}`);
  // client-node returns null for omitted fields, although its types do not allow that.
  const { server, caFile, caData, tlsServerName, proxyUrl } = cluster;
  const ca = caFile ? readCredentialFile(caFile) : caData && Buffer.from(caData, 'base64').toString('utf8');
  return {
    server,
    ca: ca || undefined,
    serverName: tlsServerName || undefined,
    proxy: proxyUrl ? redact(proxyUrl) : proxyFor(server, env),
    credentials: credentialsOf(load, config),
  };
}

/**
 * The namespace of the context, which kubectl uses without `-n`, or that of the pod; else `default`.
 *
 * @throws UsageError like {@link loadConnection}
 */
export async function contextNamespace(choice: ClusterChoice, env: Environment): Promise<string> {
  const files = kubeconfigFiles(choice.kubeconfig, env);
  if (files === undefined) return readCredentialFile(`${SERVICE_ACCOUNT_DIR}/namespace`).trim();
  const config = (await loader(files, choice.context))();
  return config.getContextObject(config.getCurrentContext())?.namespace || 'default';
}

// Source of the rule: client-go's ClientConfigLoadingRules: the first file that names a cluster, user, context or the current
// context wins, and missing files of a list are skipped. @kubernetes/client-node rejects duplicate names, and takes the
// current context of the last file.

/**
 * The files to read, in order; undefined for the credentials of the pod.
 *
 * @throws UsageError when no cluster is found
 */
function kubeconfigFiles(file: string | undefined, env: Environment): readonly string[] | undefined {
  if (file !== undefined) return [file];
  const named = (env['KUBECONFIG'] ?? '').split(delimiter).filter((one) => one !== '');
  if (named.length > 0) {
    const there = named.filter((one) => existsSync(one));
    // Reading the first file reports that it does not exist.
    return there.length > 0 ? there : named.slice(0, 1);
  }
  // The second and third are for Windows.
  const homes = [env['HOME'], `${env['HOMEDRIVE'] ?? ''}${env['HOMEPATH'] ?? ''}`, env['USERPROFILE']];
  const own = homes
    .flatMap((home) => (home ? [join(home, '.kube', 'config')] : []))
    .find((one) => existsSync(one));
  if (own !== undefined) return [own];
  if (env['KUBERNETES_SERVICE_HOST'] !== undefined) return undefined;
  throw new UsageError(
    'Cannot find a cluster: expected --kubeconfig FILE, KUBECONFIG, ~/.kube/config, or to run in a pod',
  );
}

type Load = (context?: string) => KubeConfig;

/** Returns a function that reads the files again on each call, with the context `first` unless it gets another. */
async function loader(files: readonly string[], first: string | undefined): Promise<Load> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  return (context = first) => {
    const config = new KubeConfig();
    for (const path of files) {
      const one = new KubeConfig();
      readInto(one, path);
      for (const cluster of one.clusters) if (!config.getCluster(cluster.name)) config.addCluster(cluster);
      for (const user of one.users) if (!config.getUser(user.name)) config.addUser(user);
      for (const named of one.contexts) if (!config.getContextObject(named.name)) config.addContext(named);
      if (!config.currentContext) config.setCurrentContext(one.currentContext);
    }
    if (context !== undefined) chooseContext(config, context);
    const exec = execOf(config);
    if (exec) exec.env = [...(exec.env ?? []), execInfo(config, exec)];
    return config;
  };
}

/** Makes `context` the current one. @throws UsageError that lists the contexts, when it does not exist */
function chooseContext(config: KubeConfig, context: string): void {
  if (config.getContextObject(context) === null)
    throw new UsageError(
      `Cannot use context "${context}": the kubeconfig has ${contextNames(config) || 'none'}`,
    );
  config.setCurrentContext(context);
}

function contextNames({ contexts }: KubeConfig): string {
  return contexts.map(({ name }) => `"${name}"`).join(', ');
}

/** A user, with fields that client-node types as `any` or as read-only. */
interface LoadedUser {
  readonly name: string;
  token: unknown;
  authProvider: unknown;
  readonly exec: {
    command?: string;
    env?: readonly object[] | null;
    readonly apiVersion?: string;
    readonly provideClusterInfo?: boolean;
  };
}

function execOf(config: KubeConfig): LoadedUser['exec'] | undefined {
  return (config.getCurrentUser() as LoadedUser | null)?.exec;
}

interface RawUser {
  readonly name?: string;
  readonly user?: { readonly tokenFile?: string } | null;
}

/**
 * Reads one file. Adds what client-node ignores: token files and relative plugin commands, both resolved from the file's folder.
 */
function readInto(config: KubeConfig, path: string): void {
  try {
    config.loadFromFile(path);
    const raw = parseYaml(readFileSync(path, 'utf8')) as { users?: readonly RawUser[] | null } | null;
    for (const user of config.users as unknown as readonly LoadedUser[]) {
      const { tokenFile } = raw?.users?.find(({ name }) => name === user.name)?.user ?? {};
      if (tokenFile) {
        // client-go prefers the file to the token.
        user.token = undefined;
        user.authProvider = { name: 'tokenFile', config: { tokenFile: resolve(dirname(path), tokenFile) } };
      }
      const { command } = user.exec ?? {};
      // A command without a folder is resolved by PATH.
      if (command && basename(command) !== command) user.exec.command = resolve(dirname(path), command);
    }
  } catch (error) {
    // Errors of the Node permission model have their own message.
    if (errnoOf(error) === 'ERR_ACCESS_DENIED') throw error;
    throw new UsageError(
      `Cannot read kubeconfig "${path}": ${fileFailure(error, 'it is not a valid kubeconfig')}`,
    );
  }
}

function problemOf(config: KubeConfig): string | undefined {
  const cluster = config.getCurrentCluster();
  const user = config.getCurrentUser();
  return cluster === null || user === null
    ? contextProblem(config)
    : (clusterProblem(cluster) ?? userProblem(user));
}

function contextProblem(config: KubeConfig): string {
  if (config.currentContext) return `its context "${config.currentContext}" has no cluster and user`;
  const names = contextNames(config);
  return `it has no current context; choose one with --context${names === '' ? '' : `: ${names}`}`;
}

function clusterProblem({ skipTLSVerify, server, proxyUrl }: Cluster): string | undefined {
  if (skipTLSVerify) return 'insecure-skip-tls-verify is set, expected certificate-authority-data';
  if (!server.startsWith('https://')) return 'its server must be https';
  return proxyUrl && !/^https?:/.test(proxyUrl) ? 'its proxy-url must be http or https' : undefined;
}

function userProblem({ authProvider, username }: User): string | undefined {
  const { name = 'tokenFile' } = (authProvider ?? {}) as { readonly name?: string };
  if (name !== 'tokenFile') return `its auth-provider "${name}" is not supported, expected an exec plugin`;
  return username ? 'user name and password are no longer supported by API servers' : undefined;
}

/** Files with a token, certificate or key are read again after this. The kubelet renews tokens long before they expire. */
const FRESH_MS = 10_000;
/** Many requests get a 401 at the same time; they share the credentials that the first one loads. */
const REFUSAL_MS = 1000;

/**
 * The credentials of the current user. client-node caches the credential of a plugin until it expires, even after a 401, so a 401
 * reloads everything.
 *
 * @param load reads the kubeconfig again. It must name the context and server of `first`, or credentials would go to another
 *   server
 */
function credentialsOf(load: Load, first: KubeConfig): Connection['credentials'] {
  let config = first;
  let answer: Promise<Credentials> | undefined;
  // A monotonic clock.
  let readAt = performance.now();
  let refusedAt = Number.NEGATIVE_INFINITY;
  return async (refused) => {
    const now = performance.now();
    const isPlugin = Boolean(execOf(config));
    if (refused ? now - refusedAt > REFUSAL_MS : !isPlugin && now - readAt > FRESH_MS) {
      readAt = now;
      if (refused) refusedAt = now;
      const before = answer;
      // A file that is being replaced cannot be read for a moment: use its last content.
      answer = (async () => {
        config = reloaded(load, first);
        return ask(config);
      })().catch((error: unknown) => (isPlugin ? Promise.reject(error) : (before ?? ask(config))));
    }
    // Concurrent requests share one run of the plugin.
    const asked = (answer ??= ask(config));
    try {
      return await asked;
    } finally {
      if (isPlugin && answer === asked) answer = undefined;
    }
  };
}

/** @throws UsageError when the context of `first` is no longer usable, or names another server */
function reloaded(load: Load, first: KubeConfig): KubeConfig {
  const next = load(first.getCurrentContext());
  const isSame = next.getCurrentCluster()?.server === first.getCurrentCluster()?.server;
  const problem =
    problemOf(next) ?? (isSame ? undefined : 'its context has a different server than at startup');
  if (problem !== undefined) throw new UsageError(`Cannot use the changed kubeconfig: ${problem}`);
  return next;
}

async function ask(config: KubeConfig): Promise<Credentials> {
  const options: RequestOptions = {};
  const exec = execOf(config);
  try {
    await config.applyToHTTPSOptions(options);
  } catch (error) {
    throw exec ? pluginFailure(exec.command) : unreadable(error);
  }
  const { Authorization: authorization = '' } = (options.headers ?? {}) as { Authorization?: string };
  const token = authorization.startsWith('Bearer ') ? redact(authorization.slice(7).trim()) : undefined;
  if (exec && token === undefined && options.cert === undefined) throw pluginFailure(exec.command);
  return {
    token,
    certificate: options.cert && pemText(options.cert),
    key: options.key === undefined ? undefined : redact(pemText(options.key)),
  };
}

/** node:https accepts PEM as text or bytes. */
function pemText(value: unknown): string {
  return Buffer.isBuffer(value) ? value.toString('utf8') : (value as string);
}

/** Source of the rule: client-go's exec plugin. client-node does not set this variable. */
function execInfo(config: KubeConfig, exec: LoadedUser['exec']): object {
  const told = exec.provideClusterInfo === true ? config.getCurrentCluster() : null;
  const cluster = told && { server: told.server, 'certificate-authority-data': told.caData };
  const spec = { interactive: false, ...(cluster && { cluster }) };
  const info = { apiVersion: exec.apiVersion, kind: 'ExecCredential', spec };
  return { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) };
}

/** An error without a cause, because the output of the plugin may contain a credential. */
function pluginFailure(command = ''): PullwrightError {
  return new PullwrightError(
    `Cannot get credentials: the plugin "${command}" of the kubeconfig returned none`,
    { code: 'CredentialPluginFailed', hint: 'Run kubectl with the same kubeconfig to see its error' },
  );
}

function unreadable(error: unknown): PullwrightError {
  const path = error instanceof Error && 'path' in error ? ` ${JSON.stringify(error.path)}` : '';
  return new PullwrightError(
    `Cannot read the credentials${path} of the kubeconfig: ${fileFailure(error, 'not valid')}`,
    { code: 'CredentialFileUnreadable' },
  );
}
