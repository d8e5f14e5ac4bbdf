/**
 * The HyperFleet API on loopback: clusters, statuses, aggregation, pages, soft deletion. Requests with a field or a type that the
 * published document does not have are answered with 400, so that a wrong client cannot pass. `generation: 'old'` is version
 * 1.0.2 (POST), `'current'` is 1.0.25 (PUT).
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mirroredType } from '../../../runtime/pull-secret-adapter/plan.ts';
import { ingestStatus } from './status-ingest.ts';

interface Report {
  adapter: string;
  observed_generation: number;
  observed_time: string;
  conditions: { type: string; status: string; reason?: string; message?: string }[];
  data?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
}

interface StoredCluster {
  id: string;
  name: string;
  generation: number;
  spec: Record<string, unknown>;
  deletedTime?: string;
  reports: Map<string, Report>;
}

const REPORT_FIELDS = ['adapter', 'observed_generation', 'observed_time', 'conditions', 'data', 'metadata'];
const CONDITION_FIELDS = ['type', 'status', 'reason', 'message'];
const METADATA_TYPES: Readonly<Record<string, string>> = {
  job_name: 'string',
  job_namespace: 'string',
  attempt: 'number',
  started_time: 'string',
  completed_time: 'string',
  duration: 'string',
};

export class HyperfleetDouble {
  readonly clusters: Map<string, StoredCluster> = new Map();
  /** Every report that was stored, in order. */
  readonly reported: (Report & { readonly cluster: string; readonly at: number })[] = [];
  /** What was refused with 400: always a defect of the client. */
  readonly refused: string[] = [];
  readonly requests: string[] = [];
  required: readonly string[] = ['validation', 'dns', 'placement', 'pullsecret'];
  generation: 'old' | 'current' = 'current';
  delayMs = 0;
  /** Answers the next requests with these, `[status, body]`, before anything else. */
  readonly faults: (readonly [number, string])[] = [];
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<HyperfleetDouble> {
    const server = createServer();
    const double = new HyperfleetDouble(server);
    server.on('request', (request, response) => void double.#serve(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return double;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  add(id: string, spec: Record<string, unknown>, ready = true): StoredCluster {
    const cluster: StoredCluster = { id, name: id, generation: 1, spec, reports: new Map() };
    this.clusters.set(id, cluster);
    if (ready) this.dependenciesReady(id);
    return cluster;
  }

  dependenciesReady(id: string): void {
    const cluster = this.clusters.get(id);
    if (cluster === undefined) return;
    for (const adapter of ['validation', 'dns', 'placement']) {
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
      this.reported.filter((report) => report.cluster === id).at(-1)
    );
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const url = new URL(request.url ?? '/', 'http://double');
    this.requests.push(`${request.method} ${url.pathname}`);
    if (this.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.delayMs));
    const fault = this.faults.shift();
    if (fault !== undefined) {
      response.writeHead(fault[0], { 'content-type': 'text/html' }).end(fault[1]);
      return;
    }
    const [status, body] = this.#answer(request.method ?? '', url, Buffer.concat(chunks).toString());
    const type = status >= 400 ? 'application/problem+json' : 'application/json';
    response
      .writeHead(status, { 'content-type': type })
      .end(body === undefined ? undefined : JSON.stringify(body));
  }

  #answer(method: string, url: URL, text: string): readonly [number, unknown] {
    const path = /^\/api\/hyperfleet\/v1\/clusters(?:\/([^/]+))?(\/statuses)?$/.exec(url.pathname);
    if (path === null) return problem(404, 'HYPERFLEET-NTF-000', 'unknown endpoint');
    const [, id, statuses] = path;
    if (id === undefined)
      return [
        200,
        page(
          [...this.clusters.values()].map((one) => this.#shown(one)),
          url,
        ),
      ];
    const cluster = this.clusters.get(decodeURIComponent(id));
    if (statuses === undefined) return cluster === undefined ? gone() : [200, this.#shown(cluster)];
    if (method === 'GET')
      return cluster === undefined
        ? gone()
        : [200, page([...cluster.reports.values()].map(shownReport), url)];
    if (method !== (this.generation === 'old' ? 'POST' : 'PUT'))
      return problem(405, 'HYPERFLEET-VAL-000', 'method not allowed');
    return this.#ingest(cluster, text);
  }

  #ingest(cluster: StoredCluster | undefined, text: string): readonly [number, unknown] {
    const body = JSON.parse(text) as Report;
    const wrong = shapeFault(body);
    const existing = cluster?.reports.get(body.adapter);
    const answer =
      wrong === undefined
        ? ingestStatus(body, cluster, existing, new Date())
        : { status: 400 as const, detail: wrong };
    if (answer.status === 400) {
      this.refused.push(answer.detail ?? '');
      return problem(400, 'HYPERFLEET-VAL-001', answer.detail ?? '');
    }
    if (answer.status === 204) return [204, undefined];
    if (cluster === undefined) return gone();
    cluster.reports.set(body.adapter, body);
    this.reported.push({ ...body, cluster: cluster.id, at: performance.now() });
    const finalized = this.required
      .filter((name) => name === 'pullsecret')
      .every(
        (name) =>
          cluster.reports.get(name)?.observed_generation === cluster.generation &&
          holds(cluster.reports.get(name), 'Finalized'),
      );
    if (cluster.deletedTime !== undefined && finalized) this.clusters.delete(cluster.id);
    return [201, shownReport(body)];
  }

  #shown(cluster: StoredCluster): unknown {
    const time = '2026-01-01T00:00:00Z';
    const stamp = { created_time: time, last_transition_time: time };
    const mirrored = [...cluster.reports.values()].map((report) => ({
      type: mirroredType(report.adapter),
      status: holds(report, 'Available') ? 'True' : 'False',
      observed_generation: report.observed_generation,
      last_updated_time: report.observed_time,
      ...stamp,
    }));
    const current = [...cluster.reports.values()].filter(
      (report) => report.observed_generation === cluster.generation,
    );
    const done = this.required.every((name) =>
      current.some((report) => report.adapter === name && holds(report, 'Available')),
    );
    const oldest = current.map((report) => report.observed_time).sort()[0] ?? time;
    const reconciled = {
      status: done ? 'True' : 'False',
      observed_generation: cluster.generation,
      last_updated_time: oldest,
      ...stamp,
    };
    return {
      id: cluster.id,
      kind: 'Cluster',
      href: `/api/hyperfleet/v1/clusters/${cluster.id}`,
      name: cluster.name,
      labels: {},
      spec: cluster.spec,
      generation: cluster.generation,
      created_time: time,
      updated_time: time,
      created_by: 'a@example.com',
      updated_by: 'a@example.com',
      ...(cluster.deletedTime === undefined
        ? {}
        : { deleted_time: cluster.deletedTime, deleted_by: 'a@example.com' }),
      status: {
        conditions: [
          { type: 'Reconciled', ...reconciled },
          { type: 'LastKnownReconciled', ...reconciled },
          ...mirrored,
        ],
      },
    };
  }
}

