/** PrometheusRule, ServiceMonitor and PodMonitor of the Prometheus Operator: symptoms that are worth waking somebody for. */
import type { KubeObject, ObjectMeta } from '../../runtime/rules/kubernetes/object.ts';
import { customObject } from './custom-kinds.ts';

/** One alert. Its annotations say what is the case and what to look at. */
export interface Alert {
  /** CamelCase. */
  readonly name: string;
  /** PromQL. */
  readonly expression: string;
  /** How long it has to hold: `15m`. */
  readonly for: string;
  /** @default {'warning'} */
  readonly severity?: 'info' | 'warning' | 'critical';
  readonly summary: string;
  /** What to do. */
  readonly description: string;
}

/** A PrometheusRule with one group, named like the object. */
export function prometheusRule(metadata: ObjectMeta, alerts: readonly Alert[]): KubeObject {
  const rules = alerts.map((alert) => ({
    alert: alert.name,
    expr: alert.expression,
    for: alert.for,
    labels: { severity: alert.severity ?? 'warning' },
    annotations: { summary: alert.summary, description: alert.description },
  }));
  return customObject('PrometheusRule', metadata, { spec: { groups: [{ name: metadata.name, rules }] } });
}

/** A ServiceMonitor for the port `metrics` of the Services with these labels in the same namespace. */
export function serviceMonitor(metadata: ObjectMeta, selector: Readonly<Record<string, string>>): KubeObject {
  return customObject('ServiceMonitor', metadata, {
    spec: { selector: { matchLabels: selector }, endpoints: [{ port: 'metrics', interval: '30s' }] },
  });
}

/**
 * A PodMonitor for the port `metrics` of the pods with these labels in the same namespace.
 *
 * @param tls the pods' certificate is for `serverName`, by the CA in the key `ca.crt` of `secret`. @default plain HTTP
 */
export function podMonitor(
  metadata: ObjectMeta,
  selector: Readonly<Record<string, string>>,
  tls?: { readonly serverName: string; readonly secret: string },
): KubeObject {
  const secure =
    tls === undefined
      ? {}
      : ({
          scheme: 'https',
          tlsConfig: { serverName: tls.serverName, ca: { secret: { name: tls.secret, key: 'ca.crt' } } },
        } as const);
  return customObject('PodMonitor', metadata, {
    spec: {
      selector: { matchLabels: selector },
      podMetricsEndpoints: [{ port: 'metrics', interval: '60s', ...secure }],
    },
  });
}
