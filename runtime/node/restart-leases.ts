/**
 * Books the turn of a node at the restart, in one Lease that the fleet shares: its `renewTime` is the next free turn, its
 * `acquireTime` that of the node which booked last. The rule is runtime/node/checkpoint.ts. A booking holds nothing, so that a node that dies before its turn blocks no other node.
 *
 * Who cannot reach the API server waits for a share of a window that its name decides: a broken control plane must not keep
 * credentials from the nodes.
 */
import { PullwrightError } from '../core/errors.ts';
import { asPullwrightError, isApiError } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import { microTime } from '../kube/events.ts';
import type { ObjectRef } from '../kube/resources.ts';
import { bookTurn, spreadDelay } from './checkpoint.ts';
import type { Clock } from './clock.ts';

/** Decides when the unit of this node may restart. */
export interface Turns {
  /** Whether the restart may begin. Starts the booking if there is none yet; returns at once. */
  granted(signal: AbortSignal): boolean;
  /** Gives up what was booked. Never rejects. */
  done(): Promise<void>;
}

export interface BookedTurnsOptions {
  readonly client: () => Promise<KubeClient>;
  /** The Lease in which the fleet books; it must exist. */
  readonly lease: Required<ObjectRef>;
  /** The DaemonSet whose status says how many nodes there are. */
  readonly daemonSet: Required<ObjectRef>;
  readonly nodeName: string;
  /** Who cannot book waits for a share of this. Milliseconds. */
  readonly fallbackMs: number;
  readonly clock: Clock;
  /** Told when the turn has come. */
  readonly granted: () => void;
  readonly onError: (error: PullwrightError) => void;
}

const MANAGER = 'pullwright-agent';
/** A fleet that wakes at once does not write one object at once. */
const APART_MS = 20;
const MAX_TRIES = 30;

export class BookedTurns implements Turns {
  readonly #options: BookedTurnsOptions;
  #booking: AbortController | undefined;
  #granted = false;

  constructor(options: BookedTurnsOptions) {
    this.#options = options;
  }

  granted(signal: AbortSignal): boolean {
    if (this.#booking === undefined) {
      this.#booking = new AbortController();
      void this.#wait(AbortSignal.any([signal, this.#booking.signal]));
    }
    return this.#granted;
  }

  done(): Promise<void> {
    this.#booking?.abort();
    this.#booking = undefined;
    this.#granted = false;
    return Promise.resolve();
  }

  async #wait(signal: AbortSignal): Promise<void> {
    const { clock, nodeName, fallbackMs, onError, granted } = this.#options;
    const waitMs = await this.#book(signal).catch((error: unknown) => {
      if (!signal.aborted) onError(asPullwrightError(error));
      return spreadDelay(nodeName, 'turn', fallbackMs);
    });
    if (!(await clock.sleep(waitMs, signal)) || signal.aborted) return;
    this.#granted = true;
    granted();
  }

  /** Milliseconds until the turn. */
  async #book(signal: AbortSignal): Promise<number> {
    const { clock, daemonSet, nodeName } = this.#options;
    const client = await this.#options.client();
    try {
      const status = (await client.get(daemonSet))?.['status'] as
        | { desiredNumberScheduled?: number }
        | undefined;
      const nodes = Math.max(1, status?.desiredNumberScheduled ?? 1);
      let waitMs = spreadDelay(nodeName, 'ask', (nodes - 1) * APART_MS);
      for (let tries = 0; tries < MAX_TRIES; tries += 1) {
        if (!(await clock.sleep(waitMs, signal))) break;
        const turnInMs = await this.#try(client, nodes);
        if (turnInMs !== undefined) return turnInMs;
        waitMs = Math.random() * nodes * APART_MS;
      }
      throw new PullwrightError('Cannot book a turn: others were always faster', { code: 'Conflict' });
    } finally {
      client.close();
    }
  }

  /** Milliseconds until the turn, or undefined when another node was faster. */
  async #try(client: KubeClient, nodes: number): Promise<number | undefined> {
    const { clock, lease: ref, nodeName } = this.#options;
    const lease = await client.get(ref);
    if (lease === undefined)
      throw new PullwrightError(`Cannot book a turn: Lease/${ref.namespace}/${ref.name} not found`, {
        code: 'NoLease',
        hint: 'Apply the manifests that came with this version',
      });
    const before = (lease.spec ?? {}) as BookedLease;
    const own = before.holderIdentity === nodeName ? instantOf(before.acquireTime) : undefined;
    const [now, asked] = [clock.now(), clock.monotonic()];
    const turn = bookTurn({ now, next: instantOf(before.renewTime), nodes, own });
    const spec = {
      ...before,
      holderIdentity: nodeName,
      acquireTime: microTime(turn.at),
      renewTime: microTime(turn.next),
    };
    try {
      await client.replace({ ...lease, spec }, MANAGER);
      // By the monotonic clock: a wall clock that is set during the request would change the wait by its jump.
      return Math.max(0, turn.at - now - (clock.monotonic() - asked));
    } catch (error) {
      if (isApiError(error, 409)) return undefined;
      throw error;
    }
  }
}

/** Who booked last, that turn, and the next free one. */
interface BookedLease {
  readonly holderIdentity?: string;
  readonly acquireTime?: string;
  readonly renewTime?: string;
}

function instantOf(time: string | undefined): number | undefined {
  const ms = Date.parse(time ?? '');
  return Number.isNaN(ms) ? undefined : ms;
}
