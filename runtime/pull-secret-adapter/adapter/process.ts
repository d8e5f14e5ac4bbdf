/**
 * The adapter as a process: every replica consumes events. Only the leader watches Jobs and records, and periodically lists all
 * clusters to find missed events.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { backOffMs } from '../../core/back-off.ts';
import { describeError } from '../../core/errors.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { scalarText } from '../../core/record.ts';
import type { Sample } from '../../engine/contract.ts';
import { type Metrics, servePorts } from '../../engine/metrics.ts';
import { type QueueObserver, systemQueueClock, WorkQueue } from '../../engine/queue.ts';
import type { KubeClient } from '../../kube/client.ts';
import { EventRecorder } from '../../kube/events.ts';
import { Informer } from '../../kube/informer.ts';
import { LeaderElection } from '../../kube/lease.ts';
import { systemClock } from '../../node/clock.ts';
import { type Consumer, codeOf, type Handler } from '../broker/broker.ts';
import type { Program } from '../broker/flags.ts';
import { ADAPTER, ADAPTER_LABEL, CLUSTER_LABEL } from '../names.ts';
import type { AdapterSettings } from '../options.ts';
import { CLUSTER_ID } from '../places.ts';
import { mirroredType } from '../plan.ts';
import { type AskEnd, EVENT_OUTCOMES, type EventOutcome, eventHandler } from './handle-event.ts';
import { jobIdentity } from './observe.ts';
import { type PassContext, type PassResult, reconcileCluster } from './reconcile-cluster.ts';

// The queue of clusters: the engine's work queue with workers, and with promises for waiting events. An event during a pass waits
// for the next pass, so a thousand events of one cluster cause two passes.

/** Why a cluster was queued. An event wins, then the latest other trigger, then the requeue time of the last pass. */
type FoundBy = 'event' | 'sweep' | 'job' | 'record' | 'time';

interface PassReason {
  readonly by: FoundBy;
  /** Trace context of the event. */
  readonly traceparent: string | undefined;
}

export interface ClusterQueueOptions {
  /** Runs one pass; may reject. After a `fault` the event is acknowledged, and the pass is retried with back-off. */
  readonly reconcile: (id: string, why: PassReason) => Promise<Pick<PassResult, 'requeueAfterMs' | 'fault'>>;
  /** Number of workers. @default {20} */
  readonly concurrency?: number;
  /** Called when a pass failed; `failures` counts consecutive failures. */
  readonly onError: (id: string, error: unknown, failures: number, traceparent?: string) => void;
  readonly observer?: QueueObserver;
  /** Failed passes after which an event is rejected. @default {5} */
  readonly tries?: number;
  /** Pause after this number of failed passes for an event. @default {doubles from 1 s to 30 s} */
  readonly pauseMs?: (failures: number) => number;
}

/** The newest event of a cluster, until its pass has finished. */
interface Asked {
  readonly waiter: PromiseWithResolvers<AskEnd>;
  readonly traceparent: string | undefined;
  failures: number;
  /** When the next retry is due. */
  notBefore: number;
}

const BACK_OFF = { firstMs: 1000, maxMs: 30_000 } as const;

export class ClusterQueue {
  readonly #options: ClusterQueueOptions;
  readonly #queue: WorkQueue;
  readonly #asked = new Map<string, Asked>();
  readonly #hinted = new Map<string, FoundBy>();
  readonly #workers: readonly Promise<void>[];
  #closed = false;

  constructor(options: ClusterQueueOptions) {
    this.#options = options;
    this.#queue = new WorkQueue(systemQueueClock, options.observer);
    const { concurrency = 20 } = options;
    this.#workers = Array.from({ length: concurrency }, () => this.#work());
  }

  /** Number of due clusters without a worker. */
  get depth(): number {
    return this.#queue.depth;
  }

