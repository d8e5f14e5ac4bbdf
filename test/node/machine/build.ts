/** Programs of a test machine: kubelet and scheduler from the control plane's module, CRI-O and upstream's provider from ours. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ClusterBinaries, clusterBinaries } from '../../control-plane/build.ts';
import { canBuild, type GoTools, goTools, type Progress } from '../../support/go-tools.ts';

export interface NodeBinaries extends ClusterBinaries {
  readonly crio: string;
  /** Upstream's credential provider, for comparison. */
  readonly originalProvider: string;
  /** Program of test images, which waits. */
  readonly waiter: string;
}

const module = join(import.meta.dirname, '..');

const RUNTIME: GoTools = {
  name: 'container runtime',
  module,
  flags: ['-tags', 'containers_image_openpgp exclude_graphdriver_btrfs seccomp libsqlite3'],
  env: { CGO_ENABLED: '1' },
  programs: { crio: 'crio', 'crio-credential-provider': 'crio-credential-provider' },
};

const WAITER: GoTools = {
  name: 'waiter',
  module,
  flags: ['-ldflags', '-s -w'],
  env: { CGO_ENABLED: '0' },
  packages: ['./machine/waiter'],
  sources: ['machine/waiter/main.go'],
  programs: { waiter: 'waiter' },
};

/** Programs and files of Debian packages, each with its package. */
const NEEDED: Readonly<Record<string, string>> = {
  '/usr/bin/conmon': 'conmon',
  '/usr/sbin/runc': 'runc',
  '/usr/lib/cni/bridge': 'containernetworking-plugins',
  '/usr/sbin/iptables': 'iptables',
  '/usr/sbin/ip': 'iproute2',
  '/usr/bin/unshare': 'util-linux',
  '/lib/systemd/systemd': 'systemd',
  '/usr/bin/dbus-daemon': 'dbus-daemon',
  '/usr/bin/docker-registry': 'docker-registry',
  '/usr/bin/htpasswd': 'apache2-utils',
  '/usr/bin/skopeo': 'skopeo',
  [`/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/faketime/libfaketimeMT.so.1`]:
    'libfaketime',
};

/** Why no node can run on this machine, for `test.skip`; undefined when one can. Builds nothing. */
export function missingNode(): string | undefined {
  if (process.platform !== 'linux' || process.geteuid?.() !== 0) return 'a node takes root on Linux';
  const lost = Object.entries(NEEDED).find(([path]) => !existsSync(path));
  if (lost !== undefined) return `a node takes ${lost[0]} (package ${lost[1]})`;
  if (!existsSync('/sys/fs/cgroup/memory') || !existsSync('/sys/fs/cgroup/systemd'))
    return 'a node takes cgroups of version 1, or hybrid ones';
  if (!/overlay/.test(readFileSync('/proc/filesystems', 'utf8'))) return 'a node takes overlay file systems';
  if (spawnSync('unshare', ['--mount', '--pid', '--fork', '--net', 'true']).status !== 0)
    return 'namespaces cannot be made here';
  return canBuild(RUNTIME) ? undefined : 'no Go tool chain to build CRI-O with';
}

/** Builds missing programs in parallel, since Go schedules the cores by itself. */
export async function nodeBinaries(
  progress: Progress = (line) => process.stderr.write(`${line}\n`),
): Promise<NodeBinaries> {
  const [cluster, runtime, waiter] = await Promise.all([
    clusterBinaries(progress),
    goTools(RUNTIME, progress),
    goTools(WAITER, progress),
  ]);
  return {
    ...cluster,
    crio: join(runtime, 'crio'),
    originalProvider: join(runtime, 'crio-credential-provider'),
    waiter: join(waiter, 'waiter'),
  };
}
