/**
 * The adapter as a process: every replica consumes events; the leader alone watches Jobs and, slowly, sweeps the list of clusters
 * for missed events.
 */

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeError } from '../../core/errors.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { Logger } from '../../core/logger.ts';
import { type Metrics, servePorts } from '../../engine/metrics.ts';
import { type QueueObserver, systemQueueClock, WorkQueue } from '../../engine/queue.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Informer, type InformerSink } from '../../kube/informer.ts';
import { LeaderElection } from '../../kube/lease.ts';
import { systemClock } from '../../node/clock.ts';
import type { Consumer, Handler } from '../broker/broker.ts';
import { CLUSTER_ID } from '../cloud-event.ts';
import type { HyperfleetCluster } from '../cluster.ts';
import type { HyperfleetApi } from '../hyperfleet-api.ts';
import { ADAPTER, ADAPTER_LABEL, CLUSTER_LABEL } from '../names.ts';
import type { AdapterSettings } from '../options.ts';
import { mirroredType } from '../plan.ts';
import { labelReporter } from './effects.ts';
import { EVENT_OUTCOMES, type EventOutcome, eventHandler } from './handle-event.ts';
import { SecretMetrics } from './metrics.ts';
import { jobIdentity } from './observe.ts';
import { type PassContext, type PassResult, reconcileCluster } from './reconcile-cluster.ts';

// The queue of clusters: the engine's work queue with workers, and with promises for callers that wait. A call during a pass waits for
// the next pass, which all waiting callers share: a thousand events of one cluster are two passes.

/** What a pass leaves for the queue. */
export interface PassEnd {
  readonly requeueAfterMs?: number;
  /** Does not reject waiting requests; retried with back-off. */
  readonly fault?: unknown;
}

/** Why a cluster was queued. An event wins, then the latest other trigger, then the requeue time of the last pass. */
export type FoundBy = 'event' | 'sweep' | 'job' | 'record' | 'time';

export interface PassReason {
  readonly by: FoundBy;
  /** Of the event. */
  readonly traceparent: string | undefined;
}

export interface ClusterQueueOptions {
  /** One pass; may fail. */
  readonly reconcile: (id: string, why: PassReason) => Promise<PassEnd>;
  /** Passes at the same time. @default {20} */
  readonly concurrency?: number;
  /** A background pass failed and is retried; `failures` counts the failures in a row. */
  readonly onError: (id: string, error: unknown, failures: number) => void;
  readonly observer?: QueueObserver;
}

interface Asked {
  /** Shared by all waiting requests. */
  readonly waiter: PromiseWithResolvers<void>;
  /** Of the latest request that has one. */
  traceparent?: string;
}

export class ClusterQueue {
  readonly #options: ClusterQueueOptions;
  readonly #queue: WorkQueue;
  readonly #asked = new Map<string, Asked>();
  readonly #hinted = new Map<string, FoundBy>();
  readonly #workers: readonly Promise<void>[];

  constructor(options: ClusterQueueOptions) {
    this.#options = options;
    this.#queue = new WorkQueue(systemQueueClock, options.observer);
    const { concurrency = 20 } = options;
    this.#workers = Array.from({ length: concurrency }, () => this.#work());
  }

  /** Clusters that are due, and have no worker. */
  get depth(): number {
    return this.#queue.depth;
  }

  /** Settles with a pass that began after this call. */
  ask(id: string, traceparent?: string): Promise<void> {
    const asked: Asked = this.#asked.get(id) ?? { waiter: Promise.withResolvers<void>() };
    if (traceparent !== undefined) asked.traceparent = traceparent;
    this.#asked.set(id, asked);
    this.#queue.add(id);
    return asked.waiter.promise;
  }

  /** Queues a pass that no caller waits for; one that fails is retried until one succeeds. */
  hint(id: string, by: FoundBy): void {
    this.#hinted.set(id, by);
    this.#queue.add(id);
  }