function holds(report: Report | undefined, type: string): boolean {
  return report?.conditions.some((one) => one.type === type && one.status === 'True') === true;
}

function shownReport(report: Report): unknown {
  const { observed_time: time, conditions, ...rest } = report;
  return {
    ...rest,
    conditions: conditions.map((one) => ({ ...one, last_transition_time: time })),
    created_time: time,
    last_report_time: time,
  };
}

function page(items: readonly unknown[], url: URL): unknown {
  const number = Number(url.searchParams.get('page') ?? 1);
  const size = Math.min(Number(url.searchParams.get('size') ?? 20), 100);
  return { page: number, size, total: items.length, items: items.slice((number - 1) * size, number * size) };
}

function problem(status: number, code: string, detail: string): readonly [number, unknown] {
  return [status, { type: 'https://api.hyperfleet.io/errors/x', title: 'Error', status, detail, code }];
}

function gone(): readonly [number, unknown] {
  return problem(404, 'HYPERFLEET-NTF-002', 'cluster not found');
}

/** Fields and types of `AdapterStatusCreateRequest`. */
function shapeFault(body: Report): string | undefined {
  const extra = Object.keys(body).find((key) => !REPORT_FIELDS.includes(key));
  if (extra !== undefined) return `unknown field ${extra}`;
  for (const condition of body.conditions ?? []) {
    const other = Object.entries(condition).find(
      ([key, value]) => !CONDITION_FIELDS.includes(key) || typeof value !== 'string',
    );
    if (other !== undefined) return `bad condition field ${other[0]}`;
  }
  for (const [key, value] of Object.entries(body.metadata ?? {}))
    if (METADATA_TYPES[key] !== typeof value) return `bad metadata field ${key}`;
  return undefined;
}
