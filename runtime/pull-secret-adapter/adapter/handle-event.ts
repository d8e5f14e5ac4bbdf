/** Handles a broker message: reconciles its cluster, then acknowledges, requeues or dead-letters it. */

import { PullwrightError } from '../../core/errors.ts';
import { remember } from '../../core/record.ts';
import { codeOf, type Handled, type Handler } from '../broker/broker.ts';
import { clusterHint, parseCloudEvent } from '../cloud-event.ts';
import { readTraceparent } from '../names.ts';

/** Outcomes of a message. */
export const EVENT_OUTCOMES = ['done', 'duplicate', 'superseded', 'other', 'dead', 'again'] as const;
export type EventOutcome = (typeof EVENT_OUTCOMES)[number];

/** `done`: a pass that started after the request succeeded. `superseded`: by a newer request. `again`: the process shuts down. */
export type AskEnd = 'done' | 'superseded' | 'again';

/** Failed deliveries after which a message is dead-lettered, if passes over other clusters succeeded meanwhile. */
const DELIVERIES = 3;

/** Maximum number of remembered messages. */
const REMEMBERED = 10_000;

/**
 * Invalid messages are dead-lettered at once. A failed pass is retried with back-off. After the last retry, a terminal error
 * dead-letters the message, and any other error requeues it. A message that fails repeatedly while passes over other clusters
 * succeed is dead-lettered too, because it would only delay them. Duplicates of handled events are dropped, because the pass read
 * the current state of the cluster. A pending event is dropped when a newer one of its cluster arrives.
 *
 * @param ask reconciles with retries; rejects with the error of the last pass
 */
export function eventHandler(
  ask: (clusterId: string, traceparent?: string) => Promise<AskEnd>,
  count: (result: EventOutcome) => void,
): Handler {
  const seen = new Map<string, true>();
  const failed = new Map<string, { readonly times: number; readonly successes: number }>();
  /** Messages in progress, by key. */
  const open = new Map<string, Promise<AskEnd>>();
  let successes = 0;

  const handled = (outcome: EventOutcome, reason = ''): Handled => {
    count(outcome);
    if (outcome === 'dead') return { outcome, reason };
    return { outcome: outcome === 'again' ? outcome : 'done' };
  };
  const afterFailure = (key: string, error: unknown): Handled => {
    const reason = `the reconcile of the cluster failed: ${codeOf(error)}`;
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
    // Events without an ID are never duplicates, but their failures are counted together.
    const first = id === '' ? undefined : open.get(key);
    const asked = first ?? ask(clusterId, readTraceparent(extensions['traceparent']));
    open.set(key, asked);
    let end: AskEnd;
    try {
      end = await asked;
    } catch (error) {
      // Some brokers acknowledge all deliveries of a message at once, so a redelivery waits for the first. Count one failure.
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
