/**
 * Which kubeconfig counts, as for kubectl: the file that is named, else those of `KUBECONFIG`, else `~/.kube/config`, else the pod's
 * own credentials; and several files as one.
 *
 * Source of the rule: client-go's ClientConfigLoadingRules: the first file that names a cluster, user, context or the current
 * context decides it, and files of a list that are not there are skipped. @kubernetes/client-node refuses a name that is there
 * twice, and takes the current context of the last file.
 */
import { existsSync } from 'node:fs';
import { posix, win32 } from 'node:path';
import type { KubeConfig } from '@kubernetes/client-node';
import { UsageError } from '../rules/errors.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The files to read, in order; undefined for the credentials of the pod.
 *
 * @param isThere asked for the files that need not be there
 * @param platform what separates paths, and which variables name the home folder
 * @throws UsageError when there is no cluster to be found
 * @example
 * ```ts
 * import { kubeconfigFiles } from './kubeconfig-files.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(kubeconfigFiles('a', { KUBECONFIG: 'b' }), ['a']);
 * assert.deepEqual(kubeconfigFiles(undefined, { KUBECONFIG: 'b:c' }, (path) => path !== 'b'), ['c']);
 * assert.deepEqual(kubeconfigFiles(undefined, { HOME: '/root' }, () => true), ['/root/.kube/config']);
 * const me = { USERPROFILE: 'C:\\Users\\me' };
 * assert.deepEqual(kubeconfigFiles(undefined, me, () => true, 'win32'), ['C:\\Users\\me\\.kube\\config']);
 * assert.equal(kubeconfigFiles(undefined, { KUBERNETES_SERVICE_HOST: '10.0.0.1' }, () => false), undefined);
 * ```
 */
export function kubeconfigFiles(
  file: string | undefined,
  env: Environment,
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
function homeFolders(env: Environment, platform: NodeJS.Platform): readonly string[] {
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
