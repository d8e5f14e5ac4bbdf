/**
 * Sentinel: lists the clusters, decides, publishes. The reports of the adapters show what was received. The only state is what was last
 * sent about each cluster and when, so that unanswered events are not repeated at every poll. Losing it costs one more event.
 *
 * Without reports, the age of a report stands still and the running system publishes at every poll, so the pause before
 * the next event about the same observation doubles.
 */

import { randomUUID } from 'node:crypto';
import { inParallel } from '../../core/parallel.ts';
import type { Publisher } from '../broker/broker.ts';
import { encodeCloudEvent } from '../cloud-event.ts';
import type { HyperfleetCluster } from '../cluster.ts';
import type { HyperfleetApi } from '../hyperfleet-api.ts';
import { planCluster } from '../plan.ts';
import type { MessageResource } from './messages.ts';
import { DEFAULT_SENTINEL, type SentinelSettings } from './options.ts';

// When Sentinel sends an event about a cluster. Two rules: `reconcile` as the running system decides (generation and age, strict), and
// `dependencies` as the requirement has it.

export interface SentinelDecision {
  readonly publish: boolean;
  readonly reason: string;
}

/**
 * @param now undefined: the clock is not known, and nothing is sent
 */
export function decideToPublish(
  resource: Pick<MessageResource, 'generation' | 'conditions'>,
  now: Date | undefined,
  {
    maxAgeSeconds,
    debounceSeconds,
  }: Pick<SentinelSettings, 'maxAgeSeconds' | 'debounceSeconds'> = DEFAULT_SENTINEL,
): SentinelDecision {
  if (now === undefined) return { publish: false, reason: 'now time is zero' };
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

export interface SentinelCount {
  readonly clusters: number;
  readonly published: number;
  /** Due, but said a moment ago. */
  readonly held: number;
  readonly failed: number;
  /** Why the first one could not be published. */
  readonly cause?: unknown;
  /** Clusters for which an expression had no value: no event is sent about them. Absent: none. */
  readonly undecided?: number;
  /** Why, of the first of them. */
  readonly undecidedCause?: string;
  /** With rule `dependencies`: clusters that wait for theirs, and have not waited for long. Absent: none. */
  readonly waiting?: number;
}

interface Sent {
  /** What the API showed then. */
  readonly observation: string;
  readonly at: number;
  readonly pauseMs: number;
}

/** Clusters that are worked on at the same time. */
const PARALLEL = 50;
/** A cluster that waits longer for its dependencies no longer counts as waiting. */
const EXPECTED_MS = 600_000;

export class Sentinel {
  readonly #api: Pick<HyperfleetApi, 'clusters' | 'statuses'>;
  readonly #publisher: Pick<Publisher, 'publish'>;
  readonly #settings: SentinelSettings;
  #sent = new Map<string, Sent>();
  /** With rule `dependencies`: of which state of each cluster it has spoken, so that the first event waits for no report to grow old. */
  #spokenOf = new Map<string, string>();
  /** Since when a state of a cluster waits for its dependencies. */
  #waiting = new Map<string, number>();
  #stillWaiting = new Map<string, number>();
  #cause: unknown;
  #undecided: string[] = [];

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
    const seen = new Map<string, Sent>();
    const spokenOf = new Map<string, string>();
    const count = { clusters: 0, published: 0, held: 0, failed: 0 };
    this.#cause = undefined;
    this.#undecided = [];
    this.#stillWaiting = new Map();
    for await (const group of groups(this.#api.clusters(searchByLabels(this.#settings.labels)))) {
      const ends = await inParallel(group, PARALLEL, (cluster) => this.#handle(cluster, now));
      count.clusters += group.length;
      for (const [index, end] of ends.entries()) {
        const id = group[index]?.id ?? '';
        const sent = this.#sent.get(id);
        const spoken = this.#spokenOf.get(id);
        if (spoken !== undefined) spokenOf.set(id, spoken);
        if (sent !== undefined && end !== 'not due') seen.set(id, sent);
        if (end !== 'not due') count[end] += 1;
      }
      if (count.failed > 0) return { ...count, ...this.#doubts(), cause: this.#cause };
    }
    // Clusters that have gone, and such that are in order again, are forgotten.
    this.#sent = seen;
    this.#spokenOf = spokenOf;
    this.#waiting = this.#stillWaiting;
    const expected = [...this.#waiting.values()].filter((since) => now.getTime() - since < EXPECTED_MS);
    return { ...count, ...this.#doubts(), ...(expected.length === 0 ? {} : { waiting: expected.length }) };
  }

  #doubts(): Pick<SentinelCount, 'undecided' | 'undecidedCause'> {
    const [undecidedCause] = this.#undecided;
    return undecidedCause === undefined ? {} : { undecided: this.#undecided.length, undecidedCause };
  }

  async #handle(cluster: HyperfleetCluster, now: Date): Promise<'not due' | 'published' | 'held' | 'failed'> {
    const reason = await this.#due(cluster, now);
    if (reason === undefined) return 'not due';
    const next = this.#next(cluster, now);
    if (next === undefined) return 'held';
    try {
      await this.#publisher.publish(eventFor(cluster, this.#settings, reason));
    } catch (error) {
      this.#cause ??= error;
      return 'failed';
    }
    this.#sent.set(cluster.id, next);
    this.#spokenOf.set(cluster.id, stateOf(cluster));
    return 'published';
  }

  /** Why an event is due; undefined: none is. */
  async #due(cluster: HyperfleetCluster, now: Date): Promise<string | undefined> {
    const { rule, messages } = this.#settings;
    if (rule === 'reconcile' && messages.decide !== undefined) {
      const { publish, reason, failed } = messages.decide(resourceOf(cluster), now);
      if (failed) this.#undecided.push(`cluster "${cluster.id}": ${reason}`);
      return publish ? reason : undefined;
    }
    const { publish, reason } = decideToPublish(cluster, now, this.#settings);
    if (rule === 'reconcile') return publish ? reason : undefined;
    const isFirst = !isReconciled(cluster) && this.#spokenOf.get(cluster.id) !== stateOf(cluster);
    if (!publish && !isFirst) return undefined;
    if (!(await this.#isWaiting(cluster))) return 'dependencies are complete';
    const key = `${cluster.id} ${stateOf(cluster)}`;
    this.#stillWaiting.set(key, this.#waiting.get(key) ?? now.getTime());
    return undefined;
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
  #next(cluster: HyperfleetCluster, now: Date): Sent | undefined {
    const { debounceSeconds, repeatLimitSeconds } = this.#settings;
    const reconciled = cluster.conditions.find((condition) => condition.type === 'Reconciled');
    const { generation, deleting } = cluster;
    const observation = JSON.stringify([
      generation,
      deleting,
      reconciled?.status,
      reconciled?.last_updated_time,
    ]);
    const first: Sent = { observation, at: now.getTime(), pauseMs: debounceSeconds * 1000 };
    const before = this.#sent.get(cluster.id);
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

/** So many at a time that neither the documents pile up nor each is waited for alone. */
async function* groups(
  clusters: AsyncIterable<HyperfleetCluster>,
): AsyncGenerator<readonly HyperfleetCluster[], void, undefined> {
  let group: HyperfleetCluster[] = [];
  for await (const cluster of clusters) {
    group.push(cluster);
    if (group.length < PARALLEL) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}

/** The cluster as expressions see it; without its `spec`, which holds the pull secret. */
function resourceOf(cluster: HyperfleetCluster): MessageResource {
  const { id, name, generation, conditions, labels, createdTime, updatedTime } = cluster;
  return {
    generation,
    conditions,
    fields: {
      id,
      name,
      kind: 'Cluster',
      href: `/api/hyperfleet/v1/clusters/${id}`,
      created_time: createdTime ?? '',
      updated_time: updatedTime ?? '',
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
    },
  };
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
    data: messages.data(resourceOf(cluster), reason),
    extensions: {},
  });
  return { id, body };
}
