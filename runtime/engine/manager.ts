/** Every pair of clusters that one process manages, each with its own controllers: one that is down harms no other. */

import type { PullwrightError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { afterAttended } from '../http/client.ts';
import type { Cluster } from './cluster.ts';
import type { ClusterPair, Reconciler, Role } from './contract.ts';
import { Controller } from './controller.ts';
import type { FactCache } from './lookups.ts';
import type { Metrics } from './metrics.ts';
import type { QueueClock } from './queue.ts';

export interface ManagerOptions {
  readonly reconcilers: readonly Reconciler[];
  readonly facts: FactCache;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly clock: QueueClock;
  /** Time in which passes of a removed pair may finish, counted while this process is running; then they are aborted. @default {5000} */
  readonly lastPassesMs?: number;
}

type Clusters = Readonly<Record<Role, Cluster>>;

interface Member {
  readonly scope: ClusterPair;
  readonly clusters: Clusters;
  readonly controllers: readonly Controller[];
}

export class Manager {
  readonly #options: ManagerOptions;
  readonly #members = new Map<string, Member>();
  /** Pairs whose last passes are under way. */
  readonly #leaving = new Map<string, Promise<void>>();
  #working = false;

  constructor(options: ManagerOptions) {
    this.#options = options;
  }

  get scopes(): readonly ClusterPair[] {
    return [...this.#members.values()].map(({ scope }) => scope);
  }

  /** @throws Error when the pair is not known */
  clustersOf(name: string): Clusters {
    const member = this.#members.get(name);
    if (member === undefined) throw new Error(`Unknown scope "${name}"`);
    return member.clusters;
  }

  /** Starts to watch a pair, and to work on it once {@link work} was called. */
  add(scope: ClusterPair, clusters: Clusters): void {
    const { reconcilers, log } = this.#options;
    const controllers = reconcilers
      .filter((reconciler) => reconciler.only?.has(scope.name) ?? true)
      .map(
        (reconciler) =>
          new Controller({
            ...this.#options,
            reconciler,
            scope,
            clusters,
            log: log.child({ scope: scope.name }),
          }),
      );
    this.#members.set(scope.name, { scope, clusters, controllers });
    for (const controller of controllers) {
      controller.watch();
      if (this.#working) controller.work();
    }
  }

  /** Stops a pair; resolves after its last write. Nothing is removed from its clusters. */
  remove(name: string): Promise<void> {
    const member = this.#members.get(name);
    if (member === undefined) return this.#leaving.get(name) ?? Promise.resolve();
    this.#members.delete(name);
    const left = ended(member, this.#options.lastPassesMs ?? 5000).finally(() => this.#leaving.delete(name));
    this.#leaving.set(name, left);
    return left;
  }

  /** From now on this process leads. */
  work(): void {
    this.#working = true;
    for (const { controllers } of this.#members.values())
      for (const controller of controllers) controller.work();
  }

  /** Ends running passes and all watches. */
  async stop(): Promise<void> {
    await Promise.all([...this.#members.keys()].map((name) => this.remove(name)));
    await Promise.all(this.#leaving.values());
  }

  /** Why the pair is not looked after yet; undefined when it is, or is not known. */
  waitingFor(name: string): string | undefined {
    for (const controller of this.#members.get(name)?.controllers ?? [])
      if (!controller.readings.synced) return controller.readings.waitingFor ?? 'caches are being filled';
    return undefined;
  }

  /** Why the hosted cluster of the pair cannot be read at the moment; undefined when it can, or is not known. */
  failureOf(name: string): PullwrightError | undefined {
    const failures = this.#members.get(name)?.controllers.map(({ readings }) => readings.hostedFailure);
    return failures?.find((failure) => failure !== undefined);
  }
}

async function ended(
  { controllers, clusters: { hosted, management } }: Member,
  lastPassesMs: number,
): Promise<void> {
  const passes = Promise.all(controllers.map((controller) => controller.stop()));
  if (hosted !== management) {
    await new Promise<void>((resolve) => {
      const cancel = afterAttended(lastPassesMs, resolve);
      const over = (): void => {
        cancel();
        resolve();
      };
      passes.then(over, over);
    });
    hosted.close();
  }
  await passes;
  management.cache.sweep();
}
