/** PrometheusRule, ServiceMonitor and PodMonitor of the Prometheus Operator, with symptom-based alerts. */

import { customObject } from '../../runtime/core/kubernetes/custom-kinds.ts';
import type { KubeObject, ObjectMeta } from '../../runtime/core/kubernetes/object.ts';

/** One alert. Its annotations describe the symptom and the next step. */
export interface Alert {
  /** CamelCase. */
  readonly name: string;
  /** PromQL. */
  readonly expression: string;
  /** Pending period: `15m`. */
  readonly for: string;
  /** @default {'warning'} */
  readonly severity?: 'info' | 'warning' | 'critical';
  readonly summary: string;
  /** Next step. */
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
  return customObject('PrometheusRule', metadata, { groups: [{ name: metadata.name, rules }] });
}

/** A ServiceMonitor for port `metrics` of the selected Services in the same namespace. */
export function serviceMonitor(metadata: ObjectMeta, selector: Readonly<Record<string, string>>): KubeObject {
  return customObject('ServiceMonitor', metadata, {
    selector: { matchLabels: selector },
    endpoints: [{ port: 'metrics', interval: '30s' }],
  });
}

// Runbook links: each rendered alert has the URL of its section in `docs/runbooks`.

/** URL of this repository's published runbooks; a fleet may set another. */
export const RUNBOOKS = 'https://pullwright.dev/runbooks';

/** Name of a system's runbook file, without `.md`. */
export function runbookFile(system: string): string {
  return system === 'global-pull-secret' ? 'node-agent' : system;
}

interface RuleGroups {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly annotations: Record<string, string> }[];
  }[];
}

/**
 * Adds `runbook_url` to every alert of a PrometheusRule: `<base>/<file>.md#<alert in lower case>`, the Markdown anchor of a
 * heading `## <alert>`. Other objects are returned unchanged.
 *
 * @example
 * ```ts
 * import { withRunbooks } from './monitoring.ts';
 * import { prometheusRule } from './monitoring.ts';
 * import assert from 'node:assert/strict';
 *
 * const alert = { name: 'NodesBehind', expression: 'vector(1)', for: '5m', summary: 's', description: 'd' };
 * const object = withRunbooks(prometheusRule({ name: 'a' }, [alert]), 'https://example.com/runbooks', () => 'node-agent');
 * assert.match(JSON.stringify(object), /"runbook_url":"https:\/\/example.com\/runbooks\/node-agent.md#nodesbehind"/);
 * ```
 */
export function withRunbooks(
  object: KubeObject,
  base: string,
  fileOf: (alert: string) => string,
): KubeObject {
  if (object.kind !== 'PrometheusRule') return object;
  const linked = structuredClone(object);
  for (const { alert, annotations } of (linked.spec as RuleGroups).groups.flatMap(({ rules }) => rules))
    annotations['runbook_url'] = `${base}/${fileOf(alert)}.md#${alert.toLowerCase()}`;
  return linked;
}
