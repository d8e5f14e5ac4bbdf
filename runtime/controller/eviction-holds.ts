/**
 * Pods that were not evicted, and when that is asked again. Each question is a dry run or an eviction that is refused, and all tenants share
 * a rate: what was answered a moment ago is answered from here, or the pods of one namespace that nothing helps would keep everybody waiting.
 */
import type { Problem } from './contract.ts';

/** An API server takes a policy or a webhook in a moment after it was stored; what is refused for longer is asked about less and less. */
const AGAIN_MS: readonly number[] = [2000, 10_000, 60_000, 300_000];
const REMEMBERED = 5000;

interface Held {
  readonly times: number;
  readonly until: number;
  /** As it was told. */
  readonly told: Problem;
}

/**
 * @example
 * ```ts
 * import { EvictionHolds } from './eviction-holds.ts';
 * import assert from 'node:assert/strict';
 *
 * let now = 0;
 * const holds = new EvictionHolds(() => now);
 * const problem = { disposition: 'waiting', code: 'WouldNotHelp', message: 'no' } as const;
 * assert.equal(holds.hold('uid', problem).afterMs, 2000);
 * now = 1500;
 * assert.equal(holds.get('uid')?.afterMs, 500);
 * now = 2000;
 * assert.equal(holds.get('uid'), undefined);
 * assert.equal(holds.hold('uid', problem).afterMs, 10_000);
 * ```
 */
export class EvictionHolds {
  readonly #now: () => number;
  readonly #held = new Map<string, Held>();

  /** @param now milliseconds of a clock that never goes back */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** What is to be said of the pod for now, without asking. */
  get(pod: string): Problem | undefined {
    const held = this.#held.get(pod);
    const afterMs = (held?.until ?? 0) - this.#now();
    if (held === undefined || afterMs <= 0) return undefined;
    return { ...held.told, afterMs };
  }

  /** Remembers an answer. Gives it with the time after which it is asked for again, and at first without whom it is told to. */
  hold(pod: string, problem: Problem): Problem {
    const times = this.#held.get(pod)?.times ?? 0;
    const afterMs = problem.afterMs ?? AGAIN_MS[Math.min(times, AGAIN_MS.length - 1)] ?? 0;
    const { regarding: _, ...untold } = problem;
    // A policy that was stored a moment ago is not at work yet: nobody is told of what comes right by itself.
    const told = times === 0 && problem.afterMs === undefined ? untold : problem;
    this.forget(pod);
    this.#held.set(pod, { times: times + 1, until: this.#now() + afterMs, told });
    const [eldest] = this.#held.keys();
    if (this.#held.size > REMEMBERED && eldest !== undefined) this.#held.delete(eldest);
    return { ...told, afterMs };
  }

  /** It was evicted. */
  forget(pod: string): void {
    this.#held.delete(pod);
  }
}
