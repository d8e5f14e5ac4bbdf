/** Sentinel as a process: a go over all clusters, a pause, the next go. */
import { setTimeout as sleep } from 'node:timers/promises';
import { exponentialMs } from '../../core/back-off.ts';
import { describeError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { type Metrics, servePorts } from '../../engine/metrics.ts';
import { codeOf } from '../broker/broker.ts';
import type { Sentinel, SentinelCount } from './sentinel.ts';

export interface SentinelProcess {
  readonly sentinel: Pick<Sentinel, 'poll'>;
  /** Whether the broker takes events right now. */
  readonly connected: () => boolean;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly signal: AbortSignal;
  readonly pauseMs: number;
  /** One go, then the end. */
  readonly once: boolean;
  readonly ports: { readonly health: number | undefined; readonly metrics: number | undefined };
}

/** Pause after a go that failed: doubles from the normal one up to this. */
const MAX_PAUSE_MS = 60_000;
/** Pause while clusters are about to have their dependencies, so that each has its event within a second; not for a whole fleet. */
const SOON_MS = 500;
const FEW = 20;

/** Runs until the signal. @returns the exit code */
export async function runSentinel(process: SentinelProcess): Promise<number> {
  const { signal, pauseMs } = process;
  let failures = 0;
  const closeServers = await servePorts(process.ports, {
    ready: () => {
      if (!process.connected()) return 'the broker is not connected';
      return failures < 3 ? undefined : 'the last goes over the clusters failed';
    },
    metrics: () => process.metrics.render(),
  });
  do {
    const { isWhole, waiting } = await onePoll(process);
    failures = isWhole ? 0 : failures + 1;
    if (process.once) break;
    const usual = waiting > 0 && waiting <= FEW ? Math.min(SOON_MS, pauseMs) : pauseMs;
    const pause = Math.max(pauseMs, exponentialMs({ firstMs: pauseMs, maxMs: MAX_PAUSE_MS }, failures));
    await sleep(failures === 0 ? usual : pause, undefined, { signal }).catch(() => undefined);
  } while (!signal.aborted);
  await closeServers();
  return process.once && failures > 0 ? 1 : 0;
}

interface Go {
  /** False when it failed. */
  readonly isWhole: boolean;
  /** Clusters whose dependencies may be there at any moment. */
  readonly waiting: number;
}

async function onePoll({ sentinel, logger, metrics }: SentinelProcess): Promise<Go> {
  try {
    const count = await sentinel.poll(new Date());
    record(metrics, count);
    const loud = count.published + count.failed > 0;
    const { cause, waiting, ...numbers } = count;
    const why = cause === undefined ? {} : { error: `the broker did not take an event (${codeOf(cause)})` };
    const isWrong = count.failed + count.undecided > 0;
    logger[isWrong ? 'warn' : loud ? 'info' : 'debug']('polled', { ...numbers, ...why });
    return { isWhole: count.failed === 0, waiting };
  } catch (error) {
    countPoll(metrics, 'failed');
    logger.warn('The clusters could not be gone over', { error: describeError(error) });
    return { isWhole: false, waiting: 0 };
  }
}

function record(metrics: Metrics, count: SentinelCount): void {
  countPoll(metrics, count.failed === 0 ? 'done' : 'failed');
  for (const outcome of ['published', 'held', 'failed', 'undecided'] as const)
    metrics.count({
      name: 'pullwright_sentinel_events_total',
      help: 'Clusters that were due: published, held back because the same was said a moment ago, failed; undecided: an expression had no value',
      labels: { outcome },
      by: count[outcome],
    });
  if (count.failed > 0) return;
  metrics.samples('sentinel', [
    { name: 'pullwright_sentinel_clusters', help: 'Clusters of the last whole go', value: count.clusters },
    {
      name: 'pullwright_sentinel_last_poll_timestamp_seconds',
      help: 'When the last complete poll finished',
      value: Math.floor(Date.now() / 1000),
    },
  ]);
}

function countPoll(metrics: Metrics, result: 'done' | 'failed'): void {
  metrics.count({
    name: 'pullwright_sentinel_polls_total',
    help: 'Goes over all clusters',
    labels: { result },
  });
}
