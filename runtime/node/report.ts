/**
 * Reports the node to the API server without blocking the work on it: one report at a time, the newest state only. A report that
 * cannot be sent is logged and dropped; the next check of the node retries.
 */

import { isDeepStrictEqual } from 'node:util';
import { describeError, PullwrightError } from '../core/errors.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import { type PullStatusInput, pullStatus } from '../core/kubernetes/pull-status.ts';
import type { Fields, Logger, LogLevel } from '../core/logger.ts';
import { VERSION } from '../core/version.ts';
import type { KubeClient } from '../kube/client.ts';
import { type EventInput, EventRecorder } from '../kube/events.ts';
import { HttpKubeClient } from '../kube/http-client.ts';
import { Informer, type InformerSink } from '../kube/informer.ts';
import { podConnection } from '../kube/pod-connection.ts';
import type { ObjectRef } from '../kube/resources.ts';
import { type Clock, systemClock } from './clock.ts';
import { NODE_HOLDS_REMOVAL, type NodeEvent, type NodeState } from './task.ts';

/** Name and uid of the Node, for references. */
type NodeIdentity = Readonly<Record<'name' | 'uid', string>>;

/** An Event; `regarding` is the Node unless set. */
export type Said = Pick<EventInput, 'type' | 'reason' | 'action' | 'note'> &
  Partial<Pick<EventInput, 'regarding'>>;

/** Texts of a program's reports, and the names it reports under. Pure. */
export interface NodeWords {
  /** Field manager of the PullStatus, and user agent. */
  readonly manager: `pullwright-${string}`;
  /** Reporter in the PullStatus; with the prefix `pullwright.dev/` the `reportingController` of Events. */
  readonly reporter: string;
  /** Metadata of the PullStatus that replace its defaults. */
  metadata(node: string): Partial<KubeObject['metadata']>;
  report(state: NodeState): Pick<PullStatusInput, 'conditions' | 'verdicts' | 'summary'>;
  written(happened: Happened<'written'>): Said;
  restarted(happened: Happened<'restarted' | 'recovered'>): Said;
  rolledBack(happened: Happened<'rolled-back'>): Said;
  /** The Event for a new state; undefined where the PullStatus is enough. */
  eventOfState(state: NodeState): Said | undefined;
}

type Happened<E> = Extract<NodeEvent, { event: E }>;

/** The PullStatus of a node and its status. The Node is the owner, so that garbage collection deletes both. */
export function nodeStatus(
  words: NodeWords,
  { name, uid }: NodeIdentity,
  state: NodeState,
  present: KubeObject | undefined,
  now: Date,
): ReturnType<typeof pullStatus> {
  const about = { apiVersion: 'v1', kind: 'Node', namespace: 'kube-system', name };
  const { reporter } = words;
  const { object, status } = pullStatus({ reporter, about, ...words.report(state), present, now });
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name, uid }];
  return {
    object: { ...object, metadata: { ...object.metadata, ...words.metadata(name), ownerReferences } },
    status,
  };
}

/** The Event for a node event; undefined for those that are only logged. */
export function eventOf(words: NodeWords, happened: NodeEvent): Said | undefined {
  switch (happened.event) {
    case 'written':
      return words.written(happened);
    case 'restarted':
      return words.restarted(happened);
    case 'rolled-back':
      return words.rolledBack(happened);
    case 'restart-failed': {
      const note = `Attempt ${happened.attempt}: ${describeError(happened.error)}`;
      return { type: 'Warning', reason: 'KubeletRestartFailed', action: 'Restart', note };
    }
    default:
      return undefined;
  }
}

/** Client with the token of the pod. @throws PullwrightError outside a pod with a token */
export async function podClient(
  program: string,
  env: Readonly<Record<string, string | undefined>>,
  serviceAccountDir: string,
  limits: { readonly timeoutMs?: number; readonly tries?: number } = {},
): Promise<KubeClient> {
  const connection = podConnection(env, serviceAccountDir);
  return new HttpKubeClient({ connection, userAgent: `${program}/${VERSION}`, ...limits });
}

/** An object to watch, and the receiver of its changes. */
export interface NamedWatch {
  readonly object: Omit<Required<ObjectRef>, 'namespace'> & Pick<ObjectRef, 'namespace'>;
  readonly sink: InformerSink;
}

/** Watches until the signal. Calls `failed` with the error of each attempt to connect. Never rejects. */
export async function watchNamed(
  watches: readonly NamedWatch[],
  client: () => Promise<KubeClient>,
  failed: (error: unknown) => void,
  signal: AbortSignal,
  clock: Clock,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const opened = await client();
      const informers = watches.map(({ object: { name, ...collection }, sink }) => {
        const selector = { fieldSelector: `metadata.name=${name}` };
        return new Informer({ client: opened, collection, selector, sink });
      });
      const stop = (): void => {
        for (const informer of informers) informer.stop();
        opened.close();
      };
      if (signal.aborted) return stop();
      signal.addEventListener('abort', stop, { once: true });
      for (const informer of informers) void informer.run();
      return;
    } catch (error) {
      failed(error);
      await clock.sleep(60_000, signal);
    }
  }
}

