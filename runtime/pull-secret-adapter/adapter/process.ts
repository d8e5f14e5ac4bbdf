/**
 * The adapter as a process: every replica consumes events; the leader alone watches Jobs and, slowly, goes over the list of clusters
 * for what no event has brought.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Consumer, Handler } from '../../brokers/broker.ts';
import { systemClock } from '../../host/clock.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Informer, type InformerSink } from '../../kube/informer.ts';
import { LeaderElection } from '../../kube/lease.ts';
import { describeError } from '../../rules/errors.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { serveProbes } from '../../telemetry/probes.ts';
import type { HyperfleetCluster } from '../cluster.ts';
import { CLUSTER_ID } from '../cluster-event.ts';
import type { HyperfleetApi } from '../hyperfleet-api.ts';
import { ADAPTER, ADAPTER_LABEL, CLUSTER_LABEL } from '../names.ts';
import { mirroredType } from '../plan.ts';
import { ClusterQueue, type PassReason } from './cluster-queue.ts';
import { EVENT_OUTCOMES, type EventOutcome, eventHandler } from './handle-event.ts';
import { labelReporter } from './label-report.ts';
import { jobIdentity } from './observe.ts';
import { type PassContext, type PassResult, reconcileCluster } from './reconcile-cluster.ts';
import { SecretMetrics } from './secret-metrics.ts';
import type { AdapterSettings } from './settings.ts';

export interface AdapterProcess {
  readonly api: HyperfleetApi;
  readonly kube: KubeClient;
  readonly settings: AdapterSettings;
  readonly consume: (handler: Handler) => Promise<Consumer>;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly signal: AbortSignal;
  /** Pause between two goes over the list of clusters, in seconds. Never below a minute by default: see `docs`. */
  readonly sweepSeconds: number;
  readonly leaseSeconds: number;
  readonly instance: string;
  readonly concurrency: number;
  readonly ports: { readonly health: number | undefined; readonly metrics: number | undefined };
}

const NAME = 'pull-secret-adapter';

/** Runs until the signal. @returns the exit code */
export async function runAdapter(process: AdapterProcess): Promise<number> {
  const { logger, signal, metrics } = process;
  const secrets = new SecretMetrics();
  const onRepair = labelReporter(process);
  const clusters = new ClusterQueue({
    reconcile: (id, why) => measured(process, { secrets, onRepair }, id, why),
    concurrency: process.concurrency,
    observer: {
      added: () => metrics.queue.added(NAME),
      retried: () => metrics.queue.retried(NAME),
      started: (seconds) => metrics.queue.started(NAME, seconds),
      finished: (seconds) => metrics.queue.finished(NAME, seconds),
    },
    onError: (id, error, failures) =>
      logger.warn('A cluster could not be reconciled, and is tried again', {
        cluster: id,
        error: describeError(error),
        failures,
      }),
  });
  metrics.queue.depth(NAME, () => clusters.depth);
  const consumer = await process.consume(
    eventHandler({
      ask: (id, traceparent) => clusters.ask(id, traceparent),
      logger,
      count: eventCounter(metrics),
      pause: (ms, superseded) => sleep(ms, undefined, { signal: AbortSignal.any([signal, superseded]) }),
    }),
  );
  const servers = await startServers(process, consumer, secrets);
  logger.info('started', { adapter: process.settings.adapterName });
  const lost = await leadWhenElected(process, clusters, secrets);
  logger.info('stopping', { reason: lost ? 'the lease was lost' : 'signal' });
  await consumer.close();
  await clusters.close();
  await Promise.all(servers.map((server) => server.close()));
  return lost && !signal.aborted ? 1 : 0;
}

interface Reports {
  readonly secrets: SecretMetrics;
  readonly onRepair: NonNullable<PassContext['onRepair']>;
}

async function measured(
  process: AdapterProcess,
  { secrets, onRepair }: Reports,
  id: string,
  { by, traceparent }: PassReason,
): Promise<PassResult> {
  const { logger, metrics } = process;
  const trace = traceparent === undefined ? {} : { traceparent };
  const began = performance.now();
  const took = (): number => (performance.now() - began) / 1000;
  try {
    const result = await reconcileCluster(
      id,
      { ...process, ...trace, now: () => new Date(), onRepair },
      by === 'event',
    );
    secrets.reconciled(id, result);
    const plain = result.requeueAfterMs === undefined ? 'success' : 'requeue_after';
    metrics.reconciled(NAME, result.fault === undefined ? plain : 'error', took());
    logger[result.reported ? 'info' : 'debug']('reconciled', {
      cluster: id,
      phase: result.phase,
      reason: result.reason,
      by,
      ...trace,
    });
    return result;
  } catch (error) {
    metrics.reconciled(NAME, 'error', took());
    throw error;
  }
}

/** Every outcome is there from the start: an alert about the first dead letter needs the zero before it. */
function eventCounter(metrics: Metrics): (outcome: EventOutcome) => void {
  const count = (outcome: EventOutcome, by: number): void =>
    metrics.count({
      name: 'pullwright_adapter_events_total',
      help: 'Events by what became of them',
      labels: { outcome },
      by,
    });
  for (const outcome of EVENT_OUTCOMES) count(outcome, 0);
  return (outcome) => count(outcome, 1);
}

