/** What would happen to nodes if mirror sets were applied: which files change, and whether nodes drain or reboot. */
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { type ClusterObjects, clustersIn } from '../rules/node-registries/clusters.ts';
import { type Disruption, disruptionOf } from '../rules/node-registries/disruption.ts';
import { renderNodeFiles } from '../rules/node-registries/render.ts';

export interface WhatIf {
  /** The cluster with the objects applied. */
  readonly cluster: ClusterObjects;
  /** Absent where the operator refuses what is there, or what would be. */
  readonly disruption?: Disruption;
  /** One sentence. */
  readonly summary: string;
}

/** `applied` take the place of objects of the same kind and name. */
export function whatIf(cluster: ClusterObjects, applied: readonly KubeObject[]): WhatIf {
  const after = afterwards(cluster, applied);
  const [old, next] = [cluster.objects, after.objects].map((list) => renderNodeFiles(list));
  if (old === undefined || next === undefined || next.refused)
    return {
      cluster: after,
      summary: 'the Machine Config Operator would refuse this: nodes keep what they have',
    };
  if (old.refused)
    return { cluster: after, summary: 'what nodes have now is not known: the present objects are refused' };
  const disruption = disruptionOf(old, next);
  return { cluster: after, disruption, summary: summaryOf(disruption) };
}

/** Of a hosted cluster, mirror sets are applied to the cluster that runs its control plane; its own are in the HostedCluster. */
function afterwards(cluster: ClusterObjects, applied: readonly KubeObject[]): ClusterObjects {
  const { hostedCluster, management } = cluster;
  if (hostedCluster === undefined) return { ...cluster, objects: replaced(cluster.objects, applied) };
  const objects = replaced([...(management ?? []), hostedCluster], applied);
  const found = clustersIn(objects.map((object) => ({ object }))).find(({ name }) => name === cluster.name);
  return { ...cluster, management: replaced(management ?? [], applied), objects: found?.objects ?? [] };
}

function replaced(objects: readonly KubeObject[], applied: readonly KubeObject[]): readonly KubeObject[] {
  const id = ({ kind, metadata }: KubeObject): string =>
    `${kind}/${metadata.namespace ?? ''}/${metadata.name}`;
  const gone = new Set(applied.map(id));
  return [...objects.filter((object) => !gone.has(id(object))), ...applied];
}

function summaryOf({ changedFiles, drain, reboot, because }: Disruption): string {
  if (changedFiles.length === 0) return 'nothing changes on nodes';
  const why = because === undefined ? '' : `: ${because}`;
  if (reboot) return `every node drains and reboots${why}`;
  return drain ? `every node drains and reloads CRI-O${why}` : 'nodes reload CRI-O, without a drain';
}
