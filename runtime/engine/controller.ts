/** Runs one reconciler for one pair of clusters: watches its kinds, queues its keys, and reconciles them. */
import { jitterMs } from '../core/back-off.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import type { Logger } from '../core/logger.ts';
import { inParallel } from '../core/parallel.ts';
import {
  type Committed,
  commit,
  commitAction,
  commitStatus,
  failedStatus,
  isLasting,
  RefusedWrites,
} from './apply.ts';
import { CacheSync } from './cache-sync.ts';
import {
  type Author,
  authorText,
  type ChangeSet,
  changesOf,
  keyText,
  leftBehind,
  problemOf,
  refOf,
} from './changes.ts';
import type { Clusters } from './cluster.ts';
import type { ClusterPair, Reader, ReconcileError, Reconciler, Request, Result, Role } from './contract.ts';
import { AdmissionDryRuns, type FactCache } from './lookups.ts';
import type { Metrics } from './metrics.ts';
import { type QueueClock, WorkQueue } from './queue.ts';
import { Reporter } from './reporter.ts';
import { createReader, type Stores } from './store.ts';

export interface ControllerOptions {
  readonly reconciler: Reconciler;
  readonly scope: ClusterPair;
  readonly clusters: Clusters;
  readonly facts: FactCache;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly clock: QueueClock;
}

/** Workers of a reconciler that sets no number. */
const WORKERS = 2;
/** Every key is reconciled again after this time, up to 5 % later. */
const RESYNC_MS = 600_000;

/** Consecutive writes of one kind that are sent at the same time. */
const PARALLEL_WRITES = 16;

export class Controller {
  readonly #options: ControllerOptions;
  readonly #queue: WorkQueue;
  readonly #reporter: Reporter;
  readonly #trials: AdmissionDryRuns;
  readonly #refused = new RefusedWrites();
  readonly #log: Logger;
  readonly #readings: CacheSync;
  readonly #stores: Stores;
  readonly #keys = new Map<string, Request>();
  readonly #observer: ReturnType<Metrics['queue']>;
  readonly #workers: Promise<void>[] = [];

