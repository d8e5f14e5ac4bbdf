/**
 * Sentinel: lists the clusters, decides, publishes. The reports of the adapters show what was received. The only state is what was last
 * sent about each cluster and when, so that unanswered events are not repeated at every poll. Losing it costs one more event.
 *
 * Without reports, the age of a report stands still and the running system publishes at every poll, so the pause before
 * the next event about the same observation doubles.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { exponentialMs } from '../../core/back-off.ts';
import { describeError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { inParallel } from '../../core/parallel.ts';
import { type Metrics, servePorts } from '../../engine/metrics.ts';
import { codeOf, type Publisher } from '../broker/broker.ts';
import { encodeCloudEvent } from '../cloud-event.ts';
import type { HyperfleetCluster } from '../cluster.ts';
import type { HyperfleetApi } from '../hyperfleet-api.ts';
import { planCluster } from '../plan.ts';
import type { MessageVerdict } from './messages.ts';
import { DEFAULT_SENTINEL, type SentinelSettings } from './options.ts';

// When Sentinel sends an event about a cluster. Two rules: `reconcile` as the running system decides (generation and age, strict), and
// `dependencies` as the requirement has it.

export function decideToPublish(
  resource: Pick<HyperfleetCluster, 'generation' | 'conditions'>,
  now: Date,
  {
    maxAgeSeconds,
    debounceSeconds,
  }: Pick<SentinelSettings, 'maxAgeSeconds' | 'debounceSeconds'> = DEFAULT_SENTINEL,
): MessageVerdict {
  const condition = resource.conditions.find((candidate) => candidate.type === 'Reconciled');
  const age = (now.getTime() - Date.parse(condition?.last_updated_time ?? '')) / 1000;
  const limit = condition?.status === 'True' ? maxAgeSeconds : debounceSeconds;
  const publish =
    resource.generation > (condition?.observed_generation ?? 0) ||
    // Nothing was reported yet: only a new resource counts.
    (Number.isNaN(age) ? resource.generation === 1 : age > limit);
  return { publish, reason: publish ? 'message decision matched' : 'message decision result is false' };
}

/** The `search` parameter that selects clusters by label: sorted, quotes doubled. */
export function searchByLabels(selector: Readonly<Record<string, string>>): string {
  return Object.keys(selector)
    .sort()
    .map((key) => `labels.${key}='${(selector[key] ?? '').replaceAll("'", "''")}'`)
    .join(' and ');
}

/** What a go over all clusters came to. */
export interface SentinelCount {
  readonly clusters: number;
  readonly published: number;
  /** Due, but said a moment ago. */
  readonly held: number;
  readonly failed: number;
  /** Why the first one could not be published. */
  readonly cause?: unknown;
  /** Clusters for which an expression had no value: no event is sent about them. */
  readonly undecided: number;
  /** Why, of the first of them. */
  readonly undecidedCause?: string;
  /** With rule `dependencies`: clusters that wait for theirs, and have not waited for long. */
  readonly waiting: number;
}

/** What is remembered of a cluster from one go to the next. */
interface Memory {
  /** The last event about it, while it is due. */
  sent?: { readonly observation: string; readonly at: number; readonly pauseMs: number };
  /** With rule `dependencies`: of which state it was spoken, so that the first event waits for no report to grow old. */
  spokenOf?: string;
  /** Since when this state of it waits for its dependencies. */
  waiting?: { readonly state: string; readonly since: number };
}

interface End {
  readonly is: 'not due' | 'published' | 'held' | 'failed' | 'undecided';
  /** Why it failed. */
  readonly cause?: unknown;
  /** Why it is undecided. */
  readonly why?: string;
}

const NOT_DUE: End = { is: 'not due' };

/** Clusters that are worked on at the same time. */
const PARALLEL = 50;
/** A cluster that waits longer for its dependencies no longer counts as waiting. */
const EXPECTED_MS = 600_000;

export class Sentinel {
  readonly #api: Pick<HyperfleetApi, 'clusters' | 'statuses'>;
  readonly #publisher: Pick<Publisher, 'publish'>;
  readonly #settings: SentinelSettings;
  #memories = new Map<string, Memory>();

  constructor(
    api: Pick<HyperfleetApi, 'clusters' | 'statuses'>,
    publisher: Pick<Publisher, 'publish'>,
    settings: SentinelSettings,
  ) {
    this.#api = api;
    this.#publisher = publisher;
    this.#settings = settings;
  }

