/** Alerts: nodes that do not get their credentials. */
import type { Alert } from '../shared/monitoring.ts';

/** By the gauges of the reconciler, one series per cluster. */
export const GLOBAL_PULL_SECRET_ALERTS: readonly Alert[] = [
  {
    name: 'PullSecretNotOnNodes',
    expression: 'pullwright_eligible_nodes - pullwright_synced_nodes > 0',
    for: '15m',
    summary: '{{ $value }} nodes of {{ $labels.scope }} do not have the desired pull secret',
    description:
      'Their pods of DaemonSet kube-system/global-pull-secret-syncer are not ready. The log of such a pod says why: a kubelet that does not come up again was given back its old file.',
  },
  {
    name: 'PlatformPullSecretFaulty',
    expression: 'pullwright_platform_faults > 0',
    for: '15m',
    summary: 'The platform pull secret of {{ $labels.scope }} has {{ $value }} faults',
    description:
      'Nodes keep the last good entries. What is wrong, and how a removal that is held is confirmed, is in kubectl get pullstatus -n kube-system secret-original-pull-secret -o yaml.',
  },
  {
    name: 'PullSecretEntriesRejected',
    expression: 'pullwright_rejected_entries > 0',
    for: '1h',
    severity: 'info',
    summary: '{{ $value }} entries of additional-pull-secret in {{ $labels.scope }} cannot be used',
    description:
      'The other entries are in place. Each verdict is in kubectl get pullstatus -n kube-system secret-additional-pull-secret -o yaml.',
  },
];
