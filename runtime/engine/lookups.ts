/**
 * Creates pods in dry runs, to see which pull secrets admission adds: once for each change of the inputs, so that an unchanged
 * cluster gets no requests.
 */

import { setTimeout } from 'node:timers/promises';
import { describeError } from '../core/errors.ts';
import { listedPullSecrets } from '../core/kubernetes/object.ts';
import { remember } from '../core/record.ts';
import { fieldManager } from './changes.ts';
import type { Clusters } from './cluster.ts';
import type { AdmissionDryRun, AdmissionDryRunResult, Lookup, LookupResult } from './contract.ts';

/** An API server enforces a new policy or webhook after a moment: a dry run that misses names is retried after these times. */
const AGAIN_MS: readonly number[] = [250, 500, 1000, 2000, 4000, 8000];
/** A dry run with missing names, and one that was rejected, is repeated after these times. */
const LACKING_MS = 30_000;
const REFUSED_MS = 600_000;
const AT_ONCE = 4;
const REMEMBERED = 5000;

/** Cached answers, with one request at a time for each. */
class Answers<A> {
  readonly #now: () => number;
  readonly #known = new Map<string, { readonly answer: A; readonly until: number }>();
  readonly #pending = new Set<string>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The last answer, fresh or not. */
  last(id: string): A | undefined {
    return this.#known.get(id)?.answer;
  }

  isFresh(id: string): boolean {
    return (this.#known.get(id)?.until ?? 0) > this.#now();
  }

  /** Whether a request is due. If so, it counts as pending. */
  begin(id: string): boolean {
    if (this.isFresh(id) || this.#pending.has(id)) return false;
    this.#pending.add(id);
    return true;
  }

  end(id: string, answer: A, lastsMs: number): void {
    this.#pending.delete(id);
    remember(this.#known, id, { answer, until: this.#now() + lastsMs }, REMEMBERED);
  }
}

export class AdmissionDryRuns {
  readonly #clusters: Clusters;
  readonly #wait: (ms: number) => Promise<unknown>;
  readonly #answers: Answers<AdmissionDryRunResult>;
  readonly #waiting: (() => Promise<void>)[] = [];
  #running = 0;

  constructor(clusters: Clusters, now: () => number, wait: (ms: number) => Promise<unknown> = unwatched) {
    this.#clusters = clusters;
    this.#answers = new Answers(now);
    this.#wait = wait;
  }

  /** The last answer, if any: it is valid until the next one arrives. */
  get(trial: AdmissionDryRun): AdmissionDryRunResult | undefined {
    return this.#answers.last(idOf(trial));
  }

  /** Runs the dry runs that are due, and calls `answered` after each. */
  request(trials: readonly AdmissionDryRun[], reconciler: string, answered: () => void): void {
    for (const trial of trials) {
      const id = idOf(trial);
      if (!this.#answers.begin(id)) continue;
      this.#waiting.push(async () => {
        const answer = await this.#make(trial, reconciler);
        this.#answers.end(id, answer, lastsMs(answer, trial));
        answered();
      });
    }
    while (this.#running < AT_ONCE && this.#waiting.length > 0) void this.#work();
  }

  async #work(): Promise<void> {
    this.#running += 1;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) await next();
    this.#running -= 1;
  }

  async #make(trial: AdmissionDryRun, reconciler: string): Promise<AdmissionDryRunResult> {
    let answer = await this.#ask(trial, reconciler);
    for (const waitMs of AGAIN_MS) {
      if (isFinal(answer)) break;
      await this.#wait(waitMs);
      answer = await this.#ask(trial, reconciler);
    }
    return answer;
  }

  async #ask({ role, pod, wants }: AdmissionDryRun, reconciler: string): Promise<AdmissionDryRunResult> {
    const cluster = this.#clusters[role];
    try {
      cluster.assertMayWrite();
      const made = await cluster.client.create(pod, fieldManager(reconciler), { dryRun: true });
      const names = listedPullSecrets(made.spec);
      return { ok: true, lacks: wants.filter((name) => !names.includes(name)) };
    } catch (error) {
      return { ok: false, reason: describeError(error) };
    }
  }
}

/** A timer that does not keep the process alive. */
function unwatched(ms: number): Promise<unknown> {
  return setTimeout(ms, undefined, { ref: false });
}

/** A new namespace has no ServiceAccount yet, so an error is retried, except one of RBAC. */
function isFinal(answer: AdmissionDryRunResult): boolean {
  return answer.ok ? answer.lacks.length === 0 : answer.reason.includes('cannot create resource');
}

function lastsMs(answer: AdmissionDryRunResult, trial: AdmissionDryRun): number {
  if (!answer.ok) return REFUSED_MS;
  return answer.lacks.length === 0 ? (trial.lastsMs ?? Number.POSITIVE_INFINITY) : LACKING_MS;
}

function idOf({ role, pod, wants, change }: AdmissionDryRun): string {
  return JSON.stringify([role, pod, wants, change]);
}

// Data that reconcilers need from outside the API server: cached, with one look-up of each at a time.

/** Performs a look-up. Never rejects: a failure is a result too. */
export type LookUp = (need: Lookup) => Promise<LookupResult>;

/** How long a success and a failure are cached. */
const GOOD_MS = 600_000;
const BAD_MS = 60_000;

export class FactCache {
  readonly #lookUp: LookUp;
  readonly #answers: Answers<LookupResult>;

  constructor(lookUp: LookUp, now: () => number = () => performance.now()) {
    this.#lookUp = lookUp;
    this.#answers = new Answers(now);
  }

  /** The answer, if a fresh one is cached. */
  get(need: Lookup): LookupResult | undefined {
    const id = idOfLookup(need);
    return this.#answers.isFresh(id) ? this.#answers.last(id) : undefined;
  }

  /** Performs look-ups that are not cached, and calls `answered` for each result. */
  request(needs: readonly Lookup[], answered: () => void): void {
    for (const need of needs) {
      const id = idOfLookup(need);
      if (this.#answers.begin(id)) void this.#answer(need, id, answered);
    }
  }

  async #answer(need: Lookup, id: string, answered: () => void): Promise<void> {
    const fact = await this.#lookUp(need);
    this.#answers.end(id, fact, fact.ok ? GOOD_MS : BAD_MS);
    answered();
  }
}

/** Includes the pull secret, because the result depends on the credentials. */
function idOfLookup({ kind, image, pullSecret, asked }: Lookup): string {
  return JSON.stringify([kind, image, pullSecret?.namespace, pullSecret?.name, asked]);
}

/** The reason of an answer when no look-up is configured, which is not a failure. */
export const NOT_ASKED = 'no registry lookup is configured';

/** The look-up when none is configured. */
export const noLookUp: LookUp = () => Promise.resolve({ ok: false, reason: NOT_ASKED });
