/** Which kubeconfig the executable is told of. Pure. */
import { PROVIDER_PATH } from '../../rules/credential-provider/provider-flags.ts';
import { defaultOptions } from '../plugin/options.ts';

/**
 * The arguments of the executable, with the kubeconfig of the running kubelet first where the executable would not look there,
 * or would find another one before it. `commandLine`: of the kubelet, as one text.
 *
 * @example
 * ```ts
 * import { withKubeconfig } from './kubeconfig-path.ts';
 * import assert from 'node:assert/strict';
 *
 * const none = () => false;
 * assert.deepEqual(withKubeconfig([], '/usr/bin/kubelet --kubeconfig=/etc/kubernetes/kubelet.conf', none), []);
 * assert.match(withKubeconfig([], '/usr/bin/kubelet --kubeconfig /srv/k.conf', none)[0] ?? '', /^--kubeconfig=\/srv\/k.conf,/);
 * assert.deepEqual(withKubeconfig(['--kubeconfig=/a'], 'kubelet --kubeconfig /srv/k.conf', none), ['--kubeconfig=/a']);
 * ```
 */
export function withKubeconfig(
  args: readonly string[],
  commandLine: string,
  isThere: (path: string) => boolean,
): readonly string[] {
  const path = [...commandLine.matchAll(/ --?kubeconfig[= ]["']?([^\s"']+)/g)].at(-1)?.[1];
  const isGiven = args.some((arg) => /^--?kubeconfig(?:=|$)/.test(arg));
  if (path === undefined || isGiven || !PROVIDER_PATH.test(path)) return args;
  const { kubeconfigs } = defaultOptions(undefined);
  const at = kubeconfigs.indexOf(path);
  if (at !== -1 && !kubeconfigs.slice(0, at).some(isThere)) return args;
  return [...args, `--kubeconfig=${[path, ...kubeconfigs.filter((one) => one !== path)].join(',')}`];
}
