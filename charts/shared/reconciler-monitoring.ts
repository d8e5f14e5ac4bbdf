/** What is watched of the reconciler itself. */
import type { KubeObject, ObjectMeta } from '../../runtime/rules/kubernetes/object.ts';
import { labels, selectorLabels } from './metadata.ts';
import { type Alert, prometheusRule, serviceMonitor } from './monitoring.ts';
import { RECONCILER } from './reconciler-grant.ts';

const JOB = `job=~"${RECONCILER}(-.+)?"`;

/** One for each reconciler: none that is left tells of one that is gone. */
function downAlert(name: string): Alert {
  return {
    name: 'PullwrightReconcilerDown',
    expression: `absent(leader_election_master_status{${JOB},name="${name}"} == 1)`,
    for: '10m',
    severity: 'critical',
    summary: `No replica of ${name} leads`,
    description: `Pull secrets on nodes stay as they are, but no change reaches them. Look at the pods of Deployment ${name} and at the Lease of that name.`,
  };
}

const ALERTS: readonly Alert[] = [
  {
    name: 'PullwrightReconcileFailing',
    expression: `sum by (controller) (rate(controller_runtime_reconcile_errors_total{${JOB}}[15m])) > 0`,
    for: '30m',
    summary: 'Controller {{ $labels.controller }} has failed for half an hour',
    description:
      'What it wrote last stays in place. Its log names the object and what to do: kubectl logs -l app.kubernetes.io/name=pullwright-reconciler -n {{ $labels.namespace }}.',
  },
  {
    name: 'PullwrightNeedsAPerson',
    expression: `sum by (controller) (increase(controller_runtime_terminal_reconcile_errors_total{${JOB}}[1h])) > 0`,
    for: '5m',
    summary: 'Controller {{ $labels.controller }} found something that only a person can fix',
    description: 'It is not retried. Look at the conditions and events: kubectl get pullcreds -A.',
  },
  {
    name: 'PullwrightHostedClusterFailing',
    expression: `sum by (pod) (pullwright_hosted_clusters{${JOB},state=~"failing|refused"}) > 0`,
    for: '15m',
    summary: '{{ $value }} hosted clusters of {{ $labels.pod }} are not looked after',
    description:
      'They keep what they have, and no change reaches them; other clusters are looked after. pullwright status names each and says why, as does an Event on its HostedControlPlane.',
  },
];

/** PrometheusRule, and a ServiceMonitor for each reconciler of `names`, with the alerts of systems beside their own. */
export function reconcilerMonitoring(
  namespace: string,
  more: readonly Alert[],
  names: readonly string[] = [RECONCILER],
): readonly KubeObject[] {
  const metadataOf = (name: string): ObjectMeta => ({
    name,
    namespace,
    labels: labels({ name, component: 'reconciler' }),
  });
  return [
    prometheusRule(metadataOf(RECONCILER), [...names.map(downAlert), ...ALERTS, ...more]),
    ...names.map((name) =>
      serviceMonitor(metadataOf(name), selectorLabels({ name, component: 'reconciler' })),
    ),
  ];
}
