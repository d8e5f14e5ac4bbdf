/** Metrics with the names of controller-runtime, client-go and its workqueue, so that existing dashboards work. */

import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Logger } from '../core/logger.ts';
import { defined } from '../core/record.ts';
import { closeServer, type Page, type Pages, servePages } from '../http/serve.ts';
import type { Sample } from './contract.ts';
import type { SeenCluster } from './hosted-status.ts';

/** An increment of a counter. */
export interface CounterSample {
  /** Ends with `_total`. */
  readonly name: string;
  readonly help: string;
  /** The label names must be the same for every sample. */
  readonly labels: Readonly<Record<string, string>>;
  /** @default {1} */
  readonly by?: number;
}

export type ReconcileResult = 'success' | 'error' | 'requeue_after';

/** Creates metrics in a new registry, without global state. */
export type Metrics = ReturnType<typeof createMetrics>;

const HANDLER_SECONDS = 'pullwright_webhook_handler_seconds';
const HANDLER_BUCKETS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1];
const RECONCILE_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const QUEUE_BUCKETS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1000];

type Makers = ReturnType<typeof makersIn>;

/** Makes metrics in `registry`. @param collect sets the samples of a gauge at each scrape */
function makersIn(registry: Registry) {
  const registers = [registry];
  return {
    counter: (name: string, help: string, labelNames: string[]) =>
      new Counter({ name, help, labelNames, registers }),
    gauge: (name: string, help: string, labelNames: string[], collect?: (this: Gauge) => void) =>
      new Gauge({ name, help, labelNames, registers, ...defined({ collect }) }),
    histogram: (name: string, help: string, labelNames: string[], buckets: number[]) =>
      new Histogram({ name, help, labelNames, buckets, registers }),
  };
}

export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const makers = makersIn(registry);
  const { counter, gauge, histogram } = makers;

  const controller = ['controller'];
  const total = counter('controller_runtime_reconcile_total', 'Reconciliations per controller', [
    'controller',
    'result',
  ]);
  const errors = counter(
    'controller_runtime_reconcile_errors_total',
    'Reconciliation errors per controller',
    controller,
  );
  const terminal = counter(
    'controller_runtime_terminal_reconcile_errors_total',
    'Terminal reconciliation errors per controller',
    controller,
  );
  const seconds = histogram(
    'controller_runtime_reconcile_time_seconds',
    'Duration per reconciliation',
    controller,
    RECONCILE_BUCKETS,
  );
  const workers = gauge('controller_runtime_active_workers', 'Active workers per controller', controller);
  const requests = counter('rest_client_requests_total', 'HTTP requests by status code, method and host', [
    'code',
    'method',
    'host',
  ]);
  const leader = gauge('leader_election_master_status', '1 while this process is the leader', ['name']);
  const hosted = gauge('pullwright_hosted_clusters', 'Hosted clusters by state', ['state']);
  const writes = counter('pullwright_applied_objects_total', 'Objects written by verb', [
    'controller',
    'verb',
  ]);

  const label = ['webhook', 'outcome'];
  const admissions = histogram(HANDLER_SECONDS, 'Duration of an admission handler', label, HANDLER_BUCKETS);
  return {
    reconciled: (name: string, result: ReconcileResult, time: number): void => {
      total.inc({ controller: name, result });
      seconds.observe({ controller: name }, time);
    },
    failed: (name: string, isTerminal: boolean): void => {
      errors.inc({ controller: name });
      if (isTerminal) terminal.inc({ controller: name });
    },
    activeWorkers: (name: string, change: 1 | -1) => workers.inc({ controller: name }, change),
    request: (seen: Readonly<Record<'code' | 'method' | 'host', string>>) => requests.inc({ ...seen }),
    leader: (name: string, isLeader: boolean) => leader.set({ name }, isLeader ? 1 : 0),
    hostedClusters: (counts: Readonly<Record<SeenCluster['state'], number>>): void => {
      for (const [state, count] of Object.entries(counts)) hosted.set({ state }, count);
    },
    applied: (name: string, verb: string) => writes.inc({ controller: name, verb }),
    /** Observes the duration of an admission request. */
    admitted: (webhook: string, outcome: string, time: number) =>
      admissions.observe({ webhook, outcome }, time),
    /** Increments a counter, which is registered on first use. */
    count: sampleCounters(makers),
    /** Replaces the samples of `source`. */
    samples: sampleGauges(makers),
    /** Registers a queue until `end` is called. Its depth is read on every scrape. */
    queue: queueMetrics(makers),
    /** The exposition text and its content type. */
    render: async () => ({ text: await registry.metrics(), contentType: registry.contentType }),
  };
}

