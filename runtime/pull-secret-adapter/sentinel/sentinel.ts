/**
 * Sentinel polls the clusters and publishes events about those that need work. The only state is the last event of each cluster,
 * so that unanswered events are not repeated in every poll. After a restart, each is published again.
 *
 * While no adapter reports, an event stays due in every poll. The pause before the next event about the same observation doubles
 * for that reason.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { exponentialMs } from '../../core/back-off.ts';
import { describeError } from '../../core/errors.ts';
import { inParallel } from '../../core/parallel.ts';
import { defined } from '../../core/record.ts';
import { type Metrics, servePorts } from '../../engine/metrics.ts';
import { codeOf, type Publisher } from '../broker/broker.ts';
import type { Program } from '../broker/flags.ts';
import { encodeCloudEvent } from '../cloud-event.ts';
import type { HyperfleetCluster } from '../cluster.ts';
import type { HyperfleetApi } from '../hyperfleet-api.ts';
import { planCluster } from '../plan.ts';
import type { MessageVerdict } from './messages.ts';
import { DEFAULT_SENTINEL, type SentinelSettings } from './options.ts';

// Decides when an event is due, by one of two rules: `reconcile` as in the running system (generation and age), or `dependencies`
// as in the requirement.

export function decideToPublish(
  resource: Pick<HyperfleetCluster, 'generation' | 'conditions'>,
  now: Date,
  settings: Pick<SentinelSettings, 'maxAgeSeconds' | 'debounceSeconds'> = DEFAULT_SENTINEL,
): MessageVerdict {
  const condition = reconciledOf(resource);
  const age = (now.getTime() - Date.parse(condition?.last_updated_time ?? '')) / 1000;
  const limit = condition?.status === 'True' ? settings.maxAgeSeconds : settings.debounceSeconds;
  const publish =
    resource.generation > (condition?.observed_generation ?? 0) ||
    // Without any report, only a new resource is due.
    (Number.isNaN(age) ? resource.generation === 1 : age > limit);
  return { publish, reason: publish ? 'message decision matched' : 'message decision result is false' };
}

function reconciledOf({ conditions }: Pick<HyperfleetCluster, 'conditions'>) {
  return conditions.find((condition) => condition.type === 'Reconciled');
}

/** The `search` parameter that selects clusters by label: sorted, quotes doubled. */
export function searchByLabels(selector: Readonly<Record<string, string>>): string {
  return Object.keys(selector)
    .sort()
    .map((key) => `labels.${key}='${(selector[key] ?? '').replaceAll("'", "''")}'`)
    .join(' and ');
}

/** The result of a poll. */
export type SentinelCount = Readonly<Awaited<ReturnType<Sentinel['poll']>>>;

/** State of a cluster between polls. */
interface Memory {
  /** The last event, as long as one is due. */
  sent?: { readonly observation: string; readonly at: number; readonly pauseMs: number };
  /** With rule `dependencies`: state of the last event. An event about a new state is due regardless of the age of the report. */
  spokenOf?: string;
  /** Since when this state has been waiting for dependencies. */
  waiting?: { readonly state: string; readonly since: number };
}

interface End {
  readonly is: 'not due' | 'published' | 'held' | 'failed' | 'undecided';
  /** For `failed`. */
  readonly cause?: unknown;
  /** For `undecided`. */
  readonly why?: string;
}

/** Clusters handled at the same time. */
const PARALLEL = 50;
/** A cluster that waits longer for its dependencies is not counted as waiting. */
const EXPECTED_MS = 600_000;

type Api = Pick<HyperfleetApi, 'clusters' | 'statuses'>;

export class Sentinel {
  readonly #api: Api;
  readonly #publisher: Pick<Publisher, 'publish'>;
  readonly #settings: SentinelSettings;
  #memories = new Map<string, Memory>();

  constructor(api: Api, publisher: Pick<Publisher, 'publish'>, settings: SentinelSettings) {
    this.#api = api;
    this.#publisher = publisher;
    this.#settings = settings;
  }

