/** PrometheusRule and ServiceMonitor of the Prometheus Operator: symptoms that are worth waking somebody for. */
import type { KubeObject, ObjectMeta } from '../../runtime/rules/kubernetes/object.ts';

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
  return {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata,
    spec: {
      groups: [
        {
          name: metadata.name,
          rules: alerts.map((alert) => ({
            alert: alert.name,
            expr: alert.expression,
            for: alert.for,
            labels: { severity: alert.severity ?? 'warning' },
            annotations: { summary: alert.summary, description: alert.description },
          })),
        },
      ],
    },
  };
}

/** A ServiceMonitor for the port `metrics` of the Services with these labels in the same namespace. */
export function serviceMonitor(metadata: ObjectMeta, selector: Readonly<Record<string, string>>): KubeObject {
  return {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'ServiceMonitor',
    metadata,
    spec: { selector: { matchLabels: selector }, endpoints: [{ port: 'metrics', interval: '30s' }] },
  };
}
