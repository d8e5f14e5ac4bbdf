/** Alerts. Each is explained in `docs/runbooks/credential-provider.md`. */

import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { CREDENTIAL_PROVIDER } from '../../runtime/credential-provider/platform.ts';
import { type Alert, prometheusRule } from '../shared/monitoring.ts';

const PLUGIN = `plugin_name="${CREDENTIAL_PROVIDER.name}"`;

const ALERTS: readonly Alert[] = [
  {
    name: 'CredentialProviderFailing',
    expression: `sum by (node, instance) (rate(kubelet_credential_provider_plugin_errors_total{${PLUGIN}}[10m])) > 0`,
    for: '15m',
    summary: 'The CRI-O credential provider is failing on {{ $labels.node }}',
    description:
      "Pulls use only the node's credentials, so mirrors that require credentials of the namespace reject them. Run journalctl -t crio-credential-provider on the node: the last line of each run reports the fix.",
  },
  {
    name: 'CredentialProviderNotRolledOut',
    expression: 'min by (pool) (pullwright_credential_provider_pool_rolled_out) == 0',
    for: '1h',
    summary: 'Pool {{ $labels.pool }} does not get the configuration of the CRI-O credential provider',
    description:
      'Look at PullStatus/criocredentialproviderconfig-cluster: its verdicts report what each pool and NodePool lacks. Kubelet and CRI-O 1.34 are required on every node of a pool.',
  },
  {
    name: 'CredentialProviderAuthFileLeft',
    expression: 'max by (instance) (pullwright_auth_file_oldest_seconds) > 2400',
    for: '10m',
    summary: 'An auth file of the CRI-O credential provider is unused on {{ $labels.instance }}',
    description:
      'It contains credentials of a namespace, and CRI-O removes it after the pull. Either CRI-O does not read such files, or pulls never reach CRI-O.',
  },
];

const INSTALLER_ALERTS: readonly Alert[] = [
  {
    name: 'CredentialProviderNotInstalled',
    expression: 'pullwright_installer_in_sync == 0',
    for: '1h',
    summary: 'The CRI-O credential provider is not installed as configured on {{ $labels.instance }}',
    description: `The node keeps its old configuration. For the reason, see pullwright_installer_state_info, the installer's log or, with "report", the node's PullStatus.`,
  },
  {
    name: 'CredentialProviderRolledBack',
    expression: 'increase(pullwright_installer_rollbacks_total[1h]) > 0',
    for: '0m',
    summary: 'A kubelet did not start with the CRI-O credential provider on {{ $labels.instance }}',
    description:
      'The kubelet runs with the old drop-in; the same content is not retried. For the reason, run journalctl -u kubelet on the node.',
  },
];

/**
 * Builds a PrometheusRule over the metrics of the kubelet, reconciler, node agents and installer.
 *
 * @param installer whether the installer runs in this cluster
 * @example
 * ```ts
 * import { credentialProviderAlerts } from './alerts.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(credentialProviderAlerts('pullwright-system', false).kind, 'PrometheusRule');
 * ```
 */
export function credentialProviderAlerts(namespace: string, installer: boolean): KubeObject {
  return prometheusRule({ name: 'pullwright-credential-provider', namespace }, [
    ...ALERTS,
    ...(installer ? INSTALLER_ALERTS : []),
  ]);
}
