/**
 * Books the restart slot of a node in one Lease that the fleet shares: its `renewTime` is the next free slot, its `acquireTime`
 * that of the node which booked last, by the rule in runtime/node/checkpoint.ts. A booking holds no lock, so that a node that
 * dies before its slot blocks no other node.
 *
 * A node that cannot reach the API server waits for its share of a window, by a hash of its name: a broken control plane must not
 * keep credentials from the nodes.
 */
import { PullwrightError } from '../core/errors.ts';
import { recordOf, textOf, valueAt } from '../core/record.ts';
import { asPullwrightError, unlessRefused } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import { microTime } from '../kube/events.ts';
import type { ObjectRef } from '../kube/resources.ts';
import { bookTurn, spreadDelay } from './checkpoint.ts';
import type { Clock } from './clock.ts';

/** Decides when the unit of this node may restart. */
export type Turns = Pick<BookedTurns, 'granted' | 'done'>;

export interface BookedTurnsOptions {
  readonly client: () => Promise<KubeClient>;
  /** The shared Lease, which must exist. */
  readonly lease: Required<ObjectRef>;
  /** The DaemonSet whose status has the number of nodes. */
  readonly daemonSet: Required<ObjectRef>;
  readonly nodeName: string;
  /** Window for a node that cannot book. Milliseconds. */
  readonly fallbackMs: number;
  readonly clock: Clock;
  /** Called when the slot has come. */
  readonly granted: () => void;
  readonly onError: (error: PullwrightError) => void;
}

const MANAGER = 'pullwright-agent';
/** Spreads the bookings of a fleet that wakes at once. */
const APART_MS = 20;
const MAX_TRIES = 30;

export class BookedTurns {
  readonly #options: BookedTurnsOptions;
  #booking: AbortController | undefined;
  #granted = false;

  constructor(options: BookedTurnsOptions) {
    this.#options = options;
  }

  /** Whether the restart may begin. Starts the booking if there is none; returns at once. */
  granted(signal: AbortSignal): boolean {
    if (this.#booking === undefined) {
      this.#booking = new AbortController();
      void this.#wait(AbortSignal.any([signal, this.#booking.signal]));
    }
    return this.#granted;
  }

  /** Cancels the booking. Never rejects. */
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

  /** Milliseconds until the slot. */
  async #book(signal: AbortSignal): Promise<number> {
    const { clock, daemonSet, nodeName } = this.#options;
    const client = await this.#options.client();
    try {
      const scheduled = valueAt(await client.get(daemonSet), 'status.desiredNumberScheduled');
      const nodes = Math.max(1, Number(scheduled ?? 1));
      let waitMs = spreadDelay(nodeName, 'ask', (nodes - 1) * APART_MS);
      for (let tries = 0; tries < MAX_TRIES; tries += 1) {
        if (!(await clock.sleep(waitMs, signal))) break;
        const turnInMs = await this.#try(client, nodes);
        if (turnInMs !== undefined) return turnInMs;
        waitMs = Math.random() * nodes * APART_MS;
      }
      throw new PullwrightError('Cannot book a turn: too many conflicting updates', { code: 'Conflict' });
    } finally {
      client.close();
    }
  }

  /** Milliseconds until the slot; undefined after a conflict with another node. */
  async #try(client: KubeClient, nodes: number): Promise<number | undefined> {
    const { clock, lease: ref, nodeName } = this.#options;
    const lease = await client.get(ref);
    if (lease === undefined)
      throw new PullwrightError(`Cannot book a turn: Lease/${ref.namespace}/${ref.name} not found`, {
        code: 'NoLease',
        hint: 'Apply the manifests of this version',
      });
    // The node that booked last, its slot, and the next free one.
    const before = recordOf(lease.spec);
    const own = before['holderIdentity'] === nodeName ? instantOf(before['acquireTime']) : undefined;
    const [now, asked] = [clock.now(), clock.monotonic()];
    const turn = bookTurn({ now, next: instantOf(before['renewTime']), nodes, own });
    const spec = {
      ...before,
      holderIdentity: nodeName,
      acquireTime: microTime(turn.at),
      renewTime: microTime(turn.next),
    };
    const booked = await unlessRefused(client.replace({ ...lease, spec }, MANAGER), 409);
    // Monotonic: a wall clock that is set during the request would change the wait.
    return booked && Math.max(0, turn.at - now - (clock.monotonic() - asked));
  }
}

function instantOf(time: unknown): number | undefined {
  const ms = Date.parse(textOf(time));
  return Number.isNaN(ms) ? undefined : ms;
}
