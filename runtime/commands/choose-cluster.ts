/** Which of the clusters of a folder is meant. */
import { UsageError } from '../rules/errors.ts';
import type { ClusterObjects } from '../rules/node-registries/clusters.ts';
import { type Flag, text } from './flags/flag.ts';

export const clusterFlag: Flag<string | undefined> = text({
  value: 'NAME',
  help: 'which of several clusters: NAMESPACE/NAME of a HostedCluster, management, or a folder',
});

/** The one that is named, or the only one. @throws UsageError that names them all */
export function chooseCluster(clusters: readonly ClusterObjects[], name: string | undefined): ClusterObjects {
  const names = clusters.map((cluster) => cluster.name);
  if (name === undefined) {
    const [only] = clusters;
    if (clusters.length === 1 && only !== undefined) return only;
    throw new UsageError(
      `Cannot tell which cluster is meant: ${names.length} are given, and their nodes go by different mirrors; choose one with --cluster: ${names.join(', ')}`,
    );
  }
  const found = clusters.find((cluster) => cluster.name === name);
  if (found === undefined)
    throw new UsageError(`Cannot find cluster "${name}": must be one of ${names.join(', ')}`);
  return found;
}

/** A kubeconfig is of one cluster. @throws UsageError */
export function needFolderForCluster(flags: {
  readonly from?: readonly string[] | undefined;
  readonly cluster?: string | undefined;
}): void {
  if (flags.cluster !== undefined && flags.from === undefined)
    throw new UsageError('--cluster chooses among the clusters of --from: name the folder too');
}
