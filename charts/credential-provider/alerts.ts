/** What should wake somebody: plugins that fail, pools that do not get the configuration. */

import { CREDENTIAL_PROVIDER } from '../../runtime/rules/credential-provider-platform.ts';
import type { KubeObject } from '../../runtime/rules/kube-object.ts';

export interface AlertOptions {
  readonly namespace: string;
}

/**
 * A PrometheusRule. The first alert uses the kubelet's own metrics, the second the reconciler's.
 *
 * @example
 * ```ts
 * import { credentialProviderAlerts } from './alerts.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(credentialProviderAlerts({ namespace: 'pullwright-system' }).kind, 'PrometheusRule');
 * ```
 */
export function credentialProviderAlerts({ namespace }: AlertOptions): KubeObject {
  const plugin = `plugin_name="${CREDENTIAL_PROVIDER.name}"`;
  return {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'pullwright-credential-provider', namespace },
    spec: {
      groups: [
        {
          name: 'pullwright-credential-provider',
          rules: [
            rule('CredentialProviderFailing', {
              expr: `sum by (node, instance) (rate(kubelet_credential_provider_plugin_errors_total{${plugin}}[10m])) > 0`,
              for: '15m',
              summary: 'The CRI-O credential provider fails on {{ $labels.node }}',
              description:
                'Pulls go on with the credentials of the node alone, so that mirrors which want a password of the namespace refuse them. Look at journalctl -t crio-credential-provider on the node: the last line of each run says what to do.',
            }),
            rule('CredentialProviderNotRolledOut', {
              expr: 'min by (pool) (pullwright_credential_provider_pool_rolled_out) == 0',
              for: '1h',
              summary:
                'Pool {{ $labels.pool }} does not get the configuration of the CRI-O credential provider',
              description:
                'Look at the conditions of CRIOCredentialProviderConfig/cluster and of the MachineConfigPool: kubelet and CRI-O 1.34 are needed on every node of a pool.',
            }),
          ],
        },
      ],
    },
  };
}

interface Alert {
  readonly expr: string;
  readonly for: string;
  readonly summary: string;
  readonly description: string;
}

function rule(
  alert: string,
  { expr, for: duration, summary, description }: Alert,
): Readonly<Record<string, unknown>> {
  return {
    alert,
    expr,
    for: duration,
    labels: { severity: 'warning' },
    annotations: { summary, description },
  };
}
