/**
 * Slots that a fleet shares, so that never more than so many units restart at once: named Leases, one holder each.
 *
 * A node asks for one slot only, chosen by its name, so that a thousand waiting nodes are two hundred requests a second,
 * however many slots there are. Whoever gets none within one window, or cannot reach the API server, goes on after
 * the delay of the spread: a broken control plane must not keep credentials from the nodes.
 */
import type { Clock } from '../host/clock.ts';
import type { KubeClient } from '../kube/client.ts';
import { LeaderElection } from '../kube/lease.ts';
import type { PullwrightError } from '../rules/errors.ts';
import { spreadDelay } from '../rules/rollout/spread.ts';

export interface Slots {
  /** What the state of the node says while it waits: for one of several slots, or for its turn. */
  readonly waits: 'Slot' | 'Spread';
  /** Whether the restart may begin. Starts asking when nobody asked yet; comes back at once. */
  granted(signal: AbortSignal): boolean;
  /** Gives the slot back. Never rejects: a slot that cannot be given back runs out by itself. */
  done(): Promise<void>;
}

export interface LeaseSlotsOptions {
  readonly client: () => Promise<KubeClient>;
  readonly namespace: string;
  readonly leases: readonly string[];
  readonly nodeName: string;
  /** Give up after this, and then wait for a share of it. Milliseconds. */
  readonly windowMs: number;
  readonly clock: Clock;
  readonly onError: (error: PullwrightError) => void;
}

/** A holder that died is replaced after a minute; one that lives renews every five seconds. */
const LEASE = { leaseSeconds: 60, renewSeconds: 40, retrySeconds: 5 };

export class LeaseSlots implements Slots {
  readonly waits = 'Slot';
  readonly #options: LeaseSlotsOptions;
  #asking: AbortController | undefined;
  #granted = false;
  #election: LeaderElection | undefined;

  constructor(options: LeaseSlotsOptions) {
    this.#options = options;
  }

  granted(signal: AbortSignal): boolean {
    if (this.#asking === undefined) {
      this.#asking = new AbortController();
      void this.#ask(AbortSignal.any([signal, this.#asking.signal]));
    }
    return this.#granted;
  }

  async done(): Promise<void> {
    this.#asking?.abort();
    const election = this.#election;
    this.#asking = undefined;
    this.#election = undefined;
    this.#granted = false;
    await election?.release().catch(() => undefined);
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const { clock, nodeName, windowMs } = this.#options;
    const inTime = AbortSignal.any([signal, AbortSignal.timeout(windowMs)]);
    const election = await this.#elect(inTime).catch(() => undefined);
    if (election === undefined) {
      // Not before the window is over, or the nodes that cannot reach the API server would all go first.
      if (!(await clock.sleep(spreadDelay(nodeName, 'slot', windowMs), signal))) return;
      this.#granted = !signal.aborted;
      return;
    }
    if (signal.aborted) return election.release().catch(() => undefined);
    this.#election = election;
    this.#granted = true;
    await election.keep(signal);
  }

  async #elect(signal: AbortSignal): Promise<LeaderElection | undefined> {
    const { client, namespace, leases, nodeName, clock, onError } = this.#options;
    const name = leases[Math.floor(spreadDelay(nodeName, 'lease', leases.length))] ?? '';
    const election = new LeaderElection({
      client: await client(),
      namespace,
      name,
      identity: nodeName,
      clock,
      ...LEASE,
      onError,
    });
    return (await election.acquire(signal)) ? election : undefined;
  }
}
