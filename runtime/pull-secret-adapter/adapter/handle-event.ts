/** From a message to a look, and from its end to what happens to the message. */

import { backOffMs } from '../../core/back-off.ts';
import { describeError, PullwrightError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { remember } from '../../core/record.ts';
import type { Handled, Handler } from '../broker/broker.ts';
import { clusterHint, parseCloudEvent } from '../cloud-event.ts';
import { readTraceparent } from '../names.ts';

/** Between passes over one cluster. */
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
}

/** Deliveries whose looks all fail, while looks at other clusters succeed. */
const DELIVERIES = 3;

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
  const { tries = 5 } = options;
  const seen = new Map<string, true>();
  const failed = new Map<string, { readonly times: number; readonly successes: number }>();
  const waiting = new Map<string, Waiting>();
  let successes = 0;

  const handled = (outcome: EventOutcome, reason = ''): Handled => {
    options.count(outcome);
    if (outcome === 'dead') return { outcome, reason };
    return { outcome: outcome === 'again' ? outcome : 'done' };
  };
  const afterFailure = (key: string, error: unknown): Handled => {
    const reason = `the pass over the cluster failed: ${codeOf(error)}`;
    if (error instanceof PullwrightError && error.retryPolicy === 'terminal') return handled('dead', reason);
    const before = failed.get(key) ?? { times: 0, successes };
    const times = before.times + 1;
    if (times < DELIVERIES || successes === before.successes) {
      remember(failed, key, { times, successes: before.successes }, REMEMBERED);
      return handled('again');
    }
    failed.delete(key);
    return handled('dead', `${reason}, ${times} times while others succeeded`);
  };

  return async (message) => {
    const read = parseCloudEvent(message);
    if (!read.ok) return handled('dead', read.reason);
    const hint = clusterHint(read.event);
    if (hint.kind === 'invalid') return handled('dead', hint.reason);
    if (hint.kind === 'other') return handled('other');
    const { clusterId, generation } = hint;
    const { source, id } = read.event;
    const key = `${source} ${id} ${clusterId} ${generation ?? ''}`;
    if (id !== '' && seen.has(key)) return handled('duplicate');
    const traceparent = readTraceparent(read.event.extensions['traceparent']);
    const end = await newestOf(waiting, { clusterId, key: id === '' ? undefined : key }, (signal) =>
      look(options, { clusterId, traceparent }, tries, signal),
    );
    if (typeof end !== 'string') return afterFailure(key, end.error);
    if (end === 'done') {
      successes += 1;
      failed.delete(key);
      if (id !== '') remember(seen, key, true, REMEMBERED);
    }
    return handled(end);
  };
}

type LookEnd = 'done' | 'again' | { readonly error: unknown };

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
  return end === 'done' ? 'duplicate' : 'again';
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
      return 'done';
    } catch (error) {
      if (signal.aborted) return 'again';
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
      return 'again';
    }
    if (attempt >= tries) return { error: failure };
  }
}

function codeOf(error: unknown): string {
  return error instanceof PullwrightError ? error.code : 'UnexpectedFailure';
}
