/**
 * How many pods of one workload may be evicted for one cause. A successor that comes back with the same trouble shows that eviction
 * does not help: it is left alone, or pods would be evicted without end.
 */

/** Evictions of one workload within {@link WINDOW_MS}. */
const AT_ONCE = 3;
const WINDOW_MS = 60_000;
/** A workload that was left alone this long begins anew. */
const FORGET_MS = 3_600_000;
const REMEMBERED = 1000;

/** The pod, the workload that makes it again, and why it is to go. */
export interface EvictionCase {
  readonly pod: string;
  /** uid of the owner. */
  readonly workload: string;
  readonly cause: string;
  /** When the pod was made, RFC 3339. */
  readonly createdAt: string;
}

/** `again`: its predecessor was evicted for the same cause. `wait`: others of the workload go first. `done`: it is on its way. */
export type EvictionVerdict = 'evict' | 'again' | 'done' | { readonly waitMs: number };

interface Workload {
  /** Wall clock of the first eviction. */
  readonly since: number;
  readonly pods: Set<string>;
  times: readonly number[];
}

/**
 * @example
 * ```ts
 * import { EvictionBudget } from './eviction-budget.ts';
 * import assert from 'node:assert/strict';
 *
 * let now = Date.parse('2026-01-01T01:00:00Z');
 * const budget = new EvictionBudget(() => now);
 * const first = { pod: 'a', workload: 'w', cause: 'lacks reg', createdAt: '2026-01-01T00:00:00Z' };
 * assert.equal(budget.judge(first), 'evict');
 * budget.evicted(first);
 * assert.equal(budget.judge(first), 'done');
 * assert.equal(budget.judge({ ...first, pod: 'b', createdAt: '2026-01-01T01:00:05Z' }), 'again');
 * ```
 */
export class EvictionBudget {
  readonly #now: () => number;
  readonly #workloads = new Map<string, Workload>();

  /** @param now milliseconds of the wall clock, as the API server stamps pods */
  constructor(now: () => number) {
    this.#now = now;
  }

  judge(one: EvictionCase): EvictionVerdict {
    const now = this.#now();
    const known = this.#workloads.get(idOf(one));
    if (known === undefined || now - (known.times.at(-1) ?? 0) > FORGET_MS) return 'evict';
    if (known.pods.has(one.pod)) return 'done';
    // Timestamps are whole seconds.
    if (Date.parse(one.createdAt) >= Math.floor(known.since / 1000) * 1000) return 'again';
    if (this.recent(one) < AT_ONCE) return 'evict';
    const [oldest = now] = known.times;
    return { waitMs: oldest + WINDOW_MS - now };
  }

  /** How many pods of the workload were evicted a moment ago. */
  recent(one: EvictionCase): number {
    const now = this.#now();
    return (this.#workloads.get(idOf(one))?.times ?? []).filter((at) => now - at < WINDOW_MS).length;
  }

  /** Counts an eviction that the API server let through. */
  evicted(one: EvictionCase): void {
    const now = this.#now();
    const id = idOf(one);
    const known = this.#workloads.get(id);
    const isOld = known === undefined || now - (known.times.at(-1) ?? 0) > FORGET_MS;
    const workload = isOld ? { since: now, pods: new Set<string>(), times: [] } : known;
    workload.pods.add(one.pod);
    workload.times = [...workload.times, now].slice(-AT_ONCE);
    this.#workloads.delete(id);
    this.#workloads.set(id, workload);
    const [eldest] = this.#workloads.keys();
    if (this.#workloads.size > REMEMBERED && eldest !== undefined) this.#workloads.delete(eldest);
  }
}

function idOf({ workload, cause }: EvictionCase): string {
  return `${workload} ${cause}`;
}
