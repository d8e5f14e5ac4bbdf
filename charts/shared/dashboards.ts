/** Grafana dashboards, one per system, as ConfigMaps for Grafana's sidecar. */
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { kubernetesObject, labels } from '../../runtime/core/kubernetes/objects.ts';

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
      title: 'Replicas that lead',
      about: 'One of each reconciler; none means that no change arrives.',
      expr: 'sum by (name) (leader_election_master_status{job=~"pullwright-reconciler(-.+)?"})',
    },
    {
      title: 'Hosted clusters',
      about: 'Refused ones have a kubeconfig that leads to the cluster of another.',
      expr: 'sum by (state) (pullwright_hosted_clusters * on (namespace, pod) group_left () leader_election_master_status{job=~"pullwright-reconciler(-.+)?"})',
    },
    {
      title: 'Reconciliations',
      about: 'By controller and result.',
      expr: 'sum by (controller, result) (rate(controller_runtime_reconcile_total[5m]))',
      unit: 'ops',
    },
    {
      title: 'Time of a reconciliation, 99 of 100',
      about: 'Without the time in the queue.',
      expr: 'histogram_quantile(0.99, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket[5m])))',
      unit: 's',
    },
    {
      title: 'Waiting in queues',
      about: 'What grows and does not shrink again is not keeping up.',
      expr: 'max by (name) (workqueue_depth)',
    },
    {
      title: 'Objects written',
      about: 'Nothing, while nothing changes.',
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
      title: 'Needs a person',
      about: 'Errors that are not tried again: conditions and events say what to do.',
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
      about: "Rejected ones cannot be read; shadowed ones mean what the platform's mean.",
      expr: 'sum by (scope) (pullwright_rejected_entries + pullwright_merge_conflicts)',
    },
    {
      title: "Faults of the platform's pull secret",
      about: 'Entries that cannot be used, a removal that is held, or the whole.',
      expr: 'sum by (scope) (pullwright_platform_faults)',
    },
    {
      title: 'Restarts of kubelets in an hour',
      about: 'Those that failed were tried again or rolled back.',
      expr: 'sum(increase(pullwright_agent_restarts_total[1h])) + sum(increase(pullwright_agent_restart_failures_total[1h]))',
      legend: 'restarts',
    },
    {
      title: 'Files put back in an hour',
      about: 'A kubelet did not come up with the new content.',
      expr: 'sum(increase(pullwright_agent_rollbacks_total[1h]))',
      legend: 'roll-backs',
    },
  ],
  'pull-secret-injection': [
    {
      title: 'Namespaces of profiles',
      about: 'Current ones hold all Secrets of a profile; blocked ones wait for their own owners.',
      expr: 'max by (scope, profile, state) (pullwright_profile_namespaces)',
    },
    {
      title: 'Pods without names of their profiles',
      about: 'Stuck ones cannot pull; running ones will fail when they start again.',
      expr: 'sum by (scope, state) (pullwright_uninjected_pods)',
    },
    {
      title: 'Size of the admission policy',
      about: 'In characters of CEL.',
      expr: 'max by (scope) (pullwright_injection_policy_characters)',
    },
    {
      title: 'Time in the webhook, 99 of 100',
      about: 'Where admission is webhook.',
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
      title: 'Deployments that lag or are fought over',
      about: 'Another operator writes them.',
      expr: 'max by (scope) (pullwright_override_drifted + pullwright_override_contested)',
    },
    {
      title: 'Catalogs by where their image was found',
      about: 'Failed ones were found at no registry.',
      expr: 'sum by (result) (pullwright_override_catalogs)',
    },
  ],
  'pull-secret-adapter': [
    {
      title: 'Clusters by how their last pass ended',
      about: 'SecretAvailable is well.',
      expr: 'count by (reason) (max by (cluster, reason) (pullwright_pull_secret_result))',
    },
    {
      title: 'Events',
      about: 'Dead ones failed for good, and wait in the dead letter queue.',
      expr: 'sum by (outcome) (increase(pullwright_adapter_events_total[15m]))',
    },
    {
      title: 'Put back after a change by hand',
      about: 'By what it was.',
      expr: 'sum by (what) (increase(pullwright_adapter_repairs_total[1h]))',
    },
    {
      title: 'Versions that can be read',
      about: 'The most of any cluster.',
      expr: 'max(pullwright_pull_secret_enabled_versions)',
      legend: 'versions',
    },
    {
      title: 'Events of Sentinel',
      about: 'Undecided: an expression had no value.',
      expr: 'sum by (outcome) (increase(pullwright_sentinel_events_total[15m]))',
    },
    {
      title: 'Time since Sentinel went over all clusters',
      about: 'Minutes at most.',
      expr: 'time() - max(pullwright_sentinel_last_poll_timestamp_seconds)',
      legend: 'age',
      unit: 's',
    },
  ],
  'credential-provider': [
    {
      title: 'Pools without the configuration on every node',
      about: 'Zero once a change is rolled out.',
      expr: 'count(min by (pool) (pullwright_credential_provider_pool_rolled_out) == 0) or vector(0)',
      legend: 'pools',
    },
    {
      title: 'Nodes where it is not installed as configured',
      about: 'Of those with an installer.',
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
      about: 'As the kubelets count them.',
      expr: 'sum(rate(kubelet_credential_provider_plugin_errors_total{plugin_name="crio-credential-provider"}[5m]))',
      legend: 'failures',
      unit: 'ops',
    },
    {
      title: 'Oldest auth file that no pull has used',
      about: 'A file holds credentials until it is removed.',
      expr: 'max(pullwright_auth_file_oldest_seconds)',
      legend: 'age',
      unit: 's',
    },
  ],
  verify: [
    {
      title: 'Credentials that registries refuse',
      about: 'By reason.',
      expr: 'count by (reason) (max by (credential, reason) (pullwright_credential_refused))',
    },
    {
      title: 'Time until the next credential ends',
      about: 'Of those that have an end.',
      expr: 'min(pullwright_credential_expires_at) - time()',
      legend: 'time',
      unit: 's',
    },
    {
      title: 'Time since the last check of registries',
      about: 'A day at most.',
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
