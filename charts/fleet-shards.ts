/** Mistakes in how the replicas of a reconciler divide the hosted clusters. */
import type { FleetProblem } from './fleet-problems.ts';
import type { ClusterTop } from './fleet-schema.ts';
import type { ReconcilerSettings } from './shared/reconciler.ts';
import { REPLICAS } from './shared/reconciler-shards.ts';

/** Shards where there is one cluster alone, and fewer of them than replicas, each where it stands. Total: a value may be anything. */
export function shardMistakes(
  clusters: readonly ClusterTop[],
  defaults: ReconcilerSettings | undefined,
): readonly FleetProblem[] {
  return clusters.flatMap(({ kind = 'standalone', reconciler }, index) => {
    const path = ['clusters', index, 'reconciler', 'shards'];
    if (kind !== 'management')
      return reconciler?.shards === undefined
        ? []
        : [{ path, text: `only for kind "management": a ${kind} cluster is one, and one replica leads it` }];
    const text = tooFew({ ...defaults, ...reconciler });
    if (text === undefined) return [];
    const isDefault = reconciler?.shards === undefined && reconciler?.replicas === undefined;
    return [{ path: isDefault ? ['defaults', 'reconciler', 'shards'] : path, text }];
  });
}

function tooFew(all: ReconcilerSettings): string | undefined {
  const { shards = 1, replicas = REPLICAS }: { readonly shards?: unknown; readonly replicas?: unknown } = all;
  // What is no number of shards is said by the schema.
  if (!isCount(shards) || !isCount(replicas) || shards === 1 || shards >= replicas) return undefined;
  return `invalid value ${shards}: must be at least ${replicas}, the number of replicas, so that each has one; or 1, so that one replica looks after all`;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0;
}