  /**
   * One go over all clusters. Ends at the first group of which one could not be published: that is the broker's fault, and waiting
   * for it with every cluster in turn would take hours; the next go sends them all.
   *
   * @throws PullwrightError when the API fails; what was published until then is remembered
   */
  async poll(now: Date): Promise<SentinelCount> {
    const seen = new Map<string, Memory>();
    let clusters = 0;
    const ends: End[] = [];
    const all = (is: End['is']): readonly End[] => ends.filter((end) => end.is === is);
    for await (const group of groups(this.#api.clusters(searchByLabels(this.#settings.labels)))) {
      clusters += group.length;
      const work = (cluster: HyperfleetCluster): Promise<End> => {
        const memory = this.#memories.get(cluster.id) ?? {};
        for (const memories of [this.#memories, seen]) memories.set(cluster.id, memory);
        return this.#handle(cluster, memory, now);
      };
      ends.push(...(await inParallel(group, PARALLEL, work)));
      if (all('failed').length > 0) break;
    }
    const [failed, undecided] = [all('failed'), all('undecided')];
    // Clusters that have gone are forgotten.
    if (failed.length === 0) this.#memories = seen;
    const since = [...seen.values()].map(({ waiting }) => waiting?.since ?? Number.NEGATIVE_INFINITY);
    return {
      clusters,
      published: all('published').length,
      held: all('held').length,
      failed: failed.length,
      undecided: undecided.length,
      waiting: since.filter((one) => now.getTime() - one < EXPECTED_MS).length,
      ...(failed[0] === undefined ? {} : { cause: failed[0].cause }),
      ...(undecided[0] === undefined ? {} : { undecidedCause: undecided[0].why ?? '' }),
    };
  }

  async #handle(cluster: HyperfleetCluster, memory: Memory, now: Date): Promise<End> {
    const { publish, reason, failed } = await this.#decide(cluster, memory, now);
    if (!publish) {
      // It is in order again.
      delete memory.sent;
      return failed === true ? { is: 'undecided', why: `cluster "${cluster.id}": ${reason}` } : NOT_DUE;
    }
    const next = this.#next(cluster, memory, now);
    if (next === undefined) return { is: 'held' };
    try {
      await this.#publisher.publish(eventFor(cluster, this.#settings, reason));
    } catch (cause) {
      return { is: 'failed', cause };
    }
    memory.sent = next;
    memory.spokenOf = stateOf(cluster);
    return { is: 'published' };
  }

  /** Whether an event is due, and why. */
  async #decide(cluster: HyperfleetCluster, memory: Memory, now: Date): Promise<MessageVerdict> {
    const { rule, messages } = this.#settings;
    if (rule === 'reconcile' && messages.decide !== undefined) return messages.decide(cluster, now);
    const verdict = decideToPublish(cluster, now, this.#settings);
    if (rule === 'reconcile') return verdict;
    const state = stateOf(cluster);
    const isFirst = !isReconciled(cluster) && memory.spokenOf !== state;
    const isDue = verdict.publish || isFirst;
    const isWaiting = isDue && (await this.#isWaiting(cluster));
    if (!isWaiting) delete memory.waiting;
    else if (memory.waiting?.state !== state) memory.waiting = { state, since: now.getTime() };
    return { publish: isDue && !isWaiting, reason: 'dependencies are complete' };
  }

  async #isWaiting(cluster: HyperfleetCluster): Promise<boolean> {
    const { dependencies } = this.#settings;
    // A cluster that is being deleted, or that can never work, has no dependencies to wait for.
    if (planCluster(cluster, [], dependencies).verdict !== 'waiting') return false;
    // The cluster shows only those adapters that every cluster needs; the others are in the list of reports.
    const statuses = await this.#api.statuses(cluster.id);
    return planCluster(cluster, statuses, dependencies).verdict === 'waiting';
  }

  /** Undefined: the same was said a moment ago. */
  #next(cluster: HyperfleetCluster, { sent: before }: Memory, now: Date): Memory['sent'] {
    const { debounceSeconds, repeatLimitSeconds } = this.#settings;
    const reconciled = cluster.conditions.find((condition) => condition.type === 'Reconciled');
    const { generation, deleting } = cluster;
    const observation = JSON.stringify([
      generation,
      deleting,
      reconciled?.status,
      reconciled?.last_updated_time,
    ]);
    const first = { observation, at: now.getTime(), pauseMs: debounceSeconds * 1000 };
    if (before?.observation !== observation || repeatLimitSeconds === 0) return first;
    if (now.getTime() - before.at < before.pauseMs) return undefined;
    return { ...first, pauseMs: Math.min(before.pauseMs * 2, repeatLimitSeconds * 1000) };
  }
}

/** What an event is about: the same again is said only when the reports about it grow old. */
function stateOf({ generation, deleting }: HyperfleetCluster): string {
  return `${generation}${deleting ? ' deleting' : ''}`;
}

function isReconciled({ conditions, generation }: HyperfleetCluster): boolean {
  const found = conditions.find((condition) => condition.type === 'Reconciled');
  return found?.status === 'True' && found.observed_generation === generation;
}

/** So many at a time that neither the documents pile up nor each is waited for alone, as the pages of one document would be. */
async function* groups(pages: ReturnType<HyperfleetApi['clusters']>): typeof pages {
  const rest: HyperfleetCluster[] = [];
  for await (const page of pages) {
    rest.push(...page);
    while (rest.length >= PARALLEL) yield rest.splice(0, PARALLEL);
  }
  yield rest;
}

/** The event, as the running system writes it. */
export function eventFor(
  cluster: HyperfleetCluster,
  { rule, eventType, messages }: Pick<SentinelSettings, 'rule' | 'eventType' | 'messages'>,
  reason: string,
): { id: string; body: string } {
  const id = randomUUID();
  const body = encodeCloudEvent({
    specversion: '1.0',
    id,
    source: 'hyperfleet-sentinel',
    type: eventType ?? (rule === 'reconcile' ? 'com.redhat.hyperfleet.cluster.reconcile' : 'cluster.create'),
    datacontenttype: 'application/json',
    data: messages.data(cluster, reason),
    extensions: {},
  });
  return { id, body };
}

// Sentinel as a process: a go over all clusters, a pause, the next go.

interface SentinelProcess {
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

/** Whether it went well, and how many clusters may have their dependencies at any moment. */
async function onePoll({ sentinel, logger, metrics }: SentinelProcess) {
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
