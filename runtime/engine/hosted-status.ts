/** Shards of hosted clusters, and the reported state of each cluster. */

import { withHint } from '../core/errors.ts';
import { readinessOf } from '../core/kubernetes/conditions.ts';
import type { EntryStatus } from '../core/kubernetes/pull-status.ts';
import { countedOf, someOf } from '../core/text.ts';

/** Label of a HostedCluster: the shard that manages it. Without the label, the reconciler without a shard does. */
export const SHARD_LABEL = 'pullwright.dev/shard';

/** Name of the Deployment, ServiceAccount and Lease of a shard's reconciler. */
export function reconcilerName(shard?: string): string {
  return shard === undefined ? 'pullwright-reconciler' : `pullwright-reconciler-${shard}`;
}

/** The observed state of a hosted cluster. */
export interface SeenCluster {
  /** `<namespace>/<HostedCluster>` */
  readonly scope: string;
  /** `refused`: its kubeconfig points to the API server of another cluster. */
  readonly state: 'ready' | 'starting' | 'failing' | 'refused';
  /** Why it is failing or refused; absent while the failure may be transient. */
  readonly trouble?: { readonly code: string; readonly message: string; readonly hint?: string | undefined };
}

/** Maximum length in the CRD. */
const MOST_REASON = 1024;

/**
 * Returns conditions, and a verdict for each cluster with a reported failure.
 *
 * @param clusters in any order
 */
export function hostedClustersSaid(clusters: readonly SeenCluster[]) {
  const sorted = clusters.toSorted((a, b) => (a.scope < b.scope ? -1 : 1));
  const verdicts = sorted.flatMap(verdictOf);
  const ready = clusters.filter(({ state }) => state === 'ready').length;
  const all = clusters.length;
  const starting = all - ready - verdicts.length;
  const are = (some: number): string =>
    countedOf(some, all, ['hosted cluster', 'hosted clusters'], ['is', 'are']);
  const names = verdicts.map(({ subject, reason }) => `"${subject.slice(0, 200)}" (${reason.slice(0, 64)})`);
  const failing = `${are(verdicts.length)} not reconciled: ${someOf(names, 3)}`;
  const none = { reason: 'NoHostedClusters', message: 'No hosted clusters to reconcile' };
  const begin = { reason: 'HostedClustersStarting', message: `${are(starting)} starting` };
  const conditions = readinessOf([
    ['ready', all === 0 ? none : undefined],
    ['stalled', verdicts.length > 0 ? { reason: 'HostedClustersFailing', message: failing } : undefined],
    ['progressing', starting > 0 ? begin : undefined],
    ['ready', { reason: 'HostedClustersServed', message: `${are(all)} reconciled` }],
  ]);
  return { conditions, verdicts };
}

function verdictOf({ scope, state, trouble }: SeenCluster): readonly EntryStatus[] {
  if (trouble === undefined || (state !== 'failing' && state !== 'refused')) return [];
  const verdict = state === 'refused' ? 'Rejected' : 'Pending';
  const reason = trouble.code.slice(0, MOST_REASON);
  return [{ subject: scope, verdict, reason, message: withHint(trouble) }];
}
