/** From a message to a look, and from its end to what happens to the message. */
import type { Handled, Handler } from '../brokers/broker.ts';
import { parseCloudEvent } from '../brokers/cloud-event.ts';
import { describeError } from '../rules/errors.ts';
import type { Logger } from '../telemetry/logger.ts';
import { clusterHint } from './cluster-event.ts';
import { backoffMs } from './retry.ts';

export interface HandlerOptions {
  /** Settles with a look that began after the call. */
  readonly ask: (clusterId: string) => Promise<void>;
  readonly logger: Logger;
  readonly count: (outcome: 'done' | 'duplicate' | 'other' | 'dead' | 'again') => void;
  /** Rejects when the process ends. */
  readonly pause: (ms: number) => Promise<void>;
  /** Looks that are tried for one delivery. @default {5} */
  readonly tries?: number;
}

/** Repetitions that are remembered. */
const REMEMBERED = 10_000;

/**
 * A message that can never be understood goes to the dead letters at once; one whose look fails is tried again with growing pauses
 * and then given back to the broker: the fault is ours or the API's, not the message's. A repetition of an event that was looked
 * at already, which a broker may deliver at any time, is dropped: the look saw more than the event says.
 */
export function eventHandler(options: HandlerOptions): Handler {
  const seen = new Set<string>();
  return async (message) => {
    const read = parseCloudEvent(message);
    if (!read.ok) return dead(options, read.reason);
    const hint = clusterHint(read.event);
    if (hint.kind === 'invalid') return dead(options, hint.reason);
    if (hint.kind === 'other') {
      options.count('other');
      return { outcome: 'done' };
    }
    const { clusterId, generation } = hint.hint;
    const { source, id } = read.event;
    const key = id === '' ? undefined : `${source} ${id} ${clusterId} ${generation ?? ''}`;
    if (key !== undefined && seen.has(key)) {
      options.count('duplicate');
      return { outcome: 'done' };
    }
    const done = await tried(options, clusterId);
    if (done && key !== undefined) remember(seen, key);
    options.count(done ? 'done' : 'again');
    return { outcome: done ? 'done' : 'again' };
  };
}

async function tried(options: HandlerOptions, clusterId: string): Promise<boolean> {
  const tries = options.tries ?? 5;
  for (let attempt = 1; attempt <= tries; attempt += 1) {
    try {
      await options.ask(clusterId);
      return true;
    } catch (error) {
      options.logger.warn('A cluster could not be looked at', {
        cluster: clusterId,
        attempt,
        error: describeError(error),
      });
    }
    try {
      await options.pause(backoffMs(attempt));
    } catch {
      return false;
    }
  }
  return false;
}

function dead(options: HandlerOptions, reason: string): Handled {
  options.count('dead');
  return { outcome: 'dead', reason };
}

function remember(seen: Set<string>, key: string): void {
  seen.add(key);
  if (seen.size <= REMEMBERED) return;
  for (const oldest of seen) {
    seen.delete(oldest);
    return;
  }
}
