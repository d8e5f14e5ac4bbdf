/** From a message to a look, and from its end to what happens to the message. */

import { backOffMs } from '../../core/back-off.ts';
import { describeError, PullwrightError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { Handled, Handler } from '../broker/broker.ts';
import { clusterHint, parseCloudEvent } from '../cloud-event.ts';
import { readTraceparent } from '../names.ts';

/** A map that forgets what was written longest ago. */
export class RecentKeys<V> {
  readonly #limit: number;
  readonly #entries = new Map<string, V>();

  /**
   * @param limit entries that are kept
   */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: string): V | undefined {
    return this.#entries.get(key);
  }

  set(key: string, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#limit) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }
}

/** Between looks at one cluster. */
const BACK_OFF = { firstMs: 1000, maxMs: 30_000 } as const;

/** What became of a message. */
export const EVENT_OUTCOMES = ['done', 'duplicate', 'superseded', 'other', 'dead', 'again'] as const;
export type EventOutcome = (typeof EVENT_OUTCOMES)[number];

export interface HandlerOptions {
  /** Settles with a look that began after the call. */
  readonly ask: (clusterId: string, traceparent?: string) => Promise<void>;
  readonly logger: Logger;
  readonly count: (result: EventOutcome) => void;
  /** Rejects when the process ends, or by the signal. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Looks that are tried for one delivery. @default {5} */
  readonly tries?: number;
  /** Deliveries whose looks all fail, while looks at other clusters succeed. @default {3} */
  readonly deliveries?: number;
}

/** Messages that are remembered. */
const REMEMBERED = 10_000;

/**
 * A message that can never be understood goes to the dead letters at once. One whose look fails is tried again with growing pauses, and
 * then it depends on whose fault it is: what the API refuses for this very cluster goes to the dead letters; what fails because the
 * API or the cluster cannot be reached goes back to the broker, however often, unless looks at other clusters succeed all the time:
 * then it would only hold up the others. A repetition of an event that was looked at already, which a broker may deliver at any
 * time, is dropped: the look saw more than the event says. So is an event that still waits when a newer one of its cluster comes, which is
 * looked at after it: a broker hands out so many messages at a time, and one cluster that cannot be looked at has one of these places, however
 * many events it has.
 */
export function eventHandler(options: HandlerOptions): Handler {
  const { tries = 5, deliveries = 3 } = options;
  const seen = new RecentKeys<true>(REMEMBERED);
  const failed = new RecentKeys<{ readonly times: number; readonly successes: number }>(REMEMBERED);
  const waiting = new Map<string, Waiting>();
  let successes = 0;

  const afterFailure = (key: string, error: unknown): Handled => {
    const reason = `the look at the cluster failed: ${codeOf(error)}`;
    if (error instanceof PullwrightError && error.retryPolicy === 'terminal') return dead(options, reason);
    const before = failed.get(key) ?? { times: 0, successes };
    const times = before.times + 1;
    if (times >= deliveries && successes > before.successes) {
      failed.delete(key);
      return dead(options, `${reason}, ${times} times while others succeeded`);
    }
    failed.set(key, { times, successes: before.successes });
    return again(options);
  };

  return async (message) => {
    const read = parseCloudEvent(message);
    if (!read.ok) return dead(options, read.reason);
    const hint = clusterHint(read.event);
    if (hint.kind === 'invalid') return dead(options, hint.reason);
    if (hint.kind === 'other') return done(options, 'other');
    const { clusterId, generation } = hint.hint;
    const { source, id } = read.event;
    const key = `${source} ${id} ${clusterId} ${generation ?? ''}`;
    if (id !== '' && seen.get(key) === true) return done(options, 'duplicate');
    const traceparent = readTraceparent(read.event.extensions['traceparent']);
    const end = await newestOf(waiting, { clusterId, key: id === '' ? undefined : key }, (signal) =>
      look(options, { clusterId, traceparent }, tries, signal),
    );
    if (typeof end === 'string') return done(options, end);
    if (end.is === 'stopped') return again(options);
    if (end.is === 'failed') return afterFailure(key, end.error);
    successes += 1;
    failed.delete(key);
    if (id !== '') seen.set(key, true);
    return done(options, 'done');
  };
}

type LookEnd = { readonly is: 'done' | 'stopped' } | { readonly is: 'failed'; readonly error: unknown };

/** The newest event of a cluster, on its way. */
interface Waiting {
  readonly key: string | undefined;
  readonly turn: AbortController;
  readonly end: Promise<LookEnd | 'superseded'>;
}

/** The end of the look, unless the next event of the cluster comes before. */
async function newestOf(
  waiting: Map<string, Waiting>,
  { clusterId, key }: { readonly clusterId: string; readonly key: string | undefined },
  begin: (signal: AbortSignal) => Promise<LookEnd>,
): Promise<LookEnd | 'superseded' | 'duplicate'> {
  const before = waiting.get(clusterId);
  if (before !== undefined && key !== undefined && before.key === key) return endOfOther(await before.end);
  before?.turn.abort();
  const turn = new AbortController();
  const superseded = new Promise<'superseded'>((resolve) => {
    turn.signal.addEventListener('abort', () => resolve('superseded'), { once: true });
  });
  const mine = { key, turn, end: Promise.race([begin(turn.signal), superseded]) };
  waiting.set(clusterId, mine);
  const end = await mine.end;
  if (waiting.get(clusterId) === mine) waiting.delete(clusterId);
  return end;
}

/** A broker may take the end of one delivery for that of the message: one that comes again while it is looked at ends with the first. */
function endOfOther(end: LookEnd | 'superseded'): LookEnd | 'superseded' | 'duplicate' {
  if (end === 'superseded') return end;
  return end.is === 'done' ? 'duplicate' : { is: 'stopped' };
}

async function look(
  options: HandlerOptions,
  { clusterId, traceparent }: { readonly clusterId: string; readonly traceparent: string | undefined },
  tries: number,
  signal: AbortSignal,
): Promise<LookEnd> {
  for (let attempt = 1; ; attempt += 1) {
    let failure: unknown;
    try {
      await options.ask(clusterId, traceparent);
      return { is: 'done' };
    } catch (error) {
      if (signal.aborted) return { is: 'stopped' };
      failure = error;
      const trace = traceparent === undefined ? {} : { traceparent };
      const fields = {
        cluster: clusterId,
        attempt,
        code: codeOf(error),
        error: describeError(error),
        ...trace,
      };
      options.logger.warn('A cluster could not be looked at', fields);
    }
    try {
      await options.pause(backOffMs(BACK_OFF, attempt - 1, Math.random()), signal);
    } catch {
      return { is: 'stopped' };
    }
    if (attempt >= tries) return { is: 'failed', error: failure };
  }
}

function codeOf(error: unknown): string {
  return error instanceof PullwrightError ? error.code : 'UnexpectedFailure';
}

function done(options: HandlerOptions, why: 'done' | 'duplicate' | 'superseded' | 'other'): Handled {
  options.count(why);
  return { outcome: 'done' };
}

function again(options: HandlerOptions): Handled {
  options.count('again');
  return { outcome: 'again' };
}

function dead(options: HandlerOptions, reason: string): Handled {
  options.count('dead');
  return { outcome: 'dead', reason };
}