  /** Ends the queue and waits for what runs. */
  async close(): Promise<void> {
    this.#queue.close();
    for (const { waiter } of this.#asked.values()) waiter.reject(new Error('closed'));
    this.#asked.clear();
    await Promise.all(this.#workers);
  }

  async #work(): Promise<void> {
    for (;;) {
      const id = await this.#queue.next();
      if (id === undefined) return;
      await this.#run(id);
      this.#queue.done(id);
    }
  }

  async #run(id: string): Promise<void> {
    const { waiter, traceparent } = this.#asked.get(id) ?? {};
    const by = waiter !== undefined ? 'event' : (this.#hinted.get(id) ?? 'time');
    this.#asked.delete(id);
    this.#hinted.delete(id);
    try {
      const { requeueAfterMs, fault } = await this.#options.reconcile(id, { by, traceparent });
      waiter?.resolve();
      if (fault !== undefined) return this.#again(id, fault);
      this.#queue.forget(id);
      if (requeueAfterMs !== undefined) this.#queue.addAfter(id, requeueAfterMs);
    } catch (error) {
      // The waiting request retries, or requeues its message.
      if (waiter === undefined) this.#again(id, error);
      else waiter.reject(error);
    }
  }

  #again(id: string, error: unknown): void {
    this.#queue.addRateLimited(id);
    this.#options.onError(id, error, this.#queue.failuresOf(id));
  }
}

export interface AdapterProcess {
  readonly api: HyperfleetApi;
  readonly kube: KubeClient;
  readonly settings: AdapterSettings;
  readonly consume: (handler: Handler) => Promise<Consumer>;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly signal: AbortSignal;
  readonly instance: string;
  readonly ports: { readonly health: number | undefined; readonly metrics: number | undefined };
}

const NAME = 'pull-secret-adapter';

/** Runs until the signal. @returns the exit code */
export async function runAdapter(process: AdapterProcess): Promise<number> {
  const { logger, signal, metrics } = process;
  const secrets = new SecretMetrics();
  const onRepair = labelReporter(process);
  const clusters: ClusterQueue = new ClusterQueue({
    reconcile: (id, why) => measured(process, { secrets, onRepair }, id, why),
    concurrency: process.settings.concurrency,
    observer: metrics.queue(NAME, () => clusters.depth),
    onError: (id, error, failures) =>
      logger.warn('A cluster could not be reconciled, and is tried again', {
        cluster: id,
        error: describeError(error),
        failures,
      }),
  });
  const consumer = await process.consume(
    eventHandler({
      ask: (id, traceparent) => clusters.ask(id, traceparent),
      logger,
      count: eventCounter(metrics),
      pause: (ms, superseded) => sleep(ms, undefined, { signal: AbortSignal.any([signal, superseded]) }),
    }),
  );
  const closeServers = await servePorts(process.ports, {
    ready: () => (consumer.connected() ? undefined : 'the broker is not connected'),
    metrics: () => {
      metrics.samples(`${NAME}-secrets`, secrets.samples());
      return metrics.render();
    },
  });
  logger.info('started', { adapter: process.settings.adapterName });
  const lost = await leadWhenElected(process, clusters, secrets);
  logger.info('stopping', { reason: lost ? 'the lease was lost' : 'signal' });
  await consumer.close();
  await clusters.close();
  await closeServers();
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

/** True when the lease was lost. */
async function leadWhenElected(
  process: AdapterProcess,
  clusters: ClusterQueue,
  secrets: SecretMetrics,
): Promise<boolean> {
  const { signal, settings, logger } = process;
  const election = new LeaderElection({
    client: process.kube,
    namespace: settings.namespace,
    name: 'pullwright-pull-secret-adapter',
    identity: `${process.instance}_${randomUUID()}`,
    clock: systemClock,
    leaseSeconds: settings.leaseSeconds,
    onError: ({ code, message }) => logger.warn('lease not renewed', { code, problem: message }),
  });
  if (!(await election.acquire(signal))) return false;
  logger.info('this process leads');
  const stop = new AbortController();
  // Only the leader sees every cluster, so only it reports their state.
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

/** A changed Job queues its cluster at once; every list queues all, so that no change between watches is missed. */
function watchJobs(process: AdapterProcess, clusters: ClusterQueue): Informer {
  return watch(process, { apiVersion: 'batch/v1', kind: 'Job' }, `${ADAPTER_LABEL}=${ADAPTER}`, (job) => {
    const { clusterId } = jobIdentity(job);
    if (clusterId !== '') clusters.hint(clusterId, 'job');
  });
}

/** A changed record may hold a new request for a check or a revocation. */
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
    await sleep(process.settings.sweepSeconds * 1000, undefined, { signal }).catch(() => undefined);
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
  for await (const page of api.clusters(''))
    for (const cluster of page) {
      seen.set(cluster.id, ownCondition(cluster, settings)?.reason ?? undefined);
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
