/**
 * The work queue: contains each key at most once, never hands it to two workers at the same time, and returns the key that was
 * due first. Failures back off exponentially. Semantics of client-go's workqueue.
 */
import { exponentialMs } from '../core/back-off.ts';

// The delays of client-go's default controller rate limiter: per key exponential, overall a token bucket; the longer one counts.
// A 403 is retried every ten seconds without back-off: RBAC is usually missing only while it is being installed or fixed.
const BACK_OFF = { firstMs: 5, maxMs: 1_000_000 };
const RETRIES_PER_SECOND = 10;
const BURST = 100;

/** Time for a queue, so that tests can control it. */
export interface QueueClock {
  /** Milliseconds that never go back. */
  now(): number;
  /** Calls `run` after `ms`. Returns a function that cancels it. */
  after(ms: number, run: () => void): () => void;
}

/** Receives the events of a queue for metrics. Times in seconds. */
export interface QueueObserver {
  added(): void;
  retried(): void;
  started(waitedSeconds: number): void;
  finished(workedSeconds: number): void;
}

export class WorkQueue {
  readonly #clock: QueueClock;
  readonly #observer: QueueObserver | undefined;
  /** Keys that are due, in the order of becoming due, with that time. */
  readonly #ready = new Map<string, number>();
  readonly #delayed = new Map<string, { readonly dueAt: number; readonly cancel: () => void }>();
  /** Keys with a worker, with the time when it started. */
  readonly #active = new Map<string, number>();
  readonly #failures = new Map<string, number>();
  #tokens = BURST;
  #tokensAt: number;
  readonly #takers: ((id: string | undefined) => void)[] = [];
  #closed = false;

  constructor(clock: QueueClock, observer?: QueueObserver) {
    this.#clock = clock;
    this.#observer = observer;
    this.#tokensAt = clock.now();
  }

  /** Number of keys that are due and have no worker. */
  get depth(): number {
    return [...this.#ready.keys()].filter((id) => !this.#active.has(id)).length;
  }

  /** Makes `id` due now. */
  add(id: string): void {
    this.addAfter(id, 0);
  }

  /** Makes `id` due in `ms`, unless it is due earlier. */
  addAfter(id: string, ms: number): void {
    if (this.#closed || this.#ready.has(id)) return;
    const dueAt = this.#clock.now() + Math.max(0, ms);
    const known = this.#delayed.get(id);
    if (known !== undefined && known.dueAt <= dueAt) return;
    this.#observer?.added();
    known?.cancel();
    const due = (): void => {
      this.#delayed.delete(id);
      this.#ready.set(id, dueAt);
      this.#dispatch();
    };
    if (ms <= 0) due();
    else this.#delayed.set(id, { dueAt, cancel: this.#clock.after(ms, due) });
  }

  /** Makes `id` due after its back-off. */
  addRateLimited(id: string): void {
    this.#observer?.retried();
    const failures = this.failuresOf(id);
    this.#failures.set(id, failures + 1);
    this.addAfter(id, Math.max(exponentialMs(BACK_OFF, failures), this.#takeToken()));
  }

  /** Takes a token, in advance if there is none. Returns the milliseconds until it is available. */
  #takeToken(): number {
    const now = this.#clock.now();
    const earned = ((now - this.#tokensAt) * RETRIES_PER_SECOND) / 1000;
    this.#tokens = Math.min(BURST, this.#tokens + earned) - 1;
    this.#tokensAt = now;
    return Math.max(0, (-this.#tokens * 1000) / RETRIES_PER_SECOND);
  }

  /** Resets the back-off of `id`. */
  forget(id: string): void {
    this.#failures.delete(id);
  }

  /** Consecutive failures of `id`. */
  failuresOf(id: string): number {
    return this.#failures.get(id) ?? 0;
  }

  /** The next key; undefined once the queue is closed. The caller must call {@link done}. */
  next(): Promise<string | undefined> {
    return new Promise((resolve) => {
      this.#takers.push(resolve);
      this.#dispatch();
    });
  }

  /** Ends the work on `id`. If it was added meanwhile, the next worker gets it. */
  done(id: string): void {
    const since = this.#active.get(id);
    if (since === undefined) return;
    this.#active.delete(id);
    this.#observer?.finished((this.#clock.now() - since) / 1000);
    this.#dispatch();
  }

  /** Drops all keys; {@link next} returns undefined from now on. */
  close(): void {
    this.#closed = true;
    for (const { cancel } of this.#delayed.values()) cancel();
    this.#delayed.clear();
    this.#ready.clear();
    for (const taker of this.#takers.splice(0)) taker(undefined);
  }

  #dispatch(): void {
    if (this.#closed) for (const taker of this.#takers.splice(0)) taker(undefined);
    const now = this.#clock.now();
    for (const [id, dueAt] of this.#ready) {
      if (this.#takers.length === 0) return;
      if (this.#active.has(id)) continue;
      this.#ready.delete(id);
      this.#active.set(id, now);
      this.#observer?.started(Math.max(0, now - dueAt) / 1000);
      this.#takers.shift()?.(id);
    }
  }
}

/** The machine's clock and timers. Timers do not keep the process alive. */
export const systemQueueClock: QueueClock = {
  now: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, Math.min(ms, 2 ** 31 - 1));
    timer.unref();
    return () => clearTimeout(timer);
  },
};
