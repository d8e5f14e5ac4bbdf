/**
 * The binaries of a control plane and of a kubelet: those of `KUBEBUILDER_ASSETS` when that is set, else built once with Go
 * from `go.mod`.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { canBuild, type GoTools, goTools, type Progress } from '../support/go-tools.ts';

export interface Binaries {
  readonly etcd: string;
  readonly apiServer: string;
  readonly controllerManager: string;
  readonly kubectl: string;
}

/** Additional programs of a cluster with nodes; `KUBEBUILDER_ASSETS` contains none of them. */
export interface ClusterBinaries extends Binaries {
  readonly scheduler: string;
  readonly kubelet: string;
}

const TOOLS: GoTools = {
  name: 'control plane',
  module: import.meta.dirname,
  // Without a version, a kubelet reports v0.0.0, and programs that check versions reject the node.
  flags: ['-ldflags', '-X k8s.io/component-base/version.gitVersion=v1.36.3'],
  programs: {
    etcd: 'server',
    'kube-apiserver': 'kube-apiserver',
    'kube-controller-manager': 'kube-controller-manager',
    'kube-scheduler': 'kube-scheduler',
    kubectl: 'kubectl',
    kubelet: 'kubelet',
  },
};

const toStderr: Progress = (line) => process.stderr.write(`${line}\n`);

/** Why there can be none, for `test.skip`; undefined when there can. Builds nothing. */
export function missingControlPlane(): string | undefined {
  const given = process.env['KUBEBUILDER_ASSETS'];
  if (given !== undefined) {
    const lost = Object.values(assets(given)).filter((path) => !existsSync(path));
    return lost.length === 0 ? undefined : `KUBEBUILDER_ASSETS has no ${lost.join(', ')}`;
  }
  if (canBuild(TOOLS)) return undefined;
  return 'no Go tool chain to build kube-apiserver and etcd with, and KUBEBUILDER_ASSETS is not set';
}

/** Folder of the binaries; builds them if they are missing (about ten minutes on two cores). */
export async function controlPlaneBinaries(progress: Progress = toStderr): Promise<Binaries> {
  const reason = missingControlPlane();
  if (reason !== undefined) throw new Error(`Cannot start a control plane: ${reason}`);
  const given = process.env['KUBEBUILDER_ASSETS'];
  return given === undefined ? clusterBinaries(progress) : assets(given);
}

/** The same with scheduler and kubelet, always of our own build. */
export async function clusterBinaries(progress: Progress = toStderr): Promise<ClusterBinaries> {
  const folder = await goTools(TOOLS, progress);
  return {
    ...assets(folder),
    scheduler: join(folder, 'kube-scheduler'),
    kubelet: join(folder, 'kubelet'),
  };
}

function assets(folder: string): Binaries {
  const path = (name: string): string => join(folder, name);
  return {
    etcd: path('etcd'),
    apiServer: path('kube-apiserver'),
    controllerManager: path('kube-controller-manager'),
    kubectl: path('kubectl'),
  };
}
