/** Grafana dashboards, one per system, as ConfigMaps for Grafana's sidecar. */
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { configMap, labels } from '../../runtime/core/kubernetes/objects.ts';
import { jsonText } from '../../runtime/core/text.ts';

// Panels of each dashboard: a question and its query.

/** One panel. */
export interface Panel {
  readonly title: string;
  /** How to interpret the panel. */
  readonly about: string;
  /** PromQL. */
  readonly expr: string;
  /** Legend template. @default the labels of the query's aggregation */
  readonly legend?: string;
  /** Grafana unit ID. @default {'short'} */
  readonly unit?: string;
}

/** By system; `reconciler` for the common panels. */
export const DASHBOARDS: Readonly<Record<string, readonly Panel[]>> = {
  reconciler: [
    {
      title: 'Leading replicas',
      about: 'One per reconciler; with none, no change is applied.',
      expr: 'sum by (name) (leader_election_master_status{job=~"pullwright-reconciler(-.+)?"})',
    },
    {
      title: 'Hosted clusters',
      about: 'Refused ones have a kubeconfig of another cluster.',
      expr: 'sum by (state) (pullwright_hosted_clusters * on (namespace, pod) group_left () leader_election_master_status{job=~"pullwright-reconciler(-.+)?"})',
    },
    {
      title: 'Reconciliations',
      about: 'By controller and result.',
      expr: 'sum by (controller, result) (rate(controller_runtime_reconcile_total[5m]))',
      unit: 'ops',
    },
    {
      title: 'Reconciliation time, 99th percentile',
      about: 'Without the time in the queue.',
      expr: 'histogram_quantile(0.99, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket[5m])))',
      unit: 's',
    },
    {
      title: 'Queue depth',
      about: 'A queue that only grows is not keeping up.',
      expr: 'max by (name) (workqueue_depth)',
    },
    {
      title: 'Objects written',
      about: 'Zero while nothing changes.',
      expr: 'sum by (controller, verb) (rate(pullwright_applied_objects_total[5m]))',
      unit: 'ops',
    },
    {
      title: 'Requests to API servers',
      about: 'By status code.',
      expr: 'sum by (code) (rate(rest_client_requests_total[5m]))',
      unit: 'reqps',
    },
    {
      title: 'Requires a fix',
      about: 'Errors that are not retried: see conditions and events.',
      expr: 'sum by (controller) (increase(controller_runtime_terminal_reconcile_errors_total[1h]))',
    },
  ],
  'global-pull-secret': [
    {
      title: 'Nodes without the desired pull secret',
      about: 'Zero a few minutes after a change.',
      expr: 'sum by (scope) (pullwright_eligible_nodes - pullwright_synced_nodes)',
    },
    {
      title: 'Entries that are not used',
      about: 'Rejected ones are invalid; shadowed ones match a platform entry.',
      expr: 'sum by (scope) (pullwright_rejected_entries + pullwright_merge_conflicts)',
    },
    {
      title: "Faults of the platform's pull secret",
      about: 'Unusable entries, a held removal, or the whole Secret.',
      expr: 'sum by (scope) (pullwright_platform_faults)',
    },
    {
      title: 'Kubelet restarts per hour',
      about: 'Failed restarts were retried or rolled back.',
      expr: 'sum(increase(pullwright_agent_restarts_total[1h])) + sum(increase(pullwright_agent_restart_failures_total[1h]))',
      legend: 'restarts',
    },
    {
      title: 'Rollbacks per hour',
      about: 'The kubelet failed to start with the new content.',
      expr: 'sum(increase(pullwright_agent_rollbacks_total[1h]))',
      legend: 'roll-backs',
    },
  ],
  'pull-secret-injection': [
    {
      title: 'Namespaces of profiles',
      about: 'Current ones have all Secrets of a profile; blocked ones wait for their owners.',
      expr: 'max by (scope, profile, state) (pullwright_profile_namespaces)',
    },
    {
      title: 'Pods without names of their profiles',
      about: 'Stuck ones cannot pull; running ones may fail when recreated.',
      expr: 'sum by (scope, state) (pullwright_uninjected_pods)',
    },
    {
      title: 'Size of the admission policy',
      about: 'In characters of CEL.',
      expr: 'max by (scope) (pullwright_injection_policy_characters)',
    },
    {
      title: 'Webhook latency, 99th percentile',
      about: 'Only with admission webhook.',
      expr: 'histogram_quantile(0.99, sum by (outcome, le) (rate(pullwright_webhook_handler_seconds_bucket[5m])))',
      unit: 's',
    },
  ],
  'registry-overrides': [
    {
      title: 'Sources with mirrors',
      about: 'Of each hosted cluster.',
      expr: 'max by (scope) (pullwright_override_sources)',
    },
    {
      title: 'Entries that cannot be used',
      about: 'The others are in place.',
      expr: 'max by (scope) (pullwright_override_problems)',
    },
    {
      title: 'Drifted or contested Deployments',
      about: 'Another operator writes them.',
      expr: 'max by (scope) (pullwright_override_drifted + pullwright_override_contested)',
    },
    {
      title: 'Catalogs by source of their image',
      about: 'Failed ones were not found in any registry.',
      expr: 'sum by (result) (pullwright_override_catalogs)',
    },
  ],
  'pull-secret-adapter': [
    {
      title: 'Clusters by result of the last reconciliation',
      about: 'SecretAvailable is healthy.',
      expr: 'count by (reason) (max by (cluster, reason) (pullwright_pull_secret_result))',
    },
    {
      title: 'Events',
      about: 'Dead ones failed permanently and are in the dead letter queue.',
      expr: 'sum by (outcome) (increase(pullwright_adapter_events_total[15m]))',
    },
    {
      title: 'Repairs after manual changes',
      about: 'By repaired object.',
      expr: 'sum by (what) (increase(pullwright_adapter_repairs_total[1h]))',
    },
    {
      title: 'Readable versions',
      about: 'Maximum of all clusters.',
      expr: 'max(pullwright_pull_secret_enabled_versions)',
      legend: 'versions',
    },
    {
      title: 'Events of Sentinel',
      about: 'Undecided: an expression had no value.',
      expr: 'sum by (outcome) (increase(pullwright_sentinel_events_total[15m]))',
    },
    {
      title: 'Time since the last Sentinel poll',
      about: 'Expected: minutes.',
      expr: 'time() - max(pullwright_sentinel_last_poll_timestamp_seconds)',
      legend: 'age',
      unit: 's',
    },
  ],
  'credential-provider': [
    {
      title: 'Pools that are not fully rolled out',
      about: 'Zero after a rollout.',
      expr: 'count(min by (pool) (pullwright_credential_provider_pool_rolled_out) == 0) or vector(0)',
      legend: 'pools',
    },
    {
      title: 'Nodes where the installation differs from the configuration',
      about: 'Only nodes with an installer.',
      expr: 'count(pullwright_installer_in_sync == 0) or vector(0)',
      legend: 'nodes',
    },
    {
      title: 'ServiceAccounts whose pods get no credential',
      about: 'The last run of the provider failed for them.',
      expr: 'sum(pullwright_installer_failing_accounts)',
      legend: 'accounts',
    },
    {
      title: 'Failed runs',
      about: 'As counted by kubelets.',
      expr: 'sum(rate(kubelet_credential_provider_plugin_errors_total{plugin_name="crio-credential-provider"}[5m]))',
      legend: 'failures',
      unit: 'ops',
    },
    {
      title: 'Oldest auth file that no pull has used',
      about: 'A file has credentials until it is removed.',
      expr: 'max(pullwright_auth_file_oldest_seconds)',
      legend: 'age',
      unit: 's',
    },
  ],
  verify: [
    {
      title: 'Credentials that registries reject',
      about: 'By reason.',
      expr: 'count by (reason) (max by (credential, reason) (pullwright_credential_refused))',
    },
    {
      title: 'Time until the next credential expires',
      about: 'Only credentials with an expiry.',
      expr: 'min(pullwright_credential_expires_at) - time()',
      legend: 'time',
      unit: 's',
    },
    {
      title: 'Time since the last check of registries',
      about: 'Expected: at most a day.',
      expr: 'time() - max by (scope) (pullwright_verify_last_run)',
      unit: 's',
    },
  ],
};

/** Label selected by the sidecars of the Grafana chart and of kube-prometheus-stack. */
const FOUND_BY: Readonly<Record<string, string>> = { grafana_dashboard: '1' };
const WIDTH = 12;
const HEIGHT = 8;

/**
 * Returns the ConfigMaps of these systems (`reconciler`: the common one). Systems without a dashboard are skipped.
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
    return [configMap(metadata, { [`pullwright-${system}.json`]: jsonText(dashboard(system, panels)) })];
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

/** Legend template of a panel. */
export function legendOf({ expr, legend }: Panel): string {
  const labels = /\bby \(([^)]*)\)/.exec(expr)?.[1]?.split(', ') ?? [];
  const names = labels.filter((label) => label !== 'le').map((label) => `{{${label}}}`);
  return legend ?? names.join(' ');
}

function panelOf(panel: Panel, index: number): unknown {
  const { title, about, expr, unit = 'short' } = panel;
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
    targets: [{ refId: 'A', datasource, expr, legendFormat: legendOf(panel) }],
  };
}