export interface NodeReporterOptions {
  readonly words: NodeWords;
  readonly client: () => Promise<KubeClient>;
  readonly nodeName: string;
  readonly onError: (error: unknown) => void;
}

/** Length of the Event queue while the API server is slow; the oldest are dropped. */
const WAITING_EVENTS = 20;
/** How long shutdown waits for a pending report. */
const LAST_WORDS_MS = 3000;

interface Session {
  readonly client: KubeClient;
  readonly node: NodeIdentity;
  readonly recorder: EventRecorder;
  /** The stored PullStatus. */
  present: KubeObject | undefined;
}

export class NodeReporter {
  readonly #options: NodeReporterOptions;
  #session: Session | undefined;
  #last: NodeState | undefined;
  #pending: NodeState | undefined;
  #events: Said[] = [];
  #work: Promise<void> | undefined;
  #closed = false;
  /** Whether storing the last state failed. */
  #lost = false;

  constructor(options: NodeReporterOptions) {
    this.#options = options;
  }

  /** Returns at once, and sends nothing for an unchanged state. */
  state(state: NodeState): void {
    const before = this.#last;
    if (!this.#lost && before !== undefined && isDeepStrictEqual(state, before)) return;
    this.#lost = false;
    this.#last = state;
    this.#pending = state;
    if (state.reason !== before?.reason || state.message !== before.message)
      this.say(this.#options.words.eventOfState(state));
    this.#start();
  }

  /** Returns at once. */
  event(happened: NodeEvent): void {
    this.say(eventOf(this.#options.words, happened));
  }

  /** Waits briefly for pending reports. Never rejects. */
  async close(): Promise<void> {
    const enough = new AbortController();
    await Promise.race([this.#work, systemClock.sleep(LAST_WORDS_MS, enough.signal)]);
    enough.abort();
    this.#closed = true;
    this.#forget();
  }

  /** Sends an Event, if any. Returns at once. */
  say(said: Said | undefined): void {
    if (said === undefined) return;
    this.#events = [...this.#events, said].slice(-WAITING_EVENTS);
    this.#start();
  }

  #start(): void {
    this.#work ??= this.#send().finally(() => {
      this.#work = undefined;
    });
  }

  async #send(): Promise<void> {
    while (!this.#closed && (this.#pending !== undefined || this.#events.length > 0)) {
      const state = this.#pending;
      const events = this.#events;
      this.#pending = undefined;
      this.#events = [];
      try {
        this.#session ??= await this.#open();
        const { node, recorder } = this.#session;
        for (const said of events)
          await recorder.record({ regarding: { apiVersion: 'v1', kind: 'Node', ...node }, ...said });
        if (state !== undefined) await this.#store(this.#session, state);
      } catch (error) {
        this.#forget();
        if (state !== undefined) this.#lost = true;
        this.#options.onError(error);
      }
    }
  }

  async #open(): Promise<Session> {
    const { nodeName, words } = this.#options;
    const client = await this.#options.client();
    try {
      const node = await client.get({ apiVersion: 'v1', kind: 'Node', name: nodeName });
      if (node === undefined)
        throw new PullwrightError(`Cannot report: Node "${nodeName}" not found`, {
          code: 'NoNode',
          hint: 'Set NODE_NAME from spec.nodeName, or --node-name',
        });
      const identity = { name: nodeName, uid: node.metadata.uid ?? '' };
      const recorder = new EventRecorder({
        client,
        controller: `pullwright.dev/${words.reporter}`,
        instance: nodeName,
        now: () => systemClock.now(),
      });
      return { client, node: identity, recorder, present: undefined };
    } catch (error) {
      client.close();
      throw error;
    }
  }

  async #store(session: Session, state: NodeState): Promise<void> {
    const { client, node } = session;
    const { words } = this.#options;
    const { manager } = words;
    const now = new Date(systemClock.now());
    session.present ??= await client.apply(nodeStatus(words, node, state, undefined, now).object, {
      manager,
      force: true,
    });
    const { object, status } = nodeStatus(words, node, state, session.present, now);
    const { name, namespace } = object.metadata;
    session.present = await client.apply(
      { ...object, metadata: { name, ...(namespace === undefined ? {} : { namespace }) }, status },
      { manager, subresource: 'status', force: true },
    );
  }

  /** The next report connects again, with the current CA and Node. */
  #forget(): void {
    this.#session?.client.close();
    this.#session = undefined;
  }
}

// Log lines of node events: one constant message per event, with fields.

