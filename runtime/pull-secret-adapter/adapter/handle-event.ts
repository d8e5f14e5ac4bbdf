/** From a message to a pass over its cluster, and from its end to what happens to the message. */

import { PullwrightError } from '../../core/errors.ts';
import { remember } from '../../core/record.ts';
import { codeOf, type Handled, type Handler } from '../broker/broker.ts';
import { clusterHint, parseCloudEvent } from '../cloud-event.ts';
import { readTraceparent } from '../names.ts';

/** What became of a message. */
export const EVENT_OUTCOMES = ['done', 'duplicate', 'superseded', 'other', 'dead', 'again'] as const;
export type EventOutcome = (typeof EVENT_OUTCOMES)[number];

/** `done`: with a pass that began after the request. `superseded`: by a newer request. `again`: the process ends first. */
export type AskEnd = 'done' | 'superseded' | 'again';

export interface HandlerOptions {
  /** Rejects with what the last of several passes failed with. */
  readonly ask: (clusterId: string, traceparent?: string) => Promise<AskEnd>;
  readonly count: (result: EventOutcome) => void;
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
 * time, is dropped: the look saw more than the event says. So is an event that still waits when a newer one of its cluster comes.
 */
export function eventHandler(options: HandlerOptions): Handler {
  const seen = new Map<string, true>();
  const failed = new Map<string, { readonly times: number; readonly successes: number }>();
  /** Messages on their way, by key. */
  const open = new Map<string, Promise<AskEnd>>();
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
    const { id: clusterId, generation } = hint;
    const { source, id, extensions } = read.event;
    const key = `${source} ${id} ${clusterId} ${generation ?? ''}`;
    if (seen.has(key)) return handled('duplicate');
    // Without an identifier each is a message of its own, and only its failures count together.
    const first = id === '' ? undefined : open.get(key);
    const asked = first ?? options.ask(clusterId, readTraceparent(extensions['traceparent']));
    open.set(key, asked);
    let end: AskEnd;
    try {
      end = await asked;
    } catch (error) {
      // A broker may take the end of one delivery for that of the message: one that comes again meanwhile ends with the first.
      return first === undefined ? afterFailure(key, error) : handled('again');
    } finally {
      open.delete(key);
    }
    if (end !== 'done') return handled(end);
    if (first !== undefined) return handled('duplicate');
    successes += 1;
    failed.delete(key);
    if (id !== '') remember(seen, key, true, REMEMBERED);
    return handled('done');
  };
}