function sampleCounters({ counter }: Makers): (sample: CounterSample) => void {
  const counters = new Map<string, Counter>();
  return ({ name, help, labels, by = 1 }) => {
    const found = counters.get(name) ?? counter(name, help, Object.keys(labels));
    counters.set(name, found);
    found.inc({ ...labels }, by);
  };
}

/** Gauges of changing sources; samples with equal labels are summed. */
function sampleGauges({ gauge }: Makers): (source: string, samples: readonly Sample[]) => void {
  const bySource = new Map<string, readonly Sample[]>();
  const gauges = new Set<string>();
  const define = ({ name, help, labels }: Sample): void => {
    if (gauges.has(name)) return;
    gauges.add(name);
    gauge(name, help, Object.keys(labels ?? {}), function collect() {
      this.reset();
      for (const samples of bySource.values())
        for (const sample of samples) if (sample.name === name) this.inc({ ...sample.labels }, sample.value);
    });
  };
  return (source, samples) => {
    if (samples.length === 0) bySource.delete(source);
    else bySource.set(source, samples);
    samples.forEach(define);
  };
}

function queueMetrics({ counter, gauge, histogram }: Makers) {
  const label = ['name'];
  const adds = counter('workqueue_adds_total', 'Adds handled by workqueue', label);
  const retries = counter('workqueue_retries_total', 'Retries handled by workqueue', label);
  const waited = histogram(
    'workqueue_queue_duration_seconds',
    'How long an item stays in workqueue before being processed',
    label,
    QUEUE_BUCKETS,
  );
  const worked = histogram(
    'workqueue_work_duration_seconds',
    'How long processing an item takes',
    label,
    QUEUE_BUCKETS,
  );
  const readers = new Map<() => number, string>();
  gauge('workqueue_depth', 'Current depth of workqueue', label, function collect() {
    this.reset();
    for (const [read, name] of readers) this.inc({ name }, read());
  });
  return (name: string, read: () => number) => {
    readers.set(read, name);
    return {
      added: () => adds.inc({ name }),
      retried: () => retries.inc({ name }),
      started: (seconds: number) => waited.observe({ name }, seconds),
      finished: (seconds: number) => worked.observe({ name }, seconds),
      end: () => readers.delete(read),
    };
  };
}

// HTTP servers of a pod: `/healthz` and `/readyz` on one port, `/metrics` on another or the same.

/** Returns the problem; undefined if healthy. */
export type Check = () => string | undefined;

/** The served pages. A failed check returns 503 with its problem. */
export interface Served {
  readonly ready: Check;
  readonly metrics: () => Promise<Page>;
  /** Logs each page set and its port. */
  readonly log?: Logger;
}

/**
 * Serves probes and metrics on separate ports or on the same one; port 0 selects a free port.
 *
 * @returns closes all servers
 */
export async function servePorts(
  { health, metrics }: { readonly health: number | undefined; readonly metrics: number | undefined },
  served: Served,
): Promise<() => Promise<unknown>> {
  const ready = (): Page => {
    const problem = served.ready();
    return problem === undefined ? { text: 'ok' } : { status: 503, text: problem };
  };
  const probes: Pages = new Map([
    // A stuck process does not respond.
    ['/healthz', () => ({ text: 'ok' })],
    ['/readyz', ready],
  ]);
  const samples: Pages = new Map([['/metrics', served.metrics]]);
  const servers: Server[] = [];
  const listen = async (serves: string, port: number | undefined, pages: Pages): Promise<void> => {
    if (port === undefined) return;
    const server = await servePages(pages, port);
    servers.push(server);
    served.log?.info('listening', { serves, port: (server.address() as AddressInfo).port });
  };
  if (health === metrics && health !== 0)
    await listen('health and metrics', health, new Map([...probes, ...samples]));
  else {
    await listen('health', health, probes);
    await listen('metrics', metrics, samples);
  }
  return () => Promise.all(servers.map(closeServer));
}
