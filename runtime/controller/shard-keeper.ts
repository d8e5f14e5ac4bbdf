/**
 * This process among the replicas that divide the hosted clusters: it has a place among them, takes the shards that are to be its own,
 * and gives up those that are another one's. A shard is a Lease; who has it alone may write to the clusters of the shard.
 */
import { randomUUID } from 'node:crypto';
import type { KubeClient } from '../kube/client.ts';
import { asPullwrightError } from '../kube/failure.ts';
import { LeaderElection, type LeaseClock, type LeaseOptions } from '../kube/lease.ts';
import { jitterMs } from '../rules/back-off.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import {
  assignShards,
  RECONCILER_LEASE,
  replicaLease,
  shardLayout,
  shardLease,
  shardOf,
} from '../rules/kubernetes/shards.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';

/** What looks after the clusters of this process's shards. */
export interface ShardWork {
  /** {@link ShardKeeper.serves} says yes to more clusters than before. */
  taken(): void;
  /** Lets go of the clusters for which `isLeaving` holds; resolves after the last write to any of them. */
  letGo(isLeaving: (scope: string) => boolean): Promise<void>;
}

export interface ShardKeeperOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  /** How many shards there are. */
  readonly shards: number;
  /** Pod name or the like. */
  readonly instance: string;
  readonly clock: LeaseClock;
  readonly leaseSeconds: number;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly work: ShardWork;
}

interface Shard {
  readonly number: number;
  readonly name: string;
  readonly lease: LeaderElection;
  /** `giving`: its clusters are being let go of, the Lease is still ours. */
  state: 'none' | 'ours' | 'giving';
}

interface Place {
  readonly name: string;
  readonly lease: LeaderElection;
}

type Listed = ReadonlyMap<string, KubeObject>;

const LABELS = {
  'app.kubernetes.io/managed-by': 'pullwright',
  'app.kubernetes.io/name': RECONCILER_LEASE,
  'app.kubernetes.io/part-of': 'pullwright',
};
const LEASES = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' };

export class ShardKeeper {
  readonly #options: ShardKeeperOptions;
  readonly #identity: string;
  readonly #retryMs: number;
  /** How the clusters are divided: replicas with another number of shards wait for each other. */
  readonly #layout: LeaderElection;
  readonly #shards: readonly Shard[];
  readonly #places: readonly Place[];
  readonly #giving = new Set<Promise<void>>();
  #place: Place | undefined;
  #saidWaiting = false;
  #problem = '';

