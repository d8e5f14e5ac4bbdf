/** PrometheusRule, ServiceMonitor and PodMonitor of the Prometheus Operator: symptoms that are worth a page. */

import { customObject } from '../../runtime/core/kubernetes/custom-kinds.ts';
import type { KubeObject, ObjectMeta } from '../../runtime/core/kubernetes/object.ts';

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
  return customObject('PrometheusRule', metadata, { groups: [{ name: metadata.name, rules }] });
}

/** A ServiceMonitor for the port `metrics` of the Services with these labels in the same namespace. */
export function serviceMonitor(metadata: ObjectMeta, selector: Readonly<Record<string, string>>): KubeObject {
  return customObject('ServiceMonitor', metadata, {
    selector: { matchLabels: selector },
    endpoints: [{ port: 'metrics', interval: '30s' }],
  });
}

// Where an alert is explained: each rendered alert carries the address of its section in `docs/runbooks`.

/** Where the runbooks of this repository are published; a fleet may name a copy of its own. */
export const RUNBOOKS = 'https://pullwright.dev/runbooks';

/** File of a system's runbooks, without `.md`. What the nodes do has a file of its own. */
export function runbookFile(system: string): string {
  return system === 'global-pull-secret' ? 'node-agent' : system;
}

interface RuleGroups {
  readonly groups: readonly {
    readonly rules: { readonly alert?: string; annotations?: Readonly<Record<string, string>> }[];
  }[];
}

/**
 * `object` with `runbook_url` on every alert when it is a PrometheusRule: `<base>/<file>.md#<alert in lower case>`, the place
 * that a heading `## <alert>` has in Markdown. Other objects come back as they are.
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
  for (const rule of (linked.spec as RuleGroups).groups.flatMap(({ rules }) => rules)) {
    const { alert, annotations } = rule;
    if (alert === undefined) continue;
    rule.annotations = { ...annotations, runbook_url: `${base}/${fileOf(alert)}.md#${alert.toLowerCase()}` };
  }
  return linked;
}