  /**
   * Queues a pass for an event. Resolves after a pass that started after this call, or when a newer event of the cluster arrives.
   * So a failing cluster occupies one message of the broker's prefetch, however many events it has.
   *
   * @returns rejects with the last error when all tries have failed
   */
  ask(id: string, traceparent?: string): Promise<AskEnd> {
    if (this.#closed) return Promise.resolve('again');
    const before = this.#asked.get(id);
    before?.waiter.resolve('superseded');
    const waiter = Promise.withResolvers<AskEnd>();
    this.#asked.set(id, {
      waiter,
      traceparent: traceparent ?? before?.traceparent,
      failures: 0,
      notBefore: 0,
    });
    this.#queue.add(id);
    return waiter.promise;
  }

  /** Queues a pass without a waiting caller; retried until it succeeds. */
  hint(id: string, by: FoundBy): void {
    this.#hinted.set(id, by);
    this.#queue.add(id);
  }

  /** Stops the workers and waits for running passes. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#queue.close();
    await Promise.all(this.#workers);
    for (const { waiter } of this.#asked.values()) waiter.resolve('again');
  }

  async #work(): Promise<void> {
    for (let id = await this.#queue.next(); id !== undefined; id = await this.#queue.next()) {
      await this.#run(id);
      this.#queue.done(id);
    }
  }

  async #run(id: string): Promise<void> {
    const asked = this.#asked.get(id);
    const hinted = this.#hinted.get(id);
    const pause = (asked?.notBefore ?? 0) - performance.now();
    // During the pause, only a hint triggers a pass.
    if (pause > 0 && hinted === undefined) return this.#queue.addAfter(id, pause);
    this.#hinted.delete(id);
    try {
      const { requeueAfterMs, fault } = await this.#options.reconcile(id, {
        by: asked === undefined ? (hinted ?? 'time') : 'event',
        traceparent: asked?.traceparent,
      });
      asked?.waiter.resolve('done');
      this.#drop(id, asked);
      if (fault !== undefined) return this.#again(id, fault);
      this.#queue.forget(id);
      if (requeueAfterMs !== undefined) this.#queue.addAfter(id, requeueAfterMs);
    } catch (error) {
      if (hinted !== undefined) this.#hinted.set(id, hinted);
      if (asked === undefined) this.#again(id, error);
      else this.#askAgain(id, asked, error);
    }
  }

  /** Retries an event after a failed pass. A newer event that arrived meanwhile is already queued. */
  #askAgain(id: string, asked: Asked, error: unknown): void {
    const { tries = 5, pauseMs = (failures) => backOffMs(BACK_OFF, failures - 1, Math.random()) } =
      this.#options;
    const now = performance.now();
    // A pass triggered by a hint during the pause is not counted.
    if (now >= asked.notBefore) {
      asked.failures += 1;
      asked.notBefore = now + pauseMs(asked.failures);
    }
    this.#options.onError(id, error, asked.failures, asked.traceparent);
    if (asked.failures < tries) return this.#queue.addAfter(id, asked.notBefore - now);
    asked.waiter.reject(error);
    this.#drop(id, asked);
    if (this.#hinted.has(id)) this.#queue.addRateLimited(id);
  }

  #drop(id: string, asked: Asked | undefined): void {
    if (this.#asked.get(id) === asked) this.#asked.delete(id);
  }

  #again(id: string, error: unknown): void {
    this.#queue.addRateLimited(id);
    this.#options.onError(id, error, this.#queue.failuresOf(id));
  }
}

interface AdapterProcess extends Readonly<Omit<Program, 'broker'>> {
  readonly kube: KubeClient;
  readonly settings: AdapterSettings;
  readonly consume: (handler: Handler) => Promise<Consumer>;
  readonly instance: string;
}

/** The process with its state. */
interface Running extends AdapterProcess {
  readonly clusters: ClusterQueue;
  readonly secrets: SecretMetrics;
}

const NAME = 'pull-secret-adapter';

/** Runs until the signal. @returns the exit code */
export async function runAdapter(process: AdapterProcess): Promise<number> {
  const { logger, signal, metrics } = process;
  const secrets = new SecretMetrics();
  const onRepair = labelReporter(process);
  const clusters: ClusterQueue = new ClusterQueue({
    reconcile: (id, why) => measured({ ...process, secrets, onRepair }, id, why),
    concurrency: process.settings.concurrency,
    observer: metrics.queue(NAME, () => clusters.depth),
    onError: (id, error, failures, traceparent) =>
      logger.warn('A cluster could not be reconciled', {
        cluster: id,
        failures,
        code: codeOf(error),
        error: describeError(error),
        traceparent,
      }),
  });
  const consumer = await process.consume(
    eventHandler((id, traceparent) => clusters.ask(id, traceparent), eventCounter(metrics)),
  );
  const closeServers = await servePorts(process.ports, {
    ready: () => (consumer.connected() ? undefined : 'the broker is not connected'),
    metrics: () => {
      metrics.samples(`${NAME}-secrets`, secrets.samples());
      return metrics.render();
    },
  });
  logger.info('started', { adapter: process.settings.adapterName });
  const lost = await leadWhenElected({ ...process, clusters, secrets });
  logger.info('stopping', { reason: lost ? 'leader election lost' : 'signal' });
  // In parallel: messages in progress wait for their passes, and new messages must not start any.
  await Promise.all([consumer.close(), clusters.close()]);
  await closeServers();
  return lost && !signal.aborted ? 1 : 0;
}

