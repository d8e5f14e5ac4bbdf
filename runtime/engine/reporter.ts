/** Turns the result of a reconcile into log lines, events, metrics and the time of the next reconcile. */

import { withHint } from '../core/errors.ts';
import { describeObject } from '../core/kubernetes/object.ts';
import type { Logger } from '../core/logger.ts';
import { type Committed, isLasting } from './apply.ts';
import { type Author, keyText } from './changes.ts';
import type { Clusters } from './cluster.ts';
import type { EventNote, ReconcileError, Result, Sample } from './contract.ts';
import type { Metrics, ReconcileResult } from './metrics.ts';

/** The results of one reconcile of a key. */
export interface Pass {
  readonly author: Author;
  readonly result: Pick<Result, 'events' | 'metrics' | 'requeueAfterMs'>;
  readonly committed: readonly Committed[];
  /** Includes the errors of the result. */
  readonly problems: readonly ReconcileError[];
  readonly seconds: number;
}

/** When the key is due again: `retry` after its back-off, after a time, or only when something changes. */
export type Next = 'retry' | { readonly afterMs: number } | 'idle';

export interface ReporterOptions {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly clusters: Clusters;
}

/** Requeue time of a waiting problem that sets none. */
const DEFAULT_WAIT_MS = 30_000;

export class Reporter {
  readonly #options: ReporterOptions;
  /** Problems and events of the last reconcile, by key: only new ones are reported. */
  readonly #saidProblems = new Map<string, ReadonlySet<string>>();
  readonly #saidEvents = new Map<string, ReadonlySet<string>>();
  readonly #sampled = new Set<string>();

  constructor(options: ReporterOptions) {
    this.#options = options;
  }

  report(pass: Pass): Next {
    const { author, problems } = pass;
    const { events = [], metrics = [], requeueAfterMs } = pass.result;
    const source = `${author.reconciler} ${keyText(author.key)}`;
    const log = this.#options.log.child({ controller: author.reconciler, name: author.key.name });
    for (const done of pass.committed) this.#reportWrite(done, author, log);
    this.#reportProblems(problems, source, log);
    this.#sendEvents([...events, ...problems.flatMap(eventOf)], source, log);
    this.#sample(source, metrics);
    const next = nextOf(problems, requeueAfterMs);
    const controller = author.reconciler;
    this.#options.metrics.reconciled(controller, resultOf(problems, next), pass.seconds);
    for (const { retryPolicy } of problems)
      if (retryPolicy !== 'waiting') this.#options.metrics.failed(controller, retryPolicy === 'terminal');
    return next;
  }

  /** Withdraws the reports of keys that are no longer reconciled. */
  close(): void {
    for (const source of this.#sampled) this.#options.metrics.samples(source, []);
    this.#sampled.clear();
  }

  #sample(source: string, samples: readonly Sample[]): void {
    if (samples.length === 0) this.#sampled.delete(source);
    else this.#sampled.add(source);
    this.#options.metrics.samples(source, samples);
  }

  #reportWrite(done: Committed, author: Author, log: Logger): void {
    if (done.verb === 'unchanged' || done.verb === 'failed') return;
    this.#options.metrics.applied(author.reconciler, done.verb);
    log.info('object written', { verb: done.verb, role: done.ref.role, object: describeObject(done.ref) });
  }

  #reportProblems(problems: readonly ReconcileError[], source: string, log: Logger): void {
    const before = this.#saidProblems.get(source) ?? new Set<string>();
    const now = new Set(problems.map(identityOf));
    for (const problem of problems) {
      const { code, retryPolicy, message, hint } = problem;
      const passes = retryPolicy === 'waiting' && !isLasting(problem);
      const level = before.has(identityOf(problem)) ? 'debug' : passes ? 'info' : 'warn';
      log[level]('reconciliation failed', { code, retryPolicy, problem: message, hint });
    }
    if (before.size > 0 && now.size === 0) log.info('reconciliation recovered');
    remember(this.#saidProblems, source, now);
  }

  /** Sends events that the last reconcile did not have. Not awaited; a failure is only logged. */
  #sendEvents(events: readonly EventNote[], source: string, log: Logger): void {
    const before = this.#saidEvents.get(source) ?? new Set<string>();
    const fresh = events.filter((event) => !before.has(eventIdentity(event)));
    remember(this.#saidEvents, source, new Set(events.map(eventIdentity)));
    for (const event of fresh) {
      const { role, ...regarding } = event.regarding;
      const cluster = this.#options.clusters[role];
      const uid = regarding.uid ?? cluster.cache.store.get(regarding)?.metadata.uid;
      cluster.events.record({ ...event, regarding: { ...regarding, uid } }).catch((error: unknown) => {
        // Sent again after the next reconcile.
        this.#saidEvents.delete(source);
        const code = error instanceof Error && 'code' in error ? error.code : undefined;
        log.debug('event not sent', { reason: event.reason, code });
      });
    }
  }
}

function nextOf(problems: readonly ReconcileError[], requeueAfterMs: number | undefined): Next {
  if (problems.some(({ retryPolicy }) => retryPolicy === 'retry')) return 'retry';
  // A write that was rejected is retried after its `afterMs`: the cause may have been fixed, and the next resync is far.
  const afterProblems = problems.map(
    ({ retryPolicy, afterMs }) => afterMs ?? (retryPolicy === 'waiting' ? DEFAULT_WAIT_MS : undefined),
  );
  const waits = [...afterProblems, requeueAfterMs].filter((ms) => ms !== undefined);
  return waits.length === 0 ? 'idle' : { afterMs: Math.min(...waits) };
}

function resultOf(problems: readonly ReconcileError[], next: Next): ReconcileResult {
  if (problems.some(({ retryPolicy }) => retryPolicy !== 'waiting')) return 'error';
  return next === 'idle' ? 'success' : 'requeue_after';
}

/** Problems that need a person are also Events of their object. */
function eventOf(problem: ReconcileError): EventNote[] {
  const { regarding, code } = problem;
  if (!isLasting(problem) || regarding === undefined) return [];
  return [{ regarding, type: 'Warning', reason: code, action: 'Reconcile', note: withHint(problem) }];
}

function identityOf({ code, message }: ReconcileError): string {
  return `${code} ${message}`;
}

function eventIdentity({ regarding, type, reason, note }: EventNote): string {
  return JSON.stringify([regarding.role, describeObject(regarding), type, reason, note]);
}

function remember(map: Map<string, ReadonlySet<string>>, source: string, said: ReadonlySet<string>): void {
  if (said.size === 0) map.delete(source);
  else map.set(source, said);
}
