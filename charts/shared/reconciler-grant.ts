/** Roles of the reconciler, each bound to its accounts: one, and one for each shard. */
import { reconcilerName } from '../../runtime/rules/kubernetes/hosted-clusters.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { clusterRole, clusterRoleBinding, labels, type PolicyRule, role, roleBinding } from './objects.ts';
import type { Access, ClusterContext } from './system.ts';

/** Deployment, ServiceAccount, PodDisruptionBudget, NetworkPolicy, Service and Lease. */
export const RECONCILER: string = reconcilerName();

/** Names of all reconcilers of a cluster: that without a shard, and one for each shard. */
export function reconcilerNames({ shards = [] }: Pick<ClusterContext, 'shards'>): readonly string[] {
  return [RECONCILER, ...shards.map(reconcilerName)];
}

/** A Role or ClusterRole with its binding. */
export function grant(
  name: string,
  cluster: ClusterContext,
  access: Omit<Access, 'bounds'>,
): readonly KubeObject[] {
  const { account, namespace } = cluster;
  const subjects =
    account === undefined ? reconcilerNames(cluster).map((each) => ({ name: each, namespace })) : [account];
  const rules = distinct(access.rules);
  if (access.namespace === undefined) {
    const metadata = { name, labels: allLabels(name) };
    return [clusterRole(metadata, rules), clusterRoleBinding(metadata, subjects)];
  }
  const metadata = { name, namespace: access.namespace, labels: allLabels(name) };
  return [role(metadata, rules), roleBinding(metadata, subjects)];
}

function distinct(rules: readonly PolicyRule[]): readonly PolicyRule[] {
  return [...new Map(rules.map((rule) => [JSON.stringify(rule), rule])).values()];
}

/** Of everything of the reconciler. */
export function allLabels(name: string): Readonly<Record<string, string>> {
  return labels({ name, component: 'reconciler' });
}
