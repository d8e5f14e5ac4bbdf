/** Alerts. Each is explained in `docs/runbooks/pull-secret-adapter.md`. */
import type { Alert } from '../shared/monitoring.ts';

const DEAD = 'pullwright_adapter_events_total{outcome="dead"}';
const RESULT = 'pullwright_pull_secret_result';
/** Reasons of a cluster in progress. With any other reason, the pull secret stays missing. */
const UNDER_WAY =
  'SecretAvailable|JobInProgress|PreconditionNotMet|Deleting|SecretDeleted|ManagementNamespaceTerminating';
/** A recreated Job removes the failed one with its series. Longer than a Job may run, shorter than the alert's `for`. */
const GAP = '10m';

/** Clusters by reason, without deleted clusters and clusters whose secret has been stored since. */
const CLUSTERS_FAILING = [
  'count by (reason) (',
  `max by (cluster, reason) (max_over_time(${RESULT}{reason!~"${UNDER_WAY}"}[${GAP}]))`,
  ` and on (cluster) ${RESULT}`,
  ` unless on (cluster) ${RESULT}{reason=~"SecretAvailable|PreconditionNotMet|Deleting|SecretDeleted"}`,
  ') > 0',
].join('');

const SENTINEL: Alert = {
  name: 'PullSecretSentinelStalled',
  expression:
    'time() - pullwright_sentinel_last_poll_timestamp_seconds > 300 or absent(pullwright_sentinel_last_poll_timestamp_seconds)',
  for: '5m',
  summary: 'Sentinel has not completed a poll for five minutes',
  description:
    'No events are sent; the adapter finds new clusters only by its slower sweep. The log of Sentinel shows the failed call.',
};

/** @param sentinel whether Sentinel is installed with the adapter */
export function adapterAlerts(namespace: string, sentinel: boolean): readonly Alert[] {
  return [
    {
      name: 'PullSecretAdapterFailing',
      expression:
        'increase(controller_runtime_reconcile_total{controller="pull-secret-adapter",result="error"}[15m]) > 5',
      for: '15m',
      summary: 'The adapter cannot reach the HyperFleet API or its own cluster',
      description:
        'Stored pull secrets stay; new clusters, rotations and deletions wait. The log of the adapter shows the failed call.',
    },
    {
      name: 'PullSecretAdapterDeadLetters',
      expression: `increase(${DEAD}[15m]) > 0 or (${DEAD} > 0 unless ${DEAD} offset 15m)`,
      for: '0m',
      summary: 'Messages were moved to the dead letter queue',
      description:
        'They are not cluster events, or failed too often. The log of the adapter has the reason of each.',
    },
    ...(sentinel ? [SENTINEL] : []),
    {
      name: 'PullSecretJobsFailing',
      expression: jobsFailing(namespace),
      for: '15m',
      summary: 'Jobs that store pull secrets fail',
      description: 'The reason is in the status of the cluster, and in the termination message of the pod.',
    },
    {
      name: 'PullSecretClustersFailing',
      expression: CLUSTERS_FAILING,
      for: '15m',
      summary: 'Pull secrets of clusters cannot be stored or removed',
      description:
        'The label "reason" shows why. The same reason for many clusters is a fault of the platform, otherwise of the cluster.',
    },
  ];
}

/** Matches failed Jobs only; a Job with a failed first pod may still succeed. */
function jobsFailing(namespace: string): string {
  const jobs = `namespace="${namespace}",job_name=~"pullsecret-.+",condition="true"`;
  const failed = `max by (job_name) (max_over_time(kube_job_failed{${jobs}}[${GAP}])) > 0`;
  return `count(${failed} unless on (job_name) kube_job_complete{${jobs}} == 1) > 0`;
}
