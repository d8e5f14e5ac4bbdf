/**
 * The work queue: each key is in it at most once and never with two workers at the same time; the one that is due earliest comes
 * first; failures wait longer and longer. Semantics of client-go's workqueue and controller-runtime's priority queue. A patient key
 * lets all others go first, and comes at once when there is no other.
 *
 * A patient key lets the others go first: whoever sums up over thousands of copies would otherwise count what the next copy
 * makes wrong.
 */
import { exponentialMs } from '../core/back-off.ts';

// A binary heap by due time, then by order: what is due earliest, in logarithmic time, for queues of many thousand keys.

/** What the heap orders by. */
export interface Due {
  readonly dueAt: number;
  /** Order among what is due at the same time. */
  readonly order: number;
}

/**
 */
export class DueHeap<T extends Due> {
  readonly #items: T[] = [];

  push(item: T): void {
    const items = this.#items;
    let at = items.push(item) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#isBefore(at, parent)) return;
      this.#swap(at, parent);
      at = parent;
    }
  }

  get size(): number {
    return this.#items.length;
  }

  /** Forgets what `isWanted` refuses. */
  keep(isWanted: (item: T) => boolean): void {
    const wanted = this.#items.filter(isWanted);
    this.#items.length = 0;
    for (const item of wanted) this.push(item);
  }

  /** The first one, left where it is. */
  peek(): T | undefined {
    return this.#items[0];
  }

  pop(): T | undefined {
    const items = this.#items;
    const first = items[0];
    const last = items.pop();
    if (last === undefined || items.length === 0) return first;
    items[0] = last;
    for (let at = 0; ; ) {
      const left = 2 * at + 1;
      const right = left + 1;
      let next = at;
      if (left < items.length && this.#isBefore(left, next)) next = left;
      if (right < items.length && this.#isBefore(right, next)) next = right;
      if (next === at) return first;
      this.#swap(at, next);
      at = next;
    }
  }

  clear(): void {
    this.#items.length = 0;
  }

  #isBefore(a: number, b: number): boolean {
    const [one, other] = [this.#items[a], this.#items[b]] as [T, T];
    return one.dueAt === other.dueAt ? one.order < other.order : one.dueAt < other.dueAt;
  }

  #swap(a: number, b: number): void {
    const items = this.#items;
    [items[a], items[b]] = [items[b] as T, items[a] as T];
  }
}

// The delays of client-go's default controller rate limiter: per key exponential, overall a token bucket; the longer one counts.
// A 403 is tried again every ten seconds and not ever more rarely: rights are usually missing because somebody is just
// installing or repairing them.

export interface RateLimitOptions {
  /** Milliseconds that never go back. */
  readonly now: () => number;
  /** @default {5} */
  readonly firstMs?: number;
  /** @default {1000000} */
  readonly maxMs?: number;
  /** Per second. @default {10} */
  readonly rate?: number;
  /** @default {100} */
  readonly burst?: number;
}

/**
 */
export class RateLimiter {
  readonly #options: Required<RateLimitOptions>;
  readonly #failures = new Map<string, number>();
  #tokens: number;
  #at: number;

  constructor(options: RateLimitOptions) {
    this.#options = { firstMs: 5, maxMs: 1_000_000, rate: 10, burst: 100, ...options };
    this.#tokens = this.#options.burst;
    this.#at = options.now();
  }

  /** Milliseconds until the next try of `id`; counts one failure. */
  delayOf(id: string): number {
    const failures = this.#failures.get(id) ?? 0;
    this.#failures.set(id, failures + 1);
    return Math.max(exponentialMs(this.#options, failures), this.#take());
  }

  /** How often `id` failed in a row. */
  failuresOf(id: string): number {
    return this.#failures.get(id) ?? 0;
  }

  forget(id: string): void {
    this.#failures.delete(id);
  }

  /** Takes a token, on credit if need be; gives the milliseconds until it is there. */
  #take(): number {
    const { now, rate, burst } = this.#options;
    const at = now();
    // A clock that went back gives nothing, and takes nothing.
    this.#tokens = Math.min(burst, this.#tokens + (Math.max(0, at - this.#at) * rate) / 1000);
    this.#at = at;
    this.#tokens -= 1;
    return this.#tokens >= 0 ? 0 : (-this.#tokens * 1000) / rate;
  }
}

/** Time for a queue, so that tests own it. */
export interface QueueClock {
  /** Milliseconds that never go back. */
  now(): number;
  /** Calls `run` after `ms`; gives the way to cancel. */
  after(ms: number, run: () => void): () => void;
}

/** Told what metrics want to know. Times in seconds. */
export interface QueueObserver {
  added(): void;
  retried(): void;
  started(waitedSeconds: number): void;
  finished(workedSeconds: number): void;
}

interface Waiting extends Due {
  readonly id: string;
  readonly addedAt: number;
  /** Handed out before it is due when nothing else is to be done. */
  isPatient: boolean;
}

interface Active {
  readonly since: number;
  readonly isPatient: boolean;
}

/** Entries of the heap that no longer count are put up with until there are so many. */
const STALE = 1000;

export class WorkQueue {
  readonly #clock: QueueClock;
  readonly #limiter: RateLimiter;
  readonly #observer: QueueObserver | undefined;
  readonly #waiting = new Map<string, Waiting>();
  /** Everything in `#waiting` but what has a worker, and entries that were replaced since. */
  readonly #heap = new DueHeap<Waiting>();
  /** Those of `#heap` that are patient, in the order in which they came. */
  readonly #patient = new Map<string, Waiting>();
  /** Keys with a worker. */
  readonly #active = new Map<string, Active>();
  #busy = 0;
  readonly #takers: ((id: string | undefined) => void)[] = [];
  #cancelTimer: (() => void) | undefined;
  #order = 0;
  #closed = false;

