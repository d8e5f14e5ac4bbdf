/** Alerts: namespaces that lack a Secret, and pods that cannot start without one. */
import type { Alert } from '../shared/monitoring.ts';

/** By the gauges of the reconciler. A pod that runs although it lacks names is no reason for an alert. */
export const PULL_SECRET_INJECTION_ALERTS: readonly Alert[] = [
  {
    name: 'PullSecretCopiesBehind',
    expression:
      'max by (scope, profile) (pullwright_profile_namespaces{state="selected"}) - on (scope, profile) max by (scope, profile) (pullwright_profile_namespaces{state="current"}) - on (scope, profile) max by (scope, profile) (pullwright_profile_namespaces{state="blocked"}) > 0',
    for: '30m',
    summary: '{{ $value }} namespaces lack Secrets of profile {{ $labels.profile }} of {{ $labels.scope }}',
    description:
      'Copies that are there stay as they are. The reason is in the conditions of the profile (kubectl get pullcreds). Namespaces whose own owners have to act are not counted; they are in kubectl get pullstatus -A.',
  },
  {
    name: 'PodsStuckWithoutPullSecret',
    expression: 'max by (scope, namespace) (pullwright_uninjected_pods{state="stuck"}) > 0',
    for: '15m',
    summary:
      '{{ $value }} pods of namespace {{ $labels.namespace }} cannot pull and lack pull secrets of their profiles',
    description:
      'They were created while nothing injected; new pods get the secrets. The pods are in kubectl get pullstatus -n {{ $labels.namespace }} podlist-{{ $labels.namespace }} -o yaml.',
  },
];