async function measured(
  process: Omit<Running, 'clusters'> & Pick<PassContext, 'onRepair'>,
  id: string,
  { by, traceparent }: PassReason,
): Promise<PassResult> {
  const { logger, metrics, secrets } = process;
  const began = performance.now();
  const took = (): number => (performance.now() - began) / 1000;
  try {
    const context = { ...process, traceparent, now: () => new Date() };
    const result = await reconcileCluster(id, context, by === 'event');
    secrets.reconciled(id, result);
    const plain = result.requeueAfterMs === undefined ? 'success' : 'requeue_after';
    metrics.reconciled(NAME, result.fault === undefined ? plain : 'error', took());
    logger[result.reported ? 'info' : 'debug']('reconciled', {
      cluster: id,
      phase: result.phase,
      reason: result.reason,
      by,
      traceparent,
    });
    return result;
  } catch (error) {
    metrics.reconciled(NAME, 'error', took());
    throw error;
  }
}

/** Reports restored labels of a Job by a log line, a counter and an Event on the Job. */
function labelReporter({
  kube,
  logger,
  metrics,
  instance,
  settings,
}: AdapterProcess): NonNullable<PassContext['onRepair']> {
  const events = new EventRecorder({
    client: kube,
    controller: 'pullwright.dev/pull-secret-adapter',
    instance,
    now: () => Date.now(),
  });
  return ({ name, uid }, labels) => {
    logger.warn('Reverted labels of a Job', { job: name, labels });
    metrics.count({
      name: 'pullwright_adapter_repairs_total',
      help: 'Manual changes that the adapter reverted',
      labels: { what: 'job-labels' },
    });
    events
      .record({
        regarding: { apiVersion: 'batch/v1', kind: 'Job', namespace: settings.namespace, name, uid },
        type: 'Warning',
        reason: 'LabelsPutBack',
        action: 'Repair',
        note: `Reverted changed labels: ${labels.join(', ')}. They identify the Job, which continues`,
      })
      // Optional: the log line has the same information.
      .catch(() => undefined);
  };
}

/** Initializes the counter of every outcome to zero, so that an alert detects the first dead letter. */
function eventCounter(metrics: Metrics): (outcome: EventOutcome) => void {
  const count = (outcome: EventOutcome, by: number): void =>
    metrics.count({
      name: 'pullwright_adapter_events_total',
      help: 'Events by outcome',
      labels: { outcome },
      by,
    });
  for (const outcome of EVENT_OUTCOMES) count(outcome, 0);
  return (outcome) => count(outcome, 1);
}

/** Leads once elected, until the signal. Returns true if the Lease was lost. */
async function leadWhenElected(process: Running): Promise<boolean> {
  const { signal, settings, logger, secrets } = process;
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
  logger.info('became leader');
  const stop = new AbortController();
  // Only the leader reconciles every cluster, so only it exports their metrics.
  secrets.isLeading = true;
  const informers = [watchJobs(process), watchRecords(process)];
  const sweeping = sweep(process, AbortSignal.any([signal, stop.signal]));
  await election.keep(signal);
  stop.abort();
  secrets.isLeading = false;
  for (const informer of informers) informer.stop();
  await sweeping;
  if (signal.aborted) await election.release().catch(() => undefined);
  return !signal.aborted;
}

/** Queues the cluster of a changed Job. A relist queues all, so that no change between watches is missed. */
function watchJobs(process: Running): Informer {
  return watch(process, { apiVersion: 'batch/v1', kind: 'Job' }, `${ADAPTER_LABEL}=${ADAPTER}`, (job) => {
    const { clusterId } = jobIdentity(job);
    if (clusterId !== '') process.clusters.hint(clusterId, 'job');
  });
}

/** Queues the cluster of a changed record, which may have a new request for a check or a revocation. */
function watchRecords(process: Running): Informer {
  const selector = `${ADAPTER_LABEL}=${ADAPTER},hyperfleet.io/resource-type=record`;
  return watch(process, { apiVersion: 'v1', kind: 'ConfigMap' }, selector, (record) => {
    const id = record.metadata.labels?.[CLUSTER_LABEL] ?? '';
    if (CLUSTER_ID.test(id)) process.clusters.hint(id, 'record');
  });
}