  constructor(clock: QueueClock, observer?: QueueObserver) {
    this.#clock = clock;
    this.#observer = observer;
    this.#limiter = new RateLimiter({ now: () => clock.now() });
  }

  /** Keys that are due and have no worker. */
  get depth(): number {
    const now = this.#clock.now();
    return [...this.#waiting.entries()].filter(([id, { dueAt }]) => dueAt <= now && !this.#active.has(id))
      .length;
  }

  get active(): number {
    return this.#active.size;
  }

  /** Due now; with `patienceMs`, when no other key is due or worked on, and after that time at the latest. */
  add(id: string, patienceMs = 0): void {
    this.#addAfter(id, patienceMs, patienceMs > 0);
  }

  /** Due in `ms`, unless it is due earlier already. */
  addAfter(id: string, ms: number): void {
    this.#addAfter(id, ms, false);
  }

  #addAfter(id: string, ms: number, isPatient: boolean): void {
    if (this.#closed) return;
    const dueAt = this.#clock.now() + Math.max(0, ms);
    const known = this.#waiting.get(id);
    if (known !== undefined && known.dueAt <= dueAt) {
      if (!isPatient || known.isPatient) return;
      known.isPatient = true;
      if (!this.#active.has(id)) this.#patient.set(id, known);
    } else {
      this.#observer?.added();
      const waiting = { id, dueAt, order: this.#order++, addedAt: dueAt, isPatient };
      this.#waiting.set(id, waiting);
      this.#patient.delete(id);
      if (!this.#active.has(id)) this.#push(waiting);
    }
    this.#dispatch();
  }

  #push(waiting: Waiting): void {
    if (waiting.isPatient) this.#patient.set(waiting.id, waiting);
    this.#heap.push(waiting);
    if (this.#heap.size > 2 * this.#waiting.size + STALE)
      this.#heap.keep((one) => this.#waiting.get(one.id) === one);
  }

  /** Due after the back-off of this key. */
  addRateLimited(id: string): void {
    this.#observer?.retried();
    this.addAfter(id, this.#limiter.delayOf(id));
  }

  /** Ends the back-off of this key. */
  forget(id: string): void {
    this.#limiter.forget(id);
  }

  failuresOf(id: string): number {
    return this.#limiter.failuresOf(id);
  }

  /** The next key; undefined once the queue is closed. The caller must say {@link done}. */
  next(): Promise<string | undefined> {
    return new Promise((resolve) => {
      this.#takers.push(resolve);
      this.#dispatch();
    });
  }

  /** The worker is finished with `id`; if it was added meanwhile, it can be handed out again. */
  done(id: string): void {
    const active = this.#active.get(id);
    if (active === undefined) return;
    this.#active.delete(id);
    if (!active.isPatient) this.#busy -= 1;
    const again = this.#waiting.get(id);
    if (again !== undefined) this.#push(again);
    this.#observer?.finished((this.#clock.now() - active.since) / 1000);
    this.#dispatch();
  }

  /** Nothing is handed out any more. */
  close(): void {
    this.#closed = true;
    this.#cancelTimer?.();
    this.#waiting.clear();
    this.#patient.clear();
    this.#heap.clear();
    for (const taker of this.#takers.splice(0)) taker(undefined);
  }

  #dispatch(): void {
    if (this.#closed) {
      for (const taker of this.#takers.splice(0)) taker(undefined);
      return;
    }
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const now = this.#clock.now();
    while (this.#takers.length > 0) {
      const first = this.#earliest();
      if (first === undefined) return;
      const [early] = first.dueAt > now && this.#busy === 0 ? this.#patient.values() : [];
      if (first.dueAt > now && early === undefined) {
        this.#cancelTimer = this.#clock.after(first.dueAt - now, () => this.#dispatch());
        return;
      }
      this.#handOut(early ?? first, now);
    }
  }

  /** What comes early stays in the heap, where it no longer counts. */
  #handOut(waiting: Waiting, now: number): void {
    const { id, addedAt, isPatient } = waiting;
    this.#waiting.delete(id);
    this.#patient.delete(id);
    this.#active.set(id, { since: now, isPatient });
    if (!isPatient) this.#busy += 1;
    this.#observer?.started(Math.max(0, now - addedAt) / 1000);
    this.#takers.shift()?.(id);
  }

  /** The first entry of the heap that still counts. */
  #earliest(): Waiting | undefined {
    for (let first = this.#heap.peek(); first !== undefined; first = this.#heap.peek()) {
      if (this.#waiting.get(first.id) === first && !this.#active.has(first.id)) return first;
      this.#heap.pop();
    }
    return undefined;
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

// Doing many things at once, but not too many.

/**
 * Runs `work` on every item, at most `limit` at the same time. Gives the results in the order of the items.
 */
export async function inParallel<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = [];
  const entries = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of entries) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}

/** Cuts `items` into runs of neighbours for which `kindOf` is the same. */
export function neighbours<T>(items: readonly T[], kindOf: (item: T) => string): readonly (readonly T[])[] {
  const runs: { readonly kind: string; readonly items: T[] }[] = [];
  for (const item of items) {
    const kind = kindOf(item);
    const last = runs.at(-1);
    if (last?.kind === kind) last.items.push(item);
    else runs.push({ kind, items: [item] });
  }
  return runs.map((run) => run.items);
}
