/**
 * Finds the cluster and the credentials of the person or pod that runs the program. Reading kubeconfigs and running exec plugins
 * is left to @kubernetes/client-node, which is imported only here and only when needed; its requests are not used.
 *
 * The order is that of kubectl (`--kubeconfig`, `KUBECONFIG`, `~/.kube/config`, the pod): as its plugin we would otherwise
 * answer for another cluster than the line before.
 */
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, dirname, posix, resolve, win32 } from 'node:path';
import type { Cluster, KubeConfig, User } from '@kubernetes/client-node';
import { PullwrightError, UsageError } from '../core/errors.ts';
import { redact } from '../core/redacted.ts';
import { proxyFor } from '../http/proxy.ts';
import type { Connection } from './client.ts';
import { type OidcConfig, oidcCredentials, pluginCredentials } from './credentials.ts';
import { parseYaml as parse } from './yaml.ts';

// Which kubeconfig counts, as for kubectl: the file that is named, else those of `KUBECONFIG`, else `~/.kube/config`, else the pod's
// own credentials; and several files as one.
// Source of the rule: client-go's ClientConfigLoadingRules: the first file that names a cluster, user, context or the current
// context decides it, and files of a list that are not there are skipped. @kubernetes/client-node refuses a name that is there
// twice, and takes the current context of the last file.

type PathEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * The files to read, in order; undefined for the credentials of the pod.
 *
 * @param isThere asked for the files that need not be there
 * @param platform what separates paths, and which variables name the home folder
 * @throws UsageError when there is no cluster to be found
 */
export function kubeconfigFiles(
  file: string | undefined,
  env: PathEnvironment,
  isThere: (path: string) => boolean = existsSync,
  platform: NodeJS.Platform = process.platform,
): readonly string[] | undefined {
  if (file !== undefined) return [file];
  const path = platform === 'win32' ? win32 : posix;
  const named = (env['KUBECONFIG'] ?? '').split(path.delimiter).filter((one) => one !== '');
  if (named.length > 0) {
    const there = named.filter(isThere);
    // What is wrong with the first is said when it is read.
    return there.length > 0 ? there : named.slice(0, 1);
  }
  const own = homeFolders(env, platform)
    .map((home) => path.join(home, '.kube', 'config'))
    .find(isThere);
  if (own !== undefined) return [own];
  if (env['KUBERNETES_SERVICE_HOST'] !== undefined) return undefined;
  throw new UsageError(
    'Cannot find a cluster: expected --kubeconfig FILE, KUBECONFIG, ~/.kube/config, or to run in a pod',
  );
}

/** Source of the rule: client-go's homedir.HomeDir, which on Windows takes the first that has a kubeconfig. */
function homeFolders(env: PathEnvironment, platform: NodeJS.Platform): readonly string[] {
  const { HOME = '', HOMEDRIVE = '', HOMEPATH = '', USERPROFILE = '' } = env;
  const drive = HOMEDRIVE === '' || HOMEPATH === '' ? '' : `${HOMEDRIVE}${HOMEPATH}`;
  const homes = platform === 'win32' ? [HOME, drive, USERPROFILE] : [HOME];
  return homes.filter((home) => home !== '');
}

/** Adds to `first` what it does not name. */
export function mergeKubeconfig(first: KubeConfig, next: KubeConfig): void {
  for (const one of next.clusters) if (!first.getCluster(one.name)) first.addCluster(one);
  for (const one of next.users) if (!first.getUser(one.name)) first.addUser(one);
  for (const one of next.contexts) if (!first.getContextObject(one.name)) first.addContext(one);
  if (!first.currentContext) first.setCurrentContext(next.currentContext);
}

/**
 * Makes `context` the current one.
 *
 * @throws UsageError when there is none of that name, with those that there are
 */
export function chooseContext(config: KubeConfig, context: string): void {
  if (config.getContextObject(context) === null) {
    const names = config.contexts.map(({ name }) => `"${name}"`).join(', ');
    throw new UsageError(`Cannot use context "${context}": the kubeconfig has ${names || 'none'}`);
  }
  config.setCurrentContext(context);
}

type Environment = Readonly<Record<string, string | undefined>>;

/** How long a file with a token or key is not looked at again. Kubelet renews tokens long before they end. */
const FILE_CACHE_MS = 10_000;

/** Which cluster a person means: as for kubectl. */
export interface ClusterChoice {
  readonly kubeconfig?: string | undefined;
  /** @default the current one */
  readonly context?: string | undefined;
}