function watch(
  { kube, settings, logger }: AdapterProcess,
  kind: { readonly apiVersion: string; readonly kind: string },
  labelSelector: string,
  hint: (object: KubeObject) => void,
): Informer {
  const informer = new Informer({
    client: kube,
    collection: { ...kind, namespace: settings.namespace },
    selector: { labelSelector },
    sink: {
      replace: (objects) => objects.forEach(hint),
      set: hint,
      delete: hint,
      state: (state) => {
        if (state.is === 'failing')
          logger.warn('Cannot watch objects', { kind: kind.kind, error: describeError(state.error) });
      },
    },
  });
  void informer.run();
  return informer;
}

/** Periodically lists all clusters and queues those that need a pass. */
async function sweep(process: Running, signal: AbortSignal): Promise<void> {
  // Every cluster gets one pass under this leader, which schedules the next one.
  const known = new Set<string>();
  while (!signal.aborted) {
    try {
      await goOver(process, known);
    } catch (error) {
      process.logger.warn('The clusters could not be listed', { error: describeError(error) });
    }
    await sleep(process.settings.sweepSeconds * 1000, undefined, { signal }).catch(() => undefined);
  }
}

async function goOver({ api, settings, clusters, secrets }: Running, known: Set<string>): Promise<void> {
  const before = secrets.clusters;
  const type = mirroredType(settings.adapterName);
  const seen = new Map<string, string | undefined>();
  for await (const page of api.clusters(''))
    for (const cluster of page) {
      const own = cluster.conditions.find((condition) => condition.type === type);
      seen.set(cluster.id, own?.reason ?? undefined);
      const isReconciled = own?.status === 'True' && own.observed_generation === cluster.generation;
      // A reconciled cluster already has a requeue time.
      if (known.has(cluster.id) && isReconciled && !cluster.deleting) continue;
      known.add(cluster.id);
      clusters.hint(cluster.id, 'sweep');
    }
  for (const id of known) if (!seen.has(id)) known.delete(id);
  secrets.listed(seen, before);
}

// Metrics of each cluster's secret from the reports: age of the version, number of enabled versions, result of the last pass.
// Only the leader exports them. It reconciles every cluster, so the metrics include the work of other replicas, and no series is
// exported twice.

type Passed = Pick<PassResult, 'phase' | 'reason' | 'data'>;

export class SecretMetrics {
  readonly #clusters = new Map<string, Passed>();
  /** Whether this process leads. */
  isLeading = false;

  /** Records the result of a pass. */
  reconciled(cluster: string, pass: Passed): void {
    if (pass.phase === 'gone' || pass.phase === 'deleted') this.#clusters.delete(cluster);
    else this.#clusters.set(cluster, pass);
  }

  /** IDs of the recorded clusters. */
  get clusters(): ReadonlySet<string> {
    return new Set(this.#clusters.keys());
  }

  /**
   * Updates the reasons from a complete list, and removes clusters that are missing in it.
   *
   * @param before clusters recorded before the list started; only these are removed
   */
  listed(reasons: ReadonlyMap<string, string | undefined>, before: ReadonlySet<string>): void {
    for (const [id, known] of this.#clusters) {
      const reason = reasons.get(id);
      if (!reasons.has(id) && before.has(id)) this.#clusters.delete(id);
      if (reason !== undefined) this.#clusters.set(id, { ...known, reason });
    }
  }

  /** Computed per scrape, because there may be thousands. */
  samples(): readonly Sample[] {
    if (!this.isLeading) return [];
    return [...this.#clusters].flatMap(([cluster, pass]) => samplesOf(cluster, pass));
  }
}

function samplesOf(cluster: string, { reason, data }: Passed): readonly Sample[] {
  const samples: readonly Sample[] = [
    {
      name: 'pullwright_pull_secret_version_created_timestamp_seconds',
      help: 'Creation time of the secret version with the pull secret',
      value: Date.parse(scalarText(data['versionCreatedTime'])) / 1000,
      labels: { cluster },
    },
    {
      name: 'pullwright_pull_secret_enabled_versions',
      help: 'Enabled versions of the secret',
      value: typeof data['enabledVersions'] === 'number' ? data['enabledVersions'] : Number.NaN,
      labels: { cluster },
    },
    {
      name: 'pullwright_pull_secret_result',
      help: 'Result of the last reconcile of a cluster: 1 for its reason',
      value: 1,
      labels: { cluster, reason },
    },
  ];
  return samples.filter(({ value }) => !Number.isNaN(value));
}
