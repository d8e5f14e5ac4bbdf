/** Clusters and reports as the HyperFleet API keeps and shows them: aggregation, mirrored conditions, soft deletion. */

import { mirroredType } from '../../../runtime/pull-secret-adapter/plan.ts';
import type { ApiGeneration } from './hyperfleet-document.ts';
import { ingestStatus } from './status-ingest.ts';

export interface Report {
  adapter: string;
  observed_generation: number;
  observed_time: string;
  conditions: { type: string; status: string; reason?: string; message?: string }[];
  data?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
}

export interface StoredCluster {
  id: string;
  name: string;
  generation: number;
  spec: Record<string, unknown>;
  labels: Record<string, string>;
  createdTime: string;
  deletedTime?: string;
  reports: Map<string, Report>;
}

/** Others than the adapter under test. */
const OTHERS = ['validation', 'dns', 'placement'];

export class HyperfleetState {
  readonly clusters: Map<string, StoredCluster> = new Map();
  /** Every report that was stored, in order. */
  readonly reported: (Report & { readonly cluster: string; readonly at: number })[] = [];
  required: readonly string[] = [...OTHERS, 'pullsecret'];

  add(id: string, spec: Record<string, unknown>, ready = true): StoredCluster {
    const createdTime = new Date().toISOString();
    const cluster: StoredCluster = {
      id,
      name: id,
      generation: 1,
      spec,
      labels: {},
      createdTime,
      reports: new Map(),
    };
    this.clusters.set(id, cluster);
    if (ready) this.dependenciesReady(id);
    return cluster;
  }

  dependenciesReady(id: string, adapters: readonly string[] = OTHERS): void {
    const cluster = this.clusters.get(id);
    if (cluster === undefined) return;
    for (const adapter of adapters) {
      const conditions = ['Available', 'Applied', 'Health'].map((type) => ({ type, status: 'True' }));
      cluster.reports.set(adapter, {
        adapter,
        observed_generation: cluster.generation,
        observed_time: new Date().toISOString(),
        conditions,
      });
    }
  }

  patch(id: string, spec: Record<string, unknown>): void {
    const cluster = this.clusters.get(id);
    if (cluster === undefined) return;
    cluster.spec = spec;
    cluster.generation += 1;
    this.dependenciesReady(id);
  }

  delete(id: string): void {
    const cluster = this.clusters.get(id);
    if (cluster === undefined) return;
    cluster.deletedTime = new Date().toISOString();
    cluster.generation += 1;
    // The others tear down at the same time.
    for (const report of cluster.reports.values())
      if (report.adapter !== 'pullsecret') for (const one of report.conditions) one.status = 'False';
  }

  last(id: string): Report | undefined {
    return (
      this.clusters.get(id)?.reports.get('pullsecret') ??
      this.reported.findLast((report) => report.cluster === id)
    );
  }

  /** Status and, for 400, the detail. */
  ingest(id: string, body: Report): { readonly status: 201 | 204 | 400 | 404; readonly detail?: string } {
    const cluster = this.clusters.get(id);
    const existing = cluster?.reports.get(body.adapter);
    const answer = ingestStatus(body, cluster, existing, new Date());
    if (answer.status !== 201 || cluster === undefined) return answer;
    cluster.reports.set(body.adapter, body);
    this.reported.push({ ...body, cluster: id, at: performance.now() });
    const own = cluster.reports.get('pullsecret');
    const finalized = own?.observed_generation === cluster.generation && holds(own, 'Finalized');
    if (cluster.deletedTime !== undefined && finalized) this.clusters.delete(id);
    return answer;
  }
}

function holds(report: Report | undefined, type: string): boolean {
  return report?.conditions.some((one) => one.type === type && one.status === 'True') === true;
}

/** As the API answers with it. */
export function shownReport(report: Report): Record<string, unknown> {
  const { observed_time: time, conditions, ...rest } = report;
  return {
    ...rest,
    conditions: conditions.map((one) => ({ ...one, last_transition_time: time })),
    created_time: time,
    last_report_time: time,
  };
}

/** As the API answers with it. */
export function shownCluster(
  cluster: StoredCluster,
  generation: ApiGeneration,
  required: readonly string[],
): Record<string, unknown> {
  const { createdTime: time, deletedTime } = cluster;
  const conditions = conditionsOf(cluster, required);
  const reconciled = conditions[0];
  const old = {
    phase: reconciled?.['status'] === 'True' ? 'Ready' : 'NotReady',
    last_transition_time: time,
    observed_generation: cluster.generation,
    last_updated_time: reconciled?.['last_updated_time'],
  };
  return {
    id: cluster.id,
    kind: 'Cluster',
    href: `/api/hyperfleet/v1/clusters/${cluster.id}`,
    name: cluster.name,
    labels: cluster.labels,
    spec: cluster.spec,
    generation: cluster.generation,
    created_time: time,
    updated_time: time,
    created_by: 'a@example.com',
    updated_by: 'a@example.com',
    ...(deletedTime === undefined || generation === 'old'
      ? {}
      : { deleted_time: deletedTime, deleted_by: 'a@example.com' }),
    status: { ...(generation === 'old' ? old : {}), conditions },
  };
}

/** `Reconciled` first; one per required adapter that has reported. */
function conditionsOf(
  cluster: StoredCluster,
  required: readonly string[],
): readonly Record<string, unknown>[] {
  const stamp = { created_time: cluster.createdTime, last_transition_time: cluster.createdTime };
  const reports = [...cluster.reports.values()].filter((report) => required.includes(report.adapter));
  const mirrored = reports.map((report) => ({
    type: mirroredType(report.adapter),
    status: holds(report, 'Available') ? 'True' : 'False',
    observed_generation: report.observed_generation,
    last_updated_time: report.observed_time,
    ...stamp,
  }));
  const current = reports.filter((report) => report.observed_generation === cluster.generation);
  const done = required.every((name) =>
    current.some((report) => report.adapter === name && holds(report, 'Available')),
  );
  const reconciled = {
    status: done ? 'True' : 'False',
    observed_generation: cluster.generation,
    last_updated_time: current.map((report) => report.observed_time).sort()[0] ?? cluster.createdTime,
    ...stamp,
  };
  return [{ type: 'Reconciled', ...reconciled }, { type: 'LastKnownReconciled', ...reconciled }, ...mirrored];
}