/**
 * The connection of `file`, or of what kubectl would ask without one.
 *
 * @param context a context of the kubeconfig, in place of the current one
 * @throws UsageError when there is none, or it is not usable; a message never holds a value
 */
export async function loadConnection(
  file: string | undefined,
  env: Environment,
  context?: string,
): Promise<Connection> {
  const found = await findConfig({ kubeconfig: file, context }, env);
  return connectionOf(found, env);
}

/**
 * The namespace that the context names, which is where kubectl looks without `-n`; `default` when it names none.
 *
 * @throws UsageError like {@link loadConnection}
 */
export async function contextNamespace(choice: ClusterChoice, env: Environment): Promise<string> {
  const config = (await findConfig(choice, env)).load();
  return config.getContextObject(config.getCurrentContext())?.namespace || 'default';
}

/** A kubeconfig that can be read again. */
interface FoundConfig {
  readonly load: () => KubeConfig;
  /** Undefined in a pod. */
  readonly files: readonly string[] | undefined;
}

async function findConfig({ kubeconfig, context }: ClusterChoice, env: Environment): Promise<FoundConfig> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const files = kubeconfigFiles(kubeconfig, env);
  const read = (path: string | undefined): KubeConfig => {
    const config = new KubeConfig();
    try {
      if (path === undefined) config.loadFromCluster();
      else config.loadFromFile(path);
    } catch (error) {
      // What a permission model denies has words of its own.
      if (error instanceof Error && 'code' in error && error.code === 'ERR_ACCESS_DENIED') throw error;
      throw new UsageError(`Cannot read kubeconfig "${path ?? '(in-cluster)'}": ${fileFailure(error)}`);
    }
    return config;
  };
  const load = (): KubeConfig => {
    const config = read(files?.[0]);
    for (const path of files?.slice(1) ?? []) mergeKubeconfig(config, read(path));
    if (context !== undefined) chooseContext(config, context);
    return config;
  };
  return { load, files };
}

function connectionOf({ load, files }: FoundConfig, env: Environment): Connection {
  const config = load();
  const path = files?.join(delimiter) ?? '(in-cluster)';
  const cluster = config.getCurrentCluster();
  const user = config.getCurrentUser();
  if (cluster === null || user === null)
    throw new UsageError(`Cannot use kubeconfig "${path}": ${contextProblem(config)}`);
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
    credentials: credentialsOf(load, user, fileOfUser(files, user.name)),
  };
}

function contextProblem(config: KubeConfig): string {
  if (config.currentContext) return `its context "${config.currentContext}" names no cluster and user`;
  const names = config.contexts.map(({ name }) => `"${name}"`).join(', ');
  return `it has no current context; choose one with --context${names === '' ? '' : `: ${names}`}`;
}

/** Relative paths of a user count from the file that names it. */
function fileOfUser(files: readonly string[] | undefined, name: string): string | undefined {
  if (files === undefined || files.length === 1) return files?.[0];
  return files.find((path) => rawUsers(path).some((one) => one.name === name));
}

interface RawUser {
  readonly name?: string;
  readonly user?: { readonly tokenFile?: string } | null;
}

function rawUsers(path: string): readonly RawUser[] {
  const raw = parse(readFileSync(path, 'utf8')) as { users?: readonly RawUser[] | null } | null;
  return raw?.users ?? [];
}

function problemOf(cluster: Cluster, user: User): string | undefined {
  if (cluster.skipTLSVerify) return 'insecure-skip-tls-verify is set, expected certificate-authority-data';
  if (!cluster.server.startsWith('https://')) return 'its server is not https';
  if (cluster.proxyUrl && !/^https?:/.test(cluster.proxyUrl))
    return 'its proxy-url is neither http nor https';
  const { name } = (user.authProvider ?? {}) as AuthProvider;
  if (name !== undefined && name !== 'oidc' && name !== 'tokenFile')
    return `its auth-provider "${name}" is not supported any more, expected an exec plugin`;
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
  const path = rawUsers(kubeconfig).find(({ name }) => name === user.name)?.user?.tokenFile;
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

const FILE_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: 'it is not there',
  EACCES: 'no right to read it',
  EISDIR: 'it is a folder',
};

function fileFailure(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code !== 'string') return 'it is not a valid kubeconfig';
  return FILE_FAILURES[code] ?? code;
}