  constructor(options: ShardKeeperOptions) {
    this.#options = options;
    this.#identity = `${options.instance}_${randomUUID()}`;
    // The proportions of client-go: 15, 10 and 2 seconds.
    this.#retryMs = (options.leaseSeconds * 2000) / 15;
    this.#layout = this.#election(RECONCILER_LEASE, { identity: shardLayout(options.shards), shared: true });
    const numbers = Array.from({ length: options.shards }, (_, number) => number);
    this.#shards = numbers.map((number) => {
      const name = shardLease(number);
      return { number, name, lease: this.#election(name, { labels: LABELS }), state: 'none' };
    });
    this.#places = numbers.map(replicaLease).map((name) => ({
      name,
      lease: this.#election(name, { labels: LABELS }),
    }));
  }

  /** Whether the hosted cluster is to be looked after by this process. */
  serves(scope: string): boolean {
    return this.#shardOf(scope)?.state === 'ours';
  }

  /** Whether this process may write for the hosted cluster: asked before every write, answered without asking anybody. */
  mayWrite(scope: string): boolean {
    return this.#layout.isLeader() && this.#shardOf(scope)?.lease.isLeader() === true;
  }

  /** Whether this process may write for any hosted cluster. */
  get isActive(): boolean {
    return this.#layout.isLeader() && this.#shards.some(({ lease }) => lease.isLeader());
  }

  /** Leases of the shards whose clusters this process may write to now. */
  get held(): readonly string[] {
    if (!this.#layout.isLeader()) return [];
    return this.#shards.filter(({ lease }) => lease.isLeader()).map(({ name }) => name);
  }

  /** Takes part until `signal`; true when a Lease was lost that it had not given up. */
  async run(signal: AbortSignal): Promise<boolean> {
    this.#count();
    while (!signal.aborted) {
      try {
        await this.#round();
        this.#problem = '';
      } catch (error) {
        this.#say(error);
      }
      const lost = this.#lost();
      if (lost !== undefined && !signal.aborted) {
        this.#options.log.warn('lease lost', { lease: lost });
        return true;
      }
      await this.#options.clock.sleep(jitterMs(this.#retryMs, 0.2, Math.random()), signal);
    }
    return false;
  }

  /** Lets go of everything and gives it back, each shard as soon as its last write is done: one that hangs keeps no other. */
  async stop(): Promise<void> {
    for (const shard of this.#shards) if (shard.state === 'ours') void this.#give(shard);
    await Promise.all(this.#giving);
    await this.#release(this.#place);
    this.#count();
  }

  async #round(): Promise<void> {
    const listed = await this.#list();
    if (!(await this.#layout.attempt())) return;
    if (this.#place === undefined) return this.#takePlace(listed);
    const held = this.#shards.filter(({ state }) => state !== 'none');
    await Promise.all(
      [this.#place, ...held].map((one) => one.lease.attempt({ lease: listed.get(one.name) })),
    );
    const wanted = this.#wanted(listed);
    const taken = await Promise.all(
      this.#shards
        .filter(({ number, state }) => state === 'none' && wanted.has(number))
        .map((shard) => this.#take(shard, listed.get(shard.name))),
    );
    for (const shard of this.#shards)
      if (shard.state === 'ours' && !wanted.has(shard.number)) void this.#give(shard);
    if (taken.includes(true)) this.#options.work.taken();
    this.#count();
  }

  /** Shards come with the next round: those that start together know of each other by then. */
  async #takePlace(listed: Listed): Promise<void> {
    const free = this.#places.filter(({ name, lease }) => lease.holder(listed.get(name)) === undefined);
    for (const place of free) {
      if (!(await place.lease.attempt({ lease: listed.get(place.name) }))) continue;
      this.#place = place;
      this.#options.log.info('this process takes part', { lease: place.name, shards: this.#shards.length });
      return;
    }
    if (!this.#saidWaiting)
      this.#options.log.info('this process waits: there are as many replicas as shards');
    this.#saidWaiting = true;
  }

  /** The shards that this process is to have. */
  #wanted(listed: Listed): ReadonlySet<number> {
    const holderOf = ({ name, lease }: Place): string | undefined => lease.holder(listed.get(name));
    const others = this.#places.filter((place) => place !== this.#place).map(holderOf);
    const replicas = [this.#identity, ...others.filter((one) => one !== undefined)];
    const holders = this.#shards.map((shard) => (shard.state === 'none' ? holderOf(shard) : this.#identity));
    const assigned = assignShards(holders, replicas);
    return new Set(assigned.flatMap((replica, number) => (replica === this.#identity ? [number] : [])));
  }

  async #take(shard: Shard, lease: KubeObject | undefined): Promise<boolean> {
    if (shard.lease.holder(lease) !== undefined || !(await shard.lease.attempt({ lease }))) return false;
    shard.state = 'ours';
    this.#options.log.info('shard taken', { shard: shard.number });
    return true;
  }

  /** Its Lease is renewed until the last write is done. */
  #give(shard: Shard): Promise<void> {
    shard.state = 'giving';
    const given = this.#giveUp(shard).finally(() => this.#giving.delete(given));
    this.#giving.add(given);
    return given;
  }

  async #giveUp(shard: Shard): Promise<void> {
    await this.#options.work.letGo((scope) => this.#shardOf(scope) === shard);
    await this.#release(shard);
    shard.state = 'none';
    this.#options.log.info('shard given up', { shard: shard.number });
  }

  /** Never rejects: what is not released runs out. */
  async #release(held: Place | undefined): Promise<void> {
    try {
      await held?.lease.release();
    } catch {
      this.#options.log.warn('lease not released: it runs out by itself', { lease: held?.name });
    }
  }

  /** The Lease that this process relied on and has no more. */
  #lost(): string | undefined {
    const held = this.#shards.filter(({ state }) => state !== 'none');
    if (this.#place === undefined) return undefined;
    if (!this.#layout.isLeader()) return RECONCILER_LEASE;
    return [this.#place, ...held].find(({ lease }) => !lease.isLeader())?.name;
  }

  async #list(): Promise<Listed> {
    const { client, namespace } = this.#options;
    const { items } = await client.list({ ...LEASES, namespace });
    return new Map(items.map((lease) => [lease.metadata.name, lease]));
  }

  #shardOf(scope: string): Shard | undefined {
    return this.#shards[shardOf(scope, this.#shards.length)];
  }

  #count(): void {
    const { metrics } = this.#options;
    metrics.samples(
      'shards',
      this.#shards.map(({ number, lease }) => ({
        name: 'pullwright_shard_owned',
        help: '1 while this process has the shard of hosted clusters',
        value: lease.isLeader() ? 1 : 0,
        labels: { shard: String(number) },
      })),
    );
    metrics.leader(RECONCILER_LEASE, this.isActive);
  }

  #election(
    name: string,
    own: Pick<LeaseOptions, 'labels' | 'shared'> & { identity?: string },
  ): LeaderElection {
    const { client, namespace, clock, leaseSeconds } = this.#options;
    return new LeaderElection({
      client,
      namespace,
      name,
      identity: this.#identity,
      clock,
      leaseSeconds,
      renewSeconds: (leaseSeconds * 2) / 3,
      retrySeconds: (leaseSeconds * 2) / 15,
      onError: (error) => this.#say(error),
      ...own,
    });
  }

  #say(error: unknown): void {
    const { code, message, hint } = asPullwrightError(error);
    if (message !== this.#problem)
      this.#options.log.warn('lease not renewed', { code, problem: message, hint });
    this.#problem = message;
  }
}