  constructor(options: ControllerOptions) {
    this.#options = options;
    const { name } = options.reconciler;
    this.#log = options.log.child({ controller: name });
    this.#observer = options.metrics.queue(name, () => this.#queue.depth);
    this.#queue = new WorkQueue(options.clock, this.#observer);
    this.#reporter = new Reporter(options);
    this.#readings = new CacheSync({
      reads: options.reconciler.watches,
      scope: options.scope,
      clusters: options.clusters,
      // When the fleet lists its hosted clusters, RBAC covers only their namespaces.
      isWide: options.reconciler.only === undefined,
      log: this.#log,
      onChange: (role, object, knownTo) => this.#changed(role, object, knownTo),
      onReadable: () => this.#enqueueAll(),
    });
    const { hosted, management } = options.clusters;
    this.#stores = { hosted: hosted.cache.store, management: management.cache.store };
    this.#trials = new AdmissionDryRuns(options.clusters, () => options.clock.now());
  }

  /** State of the watches: whether all are synced, and which one is not. */
  get readings(): Pick<CacheSync, 'synced' | 'waitingFor' | 'hostedFailure'> {
    return this.#readings;
  }

  /** Starts the watches. */
  watch(): void {
    this.#readings.start();
  }

  /** Starts the workers. */
  work(): void {
    const { workers = WORKERS } = this.#options.reconciler;
    for (let count = 0; count < workers; count++) this.#workers.push(this.#workLoop());
  }

  /** Waits for running reconciles, starts no new ones, and stops the watches. */
  async stop(): Promise<void> {
    this.#queue.close();
    this.#readings.stop();
    this.#observer.end();
    await Promise.all(this.#workers);
    this.#reporter.close();
  }

  /** The current keys. */
  get keys(): readonly Request[] {
    return [...this.#keys.values()];
  }

  /** Enqueues the keys of all objects in the caches, and of those that an earlier process created. */
  #enqueueAll(): void {
    const { reconciler, scope } = this.#options;
    this.#readings.each((role, object) => {
      this.#changed(role, object);
      const key = leftBehind(object, reconciler.name, scope.name);
      if (key !== undefined) this.#enqueue([key]);
    });
  }

  #changed(role: Role, object: KubeObject, knownTo?: string): void {
    const { clusters, reconciler } = this.#options;
    const ref = refOf(clusters.hosted === clusters.management ? 'hosted' : role, object);
    const reader = this.#reader();
    const keys = reconciler
      .requestsFor(ref, reader)
      .filter((key) => knownTo === undefined || authorText({ reconciler: reconciler.name, key }) !== knownTo);
    this.#readings.readValues(reconciler.secretsToRead?.(reader));
    this.#enqueue(keys);
  }

  /** Enqueues after required Secret values are read: otherwise thousands of keys that need one would all run twice. */
  #enqueue(keys: readonly Request[]): void {
    this.#readings.whenRead(() => {
      for (const key of keys) {
        this.#keys.set(keyText(key), key);
        this.#queue.addAfter(keyText(key), this.#options.reconciler.debounceMs?.(key) ?? 0);
      }
    });
  }

  #reader(): Reader {
    const { reconciler, scope, facts } = this.#options;
    return createReader({
      scope,
      now: new Date(),
      stores: this.#stores,
      reads: reconciler.watches,
      serves: (kind) => this.#readings.serves(kind),
      lookup: (need) => facts.get(need),
      dryRun: (one) => this.#trials.get(one),
      refusal: (ref) => this.#refused.get(ref),
      isUnreadable: (ref) => this.#readings.isUnreadable(ref),
    });
  }

  async #workLoop(): Promise<void> {
    const { metrics, reconciler } = this.#options;
    for (let id = await this.#queue.next(); id !== undefined; id = await this.#queue.next()) {
      metrics.activeWorkers(reconciler.name, 1);
      const next = await this.#pass(id);
      metrics.activeWorkers(reconciler.name, -1);
      if (next === 'retry') this.#queue.addRateLimited(id);
      else {
        this.#queue.forget(id);
        const resync = jitterMs(RESYNC_MS, 0.05, Math.random());
        if (this.#keys.has(id))
          this.#queue.addAfter(id, next === 'idle' ? resync : Math.min(next.afterMs, resync));
      }
      this.#queue.done(id);
    }
  }

  async #pass(id: string): Promise<ReturnType<Reporter['report']>> {
    const { reconciler, clusters, clock } = this.#options;
    const key = this.#keys.get(id);
    if (key === undefined) return 'idle';
    const startedAt = clock.now();
    const author: Author = { reconciler: reconciler.name, key };
    const result = this.#decide(key);
    const changes = changesOf(result, author, this.#stores);
    // Before the first await: an event that arrives later adds the key again.
    if (changes.length === 0 && this.#isNothing(result, author)) this.#keys.delete(id);
    const committed = await this.#commitAll(changes, author);
    const unsaid = await this.#writeStatus(result, author, failuresOf(committed));
    const patched: Committed[] = [];
    for (const action of result.actions ?? [])
      patched.push(await commitAction(action, author, clusters[action.ref.role]));
    this.#ask(result, id);
    // The reconciler sees a new refusal in its next reconcile of the key.
    if (this.#refused.learn([...committed, ...patched])) this.#queue.add(id);
    const rest = [...failuresOf(committed), ...unsaid, ...failuresOf(patched)];
    return this.#reporter.report({
      author,
      result,
      committed,
      problems: [...(result.errors ?? []), ...rest],
      seconds: (clock.now() - startedAt) / 1000,
    });
  }

  /** Starts look-ups and dry runs. Each answer requeues the key. */
  #ask({ lookups: needs = [], dryRuns: trials = [] }: Result, id: string): void {
    const { facts, reconciler } = this.#options;
    facts.request(needs, () => this.#queue.add(id));
    this.#trials.request(trials, reconciler.name, () => this.#queue.add(id));
  }

  /** Whether the key needs no further reconcile: nothing is desired (`retain` does not count), and it owns no object. */
  #isNothing({ retain: _keep, ...lists }: Result, { reconciler, key }: Author): boolean {
    const owned = Object.values(this.#stores).flatMap((store) => store.owned(reconciler, keyText(key)));
    return [...Object.values(lists), owned].every((list) => Array.isArray(list) && list.length === 0);
  }

  /** A reconciler that throws has a defect, which must not stop the others. */
  #decide(key: Request): Result {
    const { reconciler } = this.#options;
    try {
      return reconciler.reconcile(this.#reader(), key);
    } catch (error) {
      // Only the stack: the message of a thrown error may quote a credential.
      const frames =
        error instanceof Error ? (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line)) : [];
      this.#log.error('reconciler threw', {
        name: key.name,
        at: frames.slice(0, 5).map((line) => line.trim()),
      });
      const message = `Cannot reconcile "${key.name}": ${reconciler.name} failed unexpectedly, see the log`;
      return { retain: 'all', errors: [{ retryPolicy: 'retry', code: 'ReconcilerThrew', message }] };
    }
  }

  /** Writes in order; consecutive changes of one kind in parallel. */
  async #commitAll(changes: readonly ChangeSet[], author: Author): Promise<readonly Committed[]> {
    const { clusters } = this.#options;
    const committed: Committed[] = [];
    const send = (change: ChangeSet): Promise<Committed> => commit(change, author, clusters[change.ref.role]);
    const kindOf = (change?: ChangeSet): string => `${change?.verb} ${change?.ref.kind}`;
    for (let from = 0, to = 0; from < changes.length; from = to) {
      while (to < changes.length && kindOf(changes[to]) === kindOf(changes[from])) to += 1;
      committed.push(...(await inParallel(changes.slice(from, to), PARALLEL_WRITES, send)));
    }
    return committed;
  }

  /** Writes the status of the reconciler, with `Ready=False` when one of its writes failed. */
  async #writeStatus(
    result: Result,
    author: Author,
    failures: readonly ReconcileError[],
  ): Promise<readonly ReconcileError[]> {
    const { clusters } = this.#options;
    const failure = failures.find(isLasting);
    const problems: ReconcileError[] = [];
    for (const patch of result.status ?? []) {
      const cluster = clusters[patch.ref.role];
      const present = cluster.cache.store.get(patch.ref);
      const status =
        failure === undefined ? patch.status : failedStatus(patch.status, failure, present, new Date());
      try {
        await commitStatus({ ...patch, status }, author, cluster);
      } catch (error) {
        problems.push(problemOf(error, patch.ref));
      }
    }
    return problems;
  }
}

function failuresOf(committed: readonly Committed[]): readonly ReconcileError[] {
  return committed.flatMap((done) => (done.verb === 'failed' ? [done.problem] : []));
}
