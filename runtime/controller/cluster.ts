/** One cluster as the engine sees it: a client, a cache, events, and the right to write. */
import type { KubeClient } from '../kube/client.ts';
import type { EventRecorder } from '../kube/events.ts';
import { PullwrightError } from '../rules/errors.ts';
import type { ClusterCache } from './cluster-cache.ts';
import { FightBreaker } from './conflict-breaker.ts';

export interface ClusterParts {
  /** `https://host[:port][/path]` */
  readonly server: string;
  readonly client: KubeClient;
  readonly cache: ClusterCache;
  readonly events: EventRecorder;
  /** Whether this process leads; asked before every write. */
  readonly mayWrite: () => boolean;
}

export class Cluster {
  readonly server: string;
  readonly client: KubeClient;
  readonly cache: ClusterCache;
  readonly events: EventRecorder;
  readonly fights: FightBreaker = new FightBreaker(() => performance.now());
  readonly #parts: ClusterParts;

  constructor(parts: ClusterParts) {
    this.server = parts.server;
    this.client = parts.client;
    this.cache = parts.cache;
    this.events = parts.events;
    this.#parts = parts;
  }

  /** Whether this process leads. */
  get mayWrite(): boolean {
    return this.#parts.mayWrite();
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

/** Somebody else may write by now. */
export function notLeader(): PullwrightError {
  return new PullwrightError('Cannot write: this process does not lead any more', { code: 'NotLeader' });
}
