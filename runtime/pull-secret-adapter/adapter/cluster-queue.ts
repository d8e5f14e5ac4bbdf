/**
 * The queue of clusters: the work queue of the engine, with workers, and with promises for who waits for a pass. Who asks while a pass runs
 * gets the next one, together with everybody else who asked: a thousand events of one cluster are two passes.
 */
import { type QueueObserver, systemQueueClock, WorkQueue } from '../../controller/queue.ts';

/** What a pass leaves for the queue. */
export interface PassEnd {
  readonly requeueAfterMs?: number;
  /** Nobody has to be told, and it is tried again with growing pauses. */
  readonly fault?: unknown;
}

/** Who brought a cluster into the queue: an event above all, then whoever hinted last, then the time that a pass had asked for. */
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
  /** A pass failed that nobody waited for; it is tried again, for the how many-th time. */
  readonly onError: (id: string, error: unknown, failures: number) => void;
  readonly observer?: QueueObserver;
}

interface Asked {
  /** One for all who asked. */
  readonly waiter: PromiseWithResolvers<void>;
  /** Of who asked last and said it. */
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

  /** Asks without anybody waiting: a pass that fails is tried again, until one succeeds. */
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
      // Who waits tries again, or gives the message back.
      if (waiter === undefined) this.#again(id, error);
      else waiter.reject(error);
    }
  }

  #again(id: string, error: unknown): void {
    this.#queue.addRateLimited(id);
    this.#options.onError(id, error, this.#queue.failuresOf(id));
  }
}
