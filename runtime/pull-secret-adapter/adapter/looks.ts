/**
 * Looks at clusters: one at a time per cluster, many clusters at a time. Who asks while a look runs gets the next one, together with
 * everybody else who asked: a thousand events of one cluster are two looks.
 */

interface Pending {
  readonly always: boolean;
  readonly waiters: readonly PromiseWithResolvers<void>[];
}

export interface LooksOptions {
  /** One look; may fail. */
  readonly look: (id: string, always: boolean) => Promise<{ readonly requeueAfterMs?: number }>;
  /** Looks at the same time. @default {20} */
  readonly concurrency?: number;
  /** A look failed that nobody waited for; it is tried again after the pause. */
  readonly onError: (id: string, error: unknown, pauseMs: number) => void;
}

const FIRST_PAUSE_MS = 1000;
const LAST_PAUSE_MS = 60_000;

export class Looks {
  readonly #options: LooksOptions;
  readonly #waiting = new Map<string, Pending>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  /** Clusters whose last look failed, and how often in a row. */
  readonly #failures = new Map<string, number>();
  #closed = false;

  constructor(options: LooksOptions) {
    this.#options = options;
  }

  /** Clusters that wait for a look or have one. */
  get size(): number {
    return this.#waiting.size + this.#running.size;
  }

  /** Settles with a look that began after this call. */
  ask(id: string, always: boolean): Promise<void> {
    const waiter = Promise.withResolvers<void>();
    this.#add(id, always, [waiter]);
    return waiter.promise;
  }

  /** Asks without anybody waiting: a look that fails is tried again, until one succeeds. */
  hint(id: string): void {
    if (!this.#closed) this.#add(id, false, []);
  }

  /** Ends timers and waits for what runs. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
    for (const { waiters } of this.#waiting.values())
      for (const one of waiters) one.reject(new Error('closed'));
    this.#waiting.clear();
    await Promise.allSettled(this.#running.values());
  }

  #add(id: string, always: boolean, waiters: Pending['waiters']): void {
    const pending = this.#waiting.get(id);
    this.#waiting.set(id, {
      always: always || pending?.always === true,
      waiters: [...(pending?.waiters ?? []), ...waiters],
    });
    this.#next();
  }

  #next(): void {
    for (const [id, pending] of this.#waiting) {
      if (this.#running.size >= (this.#options.concurrency ?? 20)) return;
      if (this.#running.has(id)) continue;
      this.#waiting.delete(id);
      const run = this.#run(id, pending).finally(() => {
        this.#running.delete(id);
        this.#next();
      });
      this.#running.set(id, run);
    }
  }

  async #run(id: string, { always, waiters }: Pending): Promise<void> {
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
    try {
      const { requeueAfterMs } = await this.#options.look(id, always);
      this.#failures.delete(id);
      for (const waiter of waiters) waiter.resolve();
      if (requeueAfterMs !== undefined) this.#later(id, requeueAfterMs);
    } catch (error) {
      for (const waiter of waiters) waiter.reject(error);
      // Who waits tries again, or gives the message back.
      if (waiters.length === 0) this.#retry(id, error);
    }
  }

  #retry(id: string, error: unknown): void {
    const failures = (this.#failures.get(id) ?? 0) + 1;
    this.#failures.set(id, failures);
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 10), LAST_PAUSE_MS);
    this.#options.onError(id, error, pauseMs);
    this.#later(id, pauseMs);
  }

  #later(id: string, ms: number): void {
    if (this.#closed) return;
    const timer = setTimeout(
      () => {
        this.#timers.delete(id);
        this.hint(id);
      },
      Math.min(ms, 2 ** 31 - 1),
    );
    this.#timers.set(id, timer);
  }
}
