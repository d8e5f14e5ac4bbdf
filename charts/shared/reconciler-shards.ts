/** How the replicas of the reconciler divide the hosted clusters of a management cluster, and what they need for it. */
import { pullStatusName } from '../../runtime/rules/kubernetes/pull-status.ts';
import {
  MOST_SHARDS,
  RECONCILER_LEASE,
  reportingLeases,
  shardLeases,
} from '../../runtime/rules/kubernetes/shards.ts';
import type { Alert } from './monitoring.ts';
import type { PolicyRule } from './objects.ts';
import type { ClusterContext } from './system.ts';

interface Divided {
  readonly shards?: number;
}

/** Replicas of the reconciler where nothing is said. */
export const REPLICAS = 2;

/** The number of shards; 1 where one replica looks after all. */
export function shardsOf(cluster: Pick<ClusterContext, 'kind'>, settings: Divided): number {
  return cluster.kind === 'management' ? (settings.shards ?? 1) : 1;
}

/**
 * In its own namespace: its Leases by their names, and what it reports beside them. A
 * Lease is made by POST, whose name the authorizer does not see; those of shards are listed, so that one request shows them all.
 */
export function leaseRules(cluster: ClusterContext, settings: Divided): readonly PolicyRule[] {
  const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] } as const;
  const shards = shardsOf(cluster, settings);
  const isShared = shards > 1;
  const names = [RECONCILER_LEASE, ...(isShared ? shardLeases(shards) : [])];
  return [
    { ...leases, verbs: isShared ? ['create', 'list'] : ['create'] },
    { ...leases, resourceNames: names, verbs: ['get', 'update', 'patch'] },
    ...(cluster.kind === 'management' ? reportRules(shards) : []),
  ];
}

/** Of each Lease that hosted clusters belong to, what is said of them; and of those of more shards than there are, that it goes. */
function reportRules(shards: number): readonly PolicyRule[] {
  const [apiGroups, names] = [
    ['pullwright.dev'],
    (leases: readonly string[]) => leases.map((lease) => pullStatusName('Lease', lease)),
  ];
  const own = names(reportingLeases(shards));
  const every = names([...reportingLeases(), ...reportingLeases(MOST_SHARDS)]);
  return [
    { apiGroups, resources: ['pullstatuses'], verbs: ['list'] },
    { apiGroups, resources: ['pullstatuses'], resourceNames: own, verbs: ['get', 'create', 'patch'] },
    { apiGroups, resources: ['pullstatuses'], resourceNames: every, verbs: ['delete'] },
    { apiGroups, resources: ['pullstatuses/status'], resourceNames: own, verbs: ['get', 'patch'] },
  ];
}

/** What is watched where there are shards. */
export const SHARD_ALERTS: readonly Alert[] = [
  {
    name: 'PullwrightShardWithoutOwner',
    expression: `max by (shard) (pullwright_shard_owned{job="${RECONCILER_LEASE}"}) == 0`,
    for: '10m',
    severity: 'critical',
    summary: 'No replica of the Pullwright reconciler has shard {{ $labels.shard }}',
    description:
      'The hosted clusters of the shard keep what they have, but no change reaches them; those of other shards are looked after. pullwright status says which shard is whose.',
  },
];