const MESSAGES: Readonly<Record<NodeEvent['event'], readonly [LogLevel, string]>> = {
  written: ['info', 'File written'],
  'write-failed': ['error', 'Cannot write the file'],
  restarting: ['info', 'Restarting the unit'],
  restarted: ['info', 'Unit restarted'],
  recovered: ['warn', 'Unit is running with the old file'],
  'restart-failed': ['warn', 'Restart of the unit failed'],
  'recover-failed': ['error', 'Unit does not start with the old file'],
  'rolled-back': ['error', 'Unit does not start with the new file: the old one is restored'],
  'turn-failed': ['warn', 'Cannot book a turn for the restart'],
  'state-failed': ['error', 'Cannot store the journal'],
  'journal-damaged': ['warn', 'The journal is unreadable and is recreated'],
  resumed: ['info', 'Resuming an interrupted change'],
  'made-private': ['warn', 'Corrected a mode that let others read credentials'],
  swept: ['info', 'Removed leftovers of a killed run'],
};

/** Logs an event. */
export function logEvent(log: Logger, event: NodeEvent): void {
  const [level, message] = MESSAGES[event.event];
  const fields = Object.entries(event).map(([name, value]): [string, unknown] => [
    name,
    value instanceof Error ? describeError(value) : value,
  ]);
  log[level](message, Object.fromEntries(fields));
}

/** Logs a new state. */
export function logState(log: Logger, state: NodeState): void {
  const fields: Fields = { reason: state.reason, detail: state.message };
  if (state.reason === NODE_HOLDS_REMOVAL) log.warn('A removal is on hold', fields);
  else if (state.ready) log.info('Node is in sync', fields);
  else if (state.busy === true) log.info('Node is being synced', fields);
  else log.warn('Node is not in sync', fields);
}

// Counters of node events, in the text format of Prometheus. Without a library, because this runs on every node
// of a fleet: a metrics library would be most of the loaded code.

/** Counter names without the prefix, their help, and the events that each counts. */
const COUNTERS: readonly (readonly [name: string, help: string, ...NodeEvent['event'][]])[] = [
  ['writes_total', 'Files written', 'written'],
  ['write_failures_total', 'Files that could not be written', 'write-failed'],
  ['restarts_total', 'Restarts of the unit that were successful', 'restarted'],
  ['restart_failures_total', 'Attempts to restart the unit that failed', 'restart-failed', 'recover-failed'],
  ['rollbacks_total', 'Files restored because the unit did not start', 'rolled-back'],
];

export type Gauge = Readonly<ReturnType<typeof gauge>>;

/** @param sample name and labels */
export function gauge(sample: string, help: string, value: number) {
  return { sample, help, value };
}

export class NodeMetrics {
  readonly #counts = new Map<NodeEvent['event'], number>();
  readonly #started: number;
  readonly #prefix: string;
  #state: NodeState = { ready: false, reason: 'Starting', message: '' };
  #since: number;

  /** `now`: milliseconds since 1970. */
  constructor(now: number, prefix: `pullwright_${string}` = 'pullwright_agent') {
    this.#prefix = prefix;
    this.#started = now;
    this.#since = now;
  }

  event({ event }: NodeEvent): void {
    this.#counts.set(event, this.#countOf(event) + 1);
  }

  #countOf(event: NodeEvent['event']): number {
    return this.#counts.get(event) ?? 0;
  }

  state(state: NodeState, now: number): void {
    if (state.ready !== this.#state.ready) this.#since = now;
    this.#state = state;
  }

  /** The page for a scrape. Samples of one name must be adjacent in `more`. */
  text(more: readonly Gauge[] = []): string {
    const { ready, reason } = this.#state;
    const prefix = this.#prefix;
    const isWithheld = reason === 'BreakerOpen';
    const inSync = 'Whether the file matches the desired content and no restart is pending';
    const withheld = 'Whether content is withheld because the unit did not start with it';
    const gauges: readonly Gauge[] = [
      gauge(`${prefix}_in_sync`, inSync, ready ? 1 : 0),
      gauge(`${prefix}_in_sync_since_seconds`, 'When in_sync last changed', this.#since / 1000),
      gauge(`${prefix}_breaker_open`, withheld, isWithheld ? 1 : 0),
      gauge('process_start_time_seconds', 'When the agent started', this.#started / 1000),
      gauge(`pullwright_build_info{version="${VERSION}"}`, 'Version of the agent', 1),
      ...more,
    ];
    const counters = COUNTERS.map(([name, help, ...events]) => {
      const count = events.reduce((sum, event) => sum + this.#countOf(event), 0);
      return gauge(`${prefix}_${name}`, help, count);
    });
    return [...linesOf('gauge', gauges), ...linesOf('counter', counters), ''].join('\n');
  }
}

/** Lines with one HELP and TYPE per name. */
function linesOf(type: 'gauge' | 'counter', samples: readonly Gauge[]): readonly string[] {
  const told = new Set<string>();
  return samples.flatMap(({ sample, help, value }) => {
    const name = sample.replace(/\{.*/, '');
    const head = told.has(name) ? [] : [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
    told.add(name);
    return [...head, `${sample} ${value}`];
  });
}

/** Age of the oldest unused auth file; see `oldestAuthFileMs`. */
export function authFileAge(ms: number): Gauge {
  const help = 'Age of the oldest auth file that no pull has used; 0 when there is none';
  return gauge('pullwright_auth_file_oldest_seconds', help, ms / 1000);
}
