/** What would happen to nodes if mirror sets were applied: which files change, and whether nodes drain or reboot. */
import type { KubeObject } from '../rules/kubernetes/object.ts';
import type { ClusterObjects } from '../rules/node-registries/clusters.ts';
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
  const id = ({ kind, metadata }: KubeObject): string => `${kind}/${metadata.name}`;
  const replaced = new Set(applied.map(id));
  const objects = [...cluster.objects.filter((object) => !replaced.has(id(object))), ...applied];
  const after = { ...cluster, objects };
  const [old, next] = [cluster.objects, objects].map((list) => renderNodeFiles(list));
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

function summaryOf({ changedFiles, drain, reboot, because }: Disruption): string {
  if (changedFiles.length === 0) return 'nothing changes on nodes';
  const why = because === undefined ? '' : `: ${because}`;
  if (reboot) return `every node drains and reboots${why}`;
  return drain ? `every node drains and reloads CRI-O${why}` : 'nodes reload CRI-O, without a drain';
}