  /**
   * Polls all clusters. Stops after the first group with a publishing error: the broker is probably down, and a timeout for every
   * cluster would take hours. The next poll publishes the rest.
   *
   * @throws PullwrightError if the API fails; events published until then are remembered
   */
  async poll(now: Date) {
    const seen = new Map<string, Memory>();
    const ends: End[] = [];
    for await (const group of groups(this.#api.clusters(searchByLabels(this.#settings.labels)))) {
      const work = (cluster: HyperfleetCluster): Promise<End> => {
        const memory = this.#memories.get(cluster.id) ?? {};
        for (const memories of [this.#memories, seen]) memories.set(cluster.id, memory);
        return this.#handle(cluster, memory, now);
      };
      ends.push(...(await inParallel(group, PARALLEL, work)));
      if (ends.some(({ is }) => is === 'failed')) break;
    }
    const { published = [], held = [], failed = [], undecided = [] } = Object.groupBy(ends, ({ is }) => is);
    // Forget deleted clusters, unless the poll was incomplete.
    if (failed.length === 0) this.#memories = seen;
    const since = [...seen.values()].map(({ waiting }) => waiting?.since ?? Number.NEGATIVE_INFINITY);
    return {
      clusters: ends.length,
      published: published.length,
      /** Due, but published recently. */
      held: held.length,
      failed: failed.length,
      /** Clusters for which an expression failed, so that no event is published. */
      undecided: undecided.length,
      /** With rule `dependencies`: clusters that have been waiting for them for less than {@link EXPECTED_MS}. */
      waiting: since.filter((one) => now.getTime() - one < EXPECTED_MS).length,
      // The errors of the first of them.
      ...defined({ cause: failed[0]?.cause, undecidedCause: undecided[0]?.why }),
    };
  }

  async #handle(cluster: HyperfleetCluster, memory: Memory, now: Date): Promise<End> {
    const { publish, reason, failed } = await this.#decide(cluster, memory, now);
    if (!publish) {
      // No event is due any more.
      delete memory.sent;
      if (failed !== true) return { is: 'not due' };
      return { is: 'undecided', why: `cluster "${cluster.id}": ${reason}` };
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

  /** Decides whether an event is due, and why. */
  async #decide(cluster: HyperfleetCluster, memory: Memory, now: Date): Promise<MessageVerdict> {
    const { rule, messages } = this.#settings;
    if (rule === 'reconcile' && messages.decide !== undefined) return messages.decide(cluster, now);
    const verdict = decideToPublish(cluster, now, this.#settings);
    if (rule === 'reconcile') return verdict;
    const state = stateOf(cluster);
    const found = reconciledOf(cluster);
    const isReconciled = found?.status === 'True' && found.observed_generation === cluster.generation;
    const isFirst = !isReconciled && memory.spokenOf !== state;
    const isDue = verdict.publish || isFirst;
    const isWaiting = isDue && (await this.#isWaiting(cluster));
    if (!isWaiting) delete memory.waiting;
    else if (memory.waiting?.state !== state) memory.waiting = { state, since: now.getTime() };
    return { publish: isDue && !isWaiting, reason: 'dependencies are complete' };
  }

  async #isWaiting(cluster: HyperfleetCluster): Promise<boolean> {
    const { dependencies } = this.#settings;
    // A cluster that is being deleted or is invalid does not wait for dependencies.
    if (planCluster(cluster, [], dependencies).verdict !== 'waiting') return false;
    // The cluster document has only the adapters that every cluster requires; the status list has all.
    const statuses = await this.#api.statuses(cluster.id);
    return planCluster(cluster, statuses, dependencies).verdict === 'waiting';
  }

  /** The event to remember; undefined if the same was published recently. */
  #next(cluster: HyperfleetCluster, { sent: before }: Memory, now: Date): Memory['sent'] {
    const { debounceSeconds, repeatLimitSeconds } = this.#settings;
    const { generation, deleting } = cluster;
    const { status, last_updated_time: updated } = reconciledOf(cluster) ?? {};
    const observation = JSON.stringify([generation, deleting, status, updated]);
    const first = { observation, at: now.getTime(), pauseMs: debounceSeconds * 1000 };
    if (before?.observation !== observation || repeatLimitSeconds === 0) return first;
    if (now.getTime() - before.at < before.pauseMs) return undefined;
    return { ...first, pauseMs: Math.min(before.pauseMs * 2, repeatLimitSeconds * 1000) };
  }
}

/** The state that an event is about; another event about the same state is due only when its reports are old. */
function stateOf({ generation, deleting }: HyperfleetCluster): string {
  return `${generation}${deleting ? ' deleting' : ''}`;
}

/** Regroups pages, so that memory is bounded and clusters are handled in parallel even if pages have one document each. */
async function* groups(pages: ReturnType<HyperfleetApi['clusters']>): typeof pages {
  const rest: HyperfleetCluster[] = [];
  for await (const page of pages) {
    rest.push(...page);
    while (rest.length >= PARALLEL) yield rest.splice(0, PARALLEL);
  }
  yield rest;
}

/** Encodes the event like the running system. */
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

// Sentinel as a process: polls in a loop.

interface SentinelProcess extends Readonly<Omit<Program, 'api' | 'broker'>> {
  readonly sentinel: Pick<Sentinel, 'poll'>;
  /** Whether the broker accepts events. */
  readonly connected: () => boolean;
  readonly pauseMs: number;
  /** Exit after one poll. */
  readonly once: boolean;
}

/** Maximum pause after failed polls, which doubles from the normal one. */
const MAX_PAUSE_MS = 60_000;
/** Pause while up to {@link FEW} clusters wait for dependencies, so that their events follow the last one within a second. */
const SOON_MS = 500;
const FEW = 20;

/** Runs until the signal. @returns the exit code */
export async function runSentinel(process: SentinelProcess): Promise<number> {
  const { signal, pauseMs } = process;
  let failures = 0;
  const closeServers = await servePorts(process.ports, {
    ready: () => {
      if (!process.connected()) return 'the broker is not connected';
      return failures < 3 ? undefined : 'the last polls failed';
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

/** Polls once. Returns whether it succeeded, and the number of waiting clusters. */
async function onePoll({ sentinel, logger, metrics }: SentinelProcess) {
  try {
    const count = await sentinel.poll(new Date());
    record(metrics, count);
    const loud = count.published + count.failed > 0;
    const { cause, waiting, ...numbers } = count;
    const why = cause === undefined ? {} : { error: `cannot publish an event (${codeOf(cause)})` };
    const isWrong = count.failed + count.undecided > 0;
    logger[isWrong ? 'warn' : loud ? 'info' : 'debug']('polled', { ...numbers, ...why });
    return { isWhole: count.failed === 0, waiting };
  } catch (error) {
    countPoll(metrics, 'failed');
    logger.warn('Cannot poll the clusters', { error: describeError(error) });
    return { isWhole: false, waiting: 0 };
  }
}

function record(metrics: Metrics, count: SentinelCount): void {
  countPoll(metrics, count.failed === 0 ? 'done' : 'failed');
  for (const outcome of ['published', 'held', 'failed', 'undecided'] as const)
    metrics.count({
      name: 'pullwright_sentinel_events_total',
      help: 'Clusters that were due: published, held because the same event was sent recently, failed; undecided: an expression failed',
      labels: { outcome },
      by: count[outcome],
    });
  if (count.failed > 0) return;
  metrics.samples('sentinel', [
    {
      name: 'pullwright_sentinel_clusters',
      help: 'Clusters of the last complete poll',
      value: count.clusters,
    },
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
    help: 'Polls of all clusters',
    labels: { result },
  });
}
