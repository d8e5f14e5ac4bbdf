/** What is worth waking somebody for. Each is explained in `docs/runbooks/pull-secret-adapter.md`. */
import type { Alert } from '../shared/monitoring.ts';

const SENTINEL: Alert = {
  name: 'PullSecretSentinelStalled',
  expression:
    'time() - pullwright_sentinel_last_poll_timestamp_seconds > 300 or absent(pullwright_sentinel_last_poll_timestamp_seconds)',
  for: '5m',
  summary: 'Sentinel has not gone over all clusters for five minutes',
  description:
    'No events are sent; the adapter finds new clusters by itself, but slowly. Its log says which call fails.',
};

/** @param sentinel whether Sentinel is installed along with the adapter */
export function adapterAlerts(namespace: string, sentinel: boolean): readonly Alert[] {
  return [
    {
      name: 'PullSecretAdapterFailing',
      expression:
        'increase(controller_runtime_reconcile_total{controller="pull-secret-adapter",result="error"}[15m]) > 5',
      for: '15m',
      summary: 'The adapter cannot reach the HyperFleet API or its own cluster',
      description:
        'Pull secrets that are in place stay; new clusters, rotations and deletions wait. Its log names the call.',
    },
    {
      name: 'PullSecretAdapterDeadLetters',
      expression: 'increase(pullwright_adapter_events_total{outcome="dead"}[15m]) > 0',
      for: '0m',
      summary: 'Messages were moved to the dead letter queue',
      description:
        'They are no events about a cluster, or were tried too often. The log of the adapter says why for each.',
    },
    ...(sentinel ? [SENTINEL] : []),
    {
      name: 'PullSecretJobsFailing',
      expression: `count(kube_job_status_failed{namespace="${namespace}",job_name=~"pullsecret-.+"} > 0) > 0`,
      for: '15m',
      summary: 'Jobs that store pull secrets fail',
      description: 'The reason is in the status of the cluster, and in the termination message of the pod.',
    },
  ];
}
