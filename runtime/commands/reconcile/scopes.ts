/** Finds the pairs of management and hosted cluster that two folders contain. */

import { UsageError } from '../../core/errors.ts';
import { HOSTED_CLUSTER, PLANES } from '../../core/kubernetes/hypershift.ts';
import { type KubeObject, pathPart } from '../../core/kubernetes/object.ts';
import { trimEndOf } from '../../core/text.ts';
import type { ClusterPair } from '../../engine/contract.ts';
import type { ObjectStore } from '../../engine/store.ts';

/** Kinds that list the hosted clusters. */
export const SCOPE_KINDS: readonly string[] = ['HostedControlPlane', 'HostedCluster'];

const CLUSTER_ANNOTATION = 'hypershift.openshift.io/cluster';

/** A stand-alone cluster: the platform pull secret is in OpenShift's own namespace. */
export const LOCAL_SCOPE: ClusterPair = { name: 'local', controlPlaneNamespace: 'openshift-config' };

/**
 * Returns the hosted clusters in the folder `from`: the one named `wanted`, or the only one. Otherwise those of the management
 * cluster that have a folder `<from>/<namespace>/<name>`. Each has the folder of its objects.
 *
 * @param isDir whether a folder exists
 * @throws UsageError when no cluster matches, or the choice is ambiguous
 */
export function hostedPairs(
  management: ObjectStore,
  from: string,
  wanted: string | undefined,
  isDir: (path: string) => boolean,
) {
  const scopes = allScopes(management);
  const names = scopes.map((scope) => scope.name).join(', ');
  const folderOf = ({ name }: ClusterPair): string =>
    [trimEndOf(from, '/'), ...name.split('/').map((part) => pathPart('hosted cluster', part))].join('/');
  const pair = (scope: ClusterPair) => ({
    scope,
    hostedDir: isDir(folderOf(scope)) ? folderOf(scope) : from,
  });
  if (wanted !== undefined) {
    const found = scopes.find((scope) => scope.name === wanted);
    if (found !== undefined) return [pair(found)];
    throw new UsageError(
      `Cannot find hosted cluster "${wanted}": the management folder contains ${names === '' ? 'none' : names}`,
    );
  }
  const [only, ...others] = scopes;
  if (only === undefined) {
    throw new UsageError(
      'Cannot find the hosted cluster: the management folder contains no HostedControlPlane and no HostedCluster',
    );
  }
  if (others.length === 0) return [pair(only)];
  const present = scopes.filter((scope) => isDir(folderOf(scope)));
  if (present.length > 0) return present.map(pair);
  throw new UsageError(
    `Cannot tell the hosted cluster of "${from}": set --hosted-cluster to one of ${names}, or give each a folder <namespace>/<name> below it`,
  );
}

/** Every hosted cluster of the management cluster, sorted by name. */
export function allScopes(management: ObjectStore): readonly ClusterPair[] {
  const planes = management.list(PLANES).map(scopeOfPlane);
  const known = new Set(planes.map((scope) => scope.name));
  const clusters = management
    .list(HOSTED_CLUSTER)
    .map(({ metadata: { namespace = '', name } }) => scopeOf(namespace, name, namespace + suffixOf(name)))
    .filter((scope) => !known.has(scope.name));
  return [...planes, ...clusters].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function scopeOfPlane({ metadata }: KubeObject): ClusterPair {
  const { namespace: own = '', annotations = {} } = metadata;
  const annotation = annotations[CLUSTER_ANNOTATION];
  const suffix = suffixOf(metadata.name);
  const [namespace = '', name = metadata.name] =
    typeof annotation === 'string'
      ? annotation.split('/')
      : [own.endsWith(suffix) ? own.slice(0, -suffix.length) : own];
  return scopeOf(namespace, name, own);
}

/** HyperShift names the control plane namespace `<namespace>-<name>`. */
function suffixOf(name: string): string {
  return `-${name.replaceAll('.', '-')}`;
}

function scopeOf(namespace: string, name: string, controlPlaneNamespace: string): ClusterPair {
  return { name: `${namespace}/${name}`, controlPlaneNamespace, hostedCluster: { namespace, name } };
}
