/**
 * Tells the API server about the node, beside the work on it and never in its way: one report at a time, the newest state
 * only, and what cannot be sent is dropped with one log line. The next look at the node is the next try.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../host/clock.ts';
import type { KubeClient } from '../kube/client.ts';
import { type EventInput, EventRecorder } from '../kube/events.ts';
import { PullwrightError } from '../rules/errors.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import type { NodeEvent, NodeState } from './events.ts';

/** The node, as references to it need it. */
export interface NodeIdentity {
  readonly name: string;
  readonly uid: string;
}

/** An Event, about the Node where nothing else is named. */
export type Said = Pick<EventInput, 'type' | 'reason' | 'action' | 'note'> &
  Partial<Pick<EventInput, 'regarding'>>;

/** What is said, and under which name. Pure. */
export interface NodeWords {
  /** Field manager of the PullStatus. */
  readonly manager: string;
  /** `reportingController` of the Events. */
  readonly controller: string;
  /** The PullStatus of a node and its status. */
  status(
    node: NodeIdentity,
    state: NodeState,
    present: KubeObject | undefined,
    now: Date,
  ): { readonly object: KubeObject; readonly status: Readonly<Record<string, unknown>> };
  /** The Event for what happened, or undefined when it is not worth one. */
  eventOf(happened: NodeEvent): Said | undefined;
  /** The Event for a state that was entered, or undefined when its PullStatus says enough. */
  eventOfState(state: NodeState): Said | undefined;
}

export interface NodeReporterOptions {
  readonly words: NodeWords;
  readonly client: () => Promise<KubeClient>;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

/** Events that wait at most, when the API server is slow; the oldest go first. */
const WAITING_EVENTS = 20;
/** How long the end of the agent waits for a report that is under way. */
const LAST_WORDS_MS = 3000;

interface Session {
  readonly client: KubeClient;
  readonly node: NodeIdentity;
  readonly recorder: EventRecorder;
  /** The PullStatus as it was last stored. */
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
  /** Whether the last state could not be stored. */
  #lost = false;

  constructor(options: NodeReporterOptions) {
    this.#options = options;
  }

  /** Comes back at once, and sends nothing when the state is the one that was stored last. */
  state(state: NodeState): void {
    const before = this.#last;
    if (!this.#lost && before !== undefined && isDeepStrictEqual(state, before)) return;
    this.#lost = false;
    this.#last = state;
    this.#pending = state;
    if (state.reason !== before?.reason || state.message !== before.message)
      this.#say(this.#options.words.eventOfState(state));
    this.#start();
  }

  /** Comes back at once. */
  event(happened: NodeEvent): void {
    const said = this.#options.words.eventOf(happened);
    if (said === undefined) return;
    this.#say(said);
    this.#start();
  }

  /** Waits a moment for what is under way. Never rejects. */
  async close(): Promise<void> {
    const enough = new AbortController();
    await Promise.race([this.#work, this.#options.clock.sleep(LAST_WORDS_MS, enough.signal)]);
    enough.abort();
    this.#closed = true;
    this.#forget();
  }

  /** Says what is no step of the work. Comes back at once. */
  say(said: Said): void {
    this.#say(said);
    this.#start();
  }

  #say(said: Said | undefined): void {
    if (said !== undefined) this.#events = [...this.#events, said].slice(-WAITING_EVENTS);
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
        for (const said of events) await this.#session.recorder.record(regarding(this.#session.node, said));
        if (state !== undefined) await this.#store(this.#session, state);
      } catch (error) {
        this.#forget();
        if (state !== undefined) this.#lost = true;
        this.#options.onError(error);
      }
    }
  }

  async #open(): Promise<Session> {
    const { nodeName, clock, words } = this.#options;
    const client = await this.#options.client();
    try {
      const node = await client.get({ apiVersion: 'v1', kind: 'Node', name: nodeName });
      if (node === undefined) throw noNode(nodeName);
      const identity = { name: nodeName, uid: node.metadata.uid ?? '' };
      const recorder = new EventRecorder({
        client,
        controller: words.controller,
        instance: nodeName,
        now: () => clock.now(),
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
    const now = new Date(this.#options.clock.now());
    if (session.present === undefined) {
      const options = { manager, force: true };
      session.present = await client.apply(words.status(node, state, undefined, now).object, options);
    }
    const { object, status } = words.status(node, state, session.present, now);
    const { name, namespace } = object.metadata;
    session.present = await client.apply(
      { ...object, metadata: { name, ...(namespace === undefined ? {} : { namespace }) }, status },
      { manager, subresource: 'status', force: true },
    );
  }

  /** The next report begins anew: with the CA and the Node as they are then. */
  #forget(): void {
    this.#session?.client.close();
    this.#session = undefined;
  }
}

function regarding({ name, uid }: NodeIdentity, said: Said): EventInput {
  return { regarding: { apiVersion: 'v1', kind: 'Node', name, uid }, ...said };
}

function noNode(name: string): PullwrightError {
  return new PullwrightError(`Cannot report: there is no Node "${name}"`, {
    code: 'NoNode',
    hint: 'Set NODE_NAME from spec.nodeName, or --node-name',
  });
}
