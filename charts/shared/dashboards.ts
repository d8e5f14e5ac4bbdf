/** Grafana dashboards, one a system, as ConfigMaps that Grafana's sidecar picks up by their label. */
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { DASHBOARDS, type Panel } from './dashboard-panels.ts';
import { kubernetesObject } from './kubernetes.ts';
import { labels } from './metadata.ts';

/** By which the sidecar of Grafana's chart, and that of kube-prometheus-stack, finds them. */
const FOUND_BY: Readonly<Record<string, string>> = { grafana_dashboard: '1' };
const WIDTH = 12;
const HEIGHT = 8;

/**
 * The ConfigMaps of these systems, `reconciler` for what all have in common; a system without a dashboard has none.
 *
 * @example
 * ```ts
 * import { dashboardObjects } from './dashboards.ts';
 * import assert from 'node:assert/strict';
 *
 * const [object] = dashboardObjects('pullwright-system', ['verify']);
 * assert.equal(object?.metadata.name, 'pullwright-dashboard-verify');
 * ```
 */
export function dashboardObjects(namespace: string, systems: readonly string[]): readonly KubeObject[] {
  return systems.flatMap((system) => {
    const panels = DASHBOARDS[system];
    if (panels === undefined) return [];
    const metadata = {
      name: `pullwright-dashboard-${system}`,
      namespace,
      labels: { ...labels({ name: 'pullwright-dashboard', component: system }), ...FOUND_BY },
    };
    const text = `${JSON.stringify(dashboard(system, panels), null, 2)}\n`;
    return [kubernetesObject('ConfigMap', metadata, { data: { [`pullwright-${system}.json`]: text } })];
  });
}

function dashboard(system: string, panels: readonly Panel[]): unknown {
  return {
    title: `Pullwright: ${system.replaceAll('-', ' ')}`,
    uid: `pullwright-${system}`,
    tags: ['pullwright'],
    schemaVersion: 39,
    timezone: 'browser',
    refresh: '1m',
    time: { from: 'now-6h', to: 'now' },
    templating: {
      list: [{ name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source' }],
    },
    panels: panels.map(panelOf),
  };
}

function panelOf({ title, about, expr, legend, unit = 'short' }: Panel, index: number): unknown {
  const datasource = { type: 'prometheus', uid: '${datasource}' };
  return {
    id: index + 1,
    type: 'timeseries',
    title,
    description: about,
    gridPos: { x: (index % 2) * WIDTH, y: Math.floor(index / 2) * HEIGHT, w: WIDTH, h: HEIGHT },
    datasource,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi' } },
    targets: [{ refId: 'A', datasource, expr, legendFormat: legend }],
  };
}
