/**
 * Detects another writer that reverts our writes: we set the same object to the same content again and again. Two programs that
 * revert each other load the API server and roll pods, so ours stops and names the other.
 */

import { PullwrightError } from '../core/errors.ts';
import { describeObject, type KubeObject } from '../core/kubernetes/object.ts';
import { remember } from '../core/record.ts';
import type { KubeClient } from '../kube/client.ts';
import type { EventRecorder } from '../kube/events.ts';
import type { ClusterCache } from './cache.ts';
import type { Ref, Role } from './contract.ts';

/** Up to this number of corrections to one content within {@link WINDOW_MS} are attributed to edits by people. */
const TOLERATED = 5;
const WINDOW_MS = 120_000;
/** After a fight is found, the write is retried after this time. */
const HOLD_MS = 600_000;
/**
 * Objects whose corrections and refused writes are remembered. More than one fleet writes: an object that is forgotten before
 * its next write is new each time, so no fight over it is ever found, and its refusal requeues its key at once.
 */
export const REMEMBERED = 100_000;

interface Corrections {
  /** Undefined after the first correction: a second one is rare, and digests of thousands of objects are expensive. */
  readonly digest: string | undefined;
  readonly times: readonly number[];
  /** No write until then. */
  readonly heldUntil?: number;
}

export class FightBreaker {
  readonly #now: () => number;
  readonly #corrections = new Map<string, Corrections>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Whether `object` may be set to the content with digest `digestOf`. Counts the write if so. */
  allows(object: string, digestOf: () => string): boolean {
    const now = this.#now();
    const known = this.#corrections.get(object);
    if (known === undefined || !isRecent(known, now)) {
      remember(this.#corrections, object, { digest: undefined, times: [now] }, REMEMBERED);
      return true;
    }
    const digest = digestOf();
    const isSame = known.digest === undefined || known.digest === digest;
    const before: Corrections = isSame ? known : { digest, times: [] };
    if (before.heldUntil !== undefined && now < before.heldUntil) return false;
    const times = [...before.times.filter((at) => now - at < WINDOW_MS), now];
    const givesIn = times.length > TOLERATED;
    const held = givesIn || before.heldUntil !== undefined ? { heldUntil: now + HOLD_MS } : {};
    this.#corrections.set(object, { digest, times, ...held });
    return !givesIn;
  }

  /** Removes the write that was counted last: it failed, so it corrected nothing. */
  takeBack(object: string): void {
    const known = this.#corrections.get(object);
    if (known === undefined) return;
    const times = known.times.slice(0, -1);
    if (times.length === 0 && known.heldUntil === undefined) this.#corrections.delete(object);
    else this.#corrections.set(object, { ...known, times });
  }
}

/** Whether the object is on hold, was on hold until recently, or was corrected within {@link WINDOW_MS}. */
function isRecent({ times, heldUntil }: Corrections, now: number): boolean {
  if (heldUntil !== undefined) return now < heldUntil + HOLD_MS;
  return now - (times.at(-1) ?? 0) < WINDOW_MS;
}

const HINT = 'Use one manager only: set mode observe here, or stop the other';

/**
 * Writes to an existing object, unless another manager reverts it again and again. A failed write does not count: an API server
 * that fails for a while is not another manager.
 *
 * @param correction `digest`: identifies the written content; `hint`: how to end a fight
 * @throws PullwrightError `ManagedElsewhere`; else what `write` throws
 */
export async function withoutFight<T>(
  correction: {
    readonly ref: Ref;
    readonly before: KubeObject | undefined;
    readonly digest: () => string;
    readonly hint?: string;
  },
  { fights }: Pick<Cluster, 'fights'>,
  write: () => Promise<T>,
): Promise<T> {
  const { ref, before, digest, hint = HINT } = correction;
  const subject = describeObject(ref);
  if (!fights.allows(subject, digest)) throw fight(subject, before, hint);
  try {
    return await write();
  } catch (error) {
    fights.takeBack(subject);
    throw error;
  }
}

function fight(subject: string, before: KubeObject | undefined, hint: string): PullwrightError {
  const others = (before?.metadata.managedFields ?? [])
    .map(({ manager }) => manager ?? '')
    .filter((manager) => !manager.startsWith('pullwright-'));
  const names = [...new Set(others)].map((name) => `"${name}"`).join(', ');
  return new PullwrightError(
    `Cannot keep "${subject}" as declared: it is repeatedly reverted by ${names === '' ? 'another manager' : names}`,
    { code: 'ManagedElsewhere', retryPolicy: 'terminal', hint },
  );
}

// One cluster for the engine: client, cache, events, and whether this process may write.

/** The clusters of a pair: the same one twice when it is stand-alone. */
export type Clusters = Readonly<Record<Role, Cluster>>;

type ClusterParts = Pick<Cluster, 'server' | 'client' | 'cache' | 'events'> & {
  /** Whether this process leads; checked before every write. */
  readonly mayWrite: () => boolean;
};

export class Cluster {
  /** `https://host[:port][/path]` */
  readonly server: string;
  readonly client: KubeClient;
  readonly cache: ClusterCache;
  readonly events: EventRecorder;
  readonly fights: FightBreaker = new FightBreaker(() => performance.now());
  readonly #mayWrite: () => boolean;

  constructor({ server, client, cache, events, mayWrite }: ClusterParts) {
    this.server = server;
    this.client = client;
    this.cache = cache;
    this.events = events;
    this.#mayWrite = mayWrite;
  }

  /** Whether this process leads. */
  get mayWrite(): boolean {
    return this.#mayWrite();
  }

  /** @throws PullwrightError `NotLeader` */
  assertMayWrite(): void {
    if (!this.mayWrite) throw notLeader();
  }

  close(): void {
    this.cache.close();
    this.client.close();
  }
}

/** Fails a write of a process that lost the Lease: another one may lead by now. */
export function notLeader(): PullwrightError {
  return new PullwrightError('Cannot write: this process is no longer the leader', { code: 'NotLeader' });
}
