/** Alerts: mirrors that are not rolled out, and catalogs that are not found. */
import type { Alert } from '../shared/monitoring.ts';

/** By the gauges of the reconciler, one series per hosted cluster. */
export const REGISTRY_OVERRIDES_ALERTS: readonly Alert[] = [
  {
    name: 'RegistryOverridesContested',
    expression: 'pullwright_override_contested > 0',
    for: '30m',
    summary: 'Another writer takes the mirrors of {{ $labels.scope }} away again',
    description:
      'OPENSHIFT_IMG_OVERRIDES is set, removed, and set again after ten minutes. The PullStatus of the HostedCluster names the Deployment: stop the other writer, or choose mode observe.',
  },
  {
    name: 'RegistryOverridesDrifted',
    expression: 'pullwright_override_drifted > 0',
    for: '1h',
    severity: 'info',
    summary: '{{ $value }} Deployments of {{ $labels.scope }} still have older mirrors',
    description:
      "HyperShift's operator writes them and has not followed the mirror sets. Restart that operator, or choose mode own.",
  },
  {
    name: 'RegistryOverridesInvalid',
    expression: 'pullwright_override_problems > 0',
    for: '1h',
    severity: 'info',
    summary: '{{ $value }} entries and annotations for {{ $labels.scope }} cannot be used',
    description:
      'The others are in place. Each verdict is in the PullStatus hostedcluster-NAME beside the HostedCluster.',
  },
  {
    name: 'RegistryCatalogsMissing',
    expression: 'pullwright_override_catalogs{result="failed"} > 0',
    for: '30m',
    summary: '{{ $value }} catalogs of {{ $labels.scope }} were found at no registry',
    description:
      'What was in place before stays; new operators cannot be installed from a catalog that has none. The PullStatus names the image: pullwright mirrors IMAGE --probe says what each place answers.',
  },
  {
    name: 'RegistryCatalogsFellBack',
    expression: 'pullwright_override_catalogs{result="fallback"} > 0',
    for: '1h',
    severity: 'info',
    summary: '{{ $value }} catalogs of {{ $labels.scope }} come from the source: no mirror has them',
    description: 'They work as long as the source can be reached. Mirror the catalog again.',
  },
];
