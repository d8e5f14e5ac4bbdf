/** Mistakes in how the replicas of a reconciler divide the hosted clusters. */
import type { FleetProblem } from './fleet-problems.ts';
import type { ClusterTop } from './fleet-schema.ts';
import type { ReconcilerSettings } from './shared/reconciler.ts';
import { REPLICAS } from './shared/reconciler-shards.ts';

/** Shards where there is one cluster alone, and fewer of them than replicas. Total: a value may be anything. */
export function shardMistakes(
  clusters: readonly ClusterTop[],
  defaults: ReconcilerSettings | undefined,
): readonly FleetProblem[] {
  return clusters.flatMap((cluster, index) => {
    const text = mistakeOf(cluster, { ...defaults, ...cluster.reconciler });
    return text === undefined ? [] : [{ path: ['clusters', index, 'reconciler', 'shards'], text }];
  });
}

function mistakeOf(
  { kind = 'standalone', reconciler }: ClusterTop,
  all: ReconcilerSettings,
): string | undefined {
  if (kind !== 'management')
    return reconciler?.shards === undefined
      ? undefined
      : `only for kind "management": a ${kind} cluster is one, and one replica leads it`;
  const { shards = 1, replicas = REPLICAS }: { readonly shards?: unknown; readonly replicas?: unknown } = all;
  if (typeof shards !== 'number' || typeof replicas !== 'number' || shards <= 1 || shards >= replicas)
    return undefined;
  return `invalid value ${shards}: must be at least ${replicas}, the number of replicas, so that each has one; or 1, so that one replica looks after all`;
}