async function startServers(
  process: AdapterProcess,
  consumer: Consumer,
  secrets: SecretMetrics,
): Promise<{ close(): Promise<void> }[]> {
  const { health, metrics } = process.ports;
  const checks = {
    '/healthz': () => undefined,
    '/readyz': () => (consumer.connected() ? undefined : 'the broker is not connected'),
  };
  const servers = [];
  if (health !== undefined) servers.push(await serveProbes({ port: health, checks }));
  if (metrics !== undefined)
    servers.push(
      await serveProbes({
        port: metrics,
        metrics: () => {
          process.metrics.samples(`${NAME}-secrets`, secrets.samples());
          return process.metrics.render();
        },
      }),
    );
  return servers;
}

/** True when the lease was lost. */
async function leadWhenElected(
  process: AdapterProcess,
  clusters: ClusterQueue,
  secrets: SecretMetrics,
): Promise<boolean> {
  const { signal, leaseSeconds: seconds, logger } = process;
  const election = new LeaderElection({
    client: process.kube,
    namespace: process.settings.namespace,
    name: 'pullwright-pull-secret-adapter',
    identity: `${process.instance}_${randomUUID()}`,
    clock: systemClock,
    leaseSeconds: seconds,
    renewSeconds: (seconds * 2) / 3,
    retrySeconds: (seconds * 2) / 15,
    onError: ({ code, message }) => logger.warn('lease not renewed', { code, problem: message }),
  });
  if (!(await election.acquire(signal))) return false;
  logger.info('this process leads');
  const stop = new AbortController();
  // Only who leads hears of everything, so only it can say how things are.
  secrets.lead(true);
  const informers = [watchJobs(process, clusters), watchRecords(process, clusters)];
  const sweeping = sweep(process, clusters, secrets, AbortSignal.any([signal, stop.signal]));
  await election.keep(signal);
  stop.abort();
  secrets.lead(false);
  for (const informer of informers) informer.stop();
  await sweeping;
  if (signal.aborted) await election.release().catch(() => undefined);
  return !signal.aborted;
}

/** A Job that changes is looked at at once; all of them after every list, so that nothing that happened in between is missed. */
function watchJobs(process: AdapterProcess, clusters: ClusterQueue): Informer {
  return watch(process, { apiVersion: 'batch/v1', kind: 'Job' }, `${ADAPTER_LABEL}=${ADAPTER}`, (job) => {
    const { clusterId } = jobIdentity(job);
    if (clusterId !== '') clusters.hint(clusterId, 'job');
  });
}

/** A record that changes: somebody asks for what is stored to be looked at. */
function watchRecords(process: AdapterProcess, clusters: ClusterQueue): Informer {
  const selector = `${ADAPTER_LABEL}=${ADAPTER},hyperfleet.io/resource-type=record`;
  return watch(process, { apiVersion: 'v1', kind: 'ConfigMap' }, selector, (record) => {
    const id = record.metadata.labels?.[CLUSTER_LABEL] ?? '';
    if (CLUSTER_ID.test(id)) clusters.hint(id, 'record');
  });
}

function watch(
  { kube, settings, logger }: AdapterProcess,
  kind: { readonly apiVersion: string; readonly kind: string },
  labelSelector: string,
  hint: (object: KubeObject) => void,
): Informer {
  const sink: InformerSink = {
    replace: (objects) => objects.forEach(hint),
    set: hint,
    delete: hint,
    state: (state) => {
      if (state.is === 'failing')
        logger.warn('Objects cannot be watched', { kind: kind.kind, error: describeError(state.error) });
    },
  };
  const informer = new Informer({
    client: kube,
    collection: { ...kind, namespace: settings.namespace },
    selector: { labelSelector },
    sink,
  });
  informer
    .run()
    .catch((error: unknown) =>
      logger.error('Objects are no longer watched', { kind: kind.kind, error: describeError(error) }),
    );
  return informer;
}

/** Goes over all clusters: a pass that finds nothing new reports nothing. */
async function sweep(
  process: AdapterProcess,
  clusters: ClusterQueue,
  secrets: SecretMetrics,
  signal: AbortSignal,
): Promise<void> {
  // Each has a pass once under this leader, which then knows when it is due for the next one.
  const known = new Set<string>();
  while (!signal.aborted) {
    try {
      await goOver(process, clusters, secrets, known);
    } catch (error) {
      process.logger.warn('The clusters could not be listed', { error: describeError(error) });
    }
    await sleep(process.sweepSeconds * 1000, undefined, { signal }).catch(() => undefined);
  }
}

async function goOver(
  { api, settings }: Pick<AdapterProcess, 'api' | 'settings'>,
  clusters: ClusterQueue,
  secrets: SecretMetrics,
  known: Set<string>,
): Promise<void> {
  const before = secrets.clusters;
  const seen = new Map<string, string | undefined>();
  for await (const cluster of api.clusters('')) {
    seen.set(cluster.id, ownCondition(cluster, settings)?.reason);
    if (known.has(cluster.id) && !wantsPass(cluster, settings)) continue;
    known.add(cluster.id);
    clusters.hint(cluster.id, 'sweep');
  }
  for (const id of known) if (!seen.has(id)) known.delete(id);
  secrets.listed(seen, before);
}

function ownCondition(
  cluster: HyperfleetCluster,
  settings: Pick<AdapterSettings, 'adapterName'>,
): HyperfleetCluster['conditions'][number] | undefined {
  const type = mirroredType(settings.adapterName);
  return cluster.conditions.find((condition) => condition.type === type);
}

/** Whatever is not known to be in order; what is in order has its time in the queue. @param cluster an item of the list */
export function wantsPass(
  cluster: HyperfleetCluster,
  settings: Pick<AdapterSettings, 'adapterName'>,
): boolean {
  if (cluster.deleting) return true;
  const own = ownCondition(cluster, settings);
  return own?.status !== 'True' || own.observed_generation !== cluster.generation;
}
