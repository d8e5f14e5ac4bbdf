/** Manages the pairs of clusters of a process. Each has its own controllers, so that a failing cluster does not affect others. */

import type { PullwrightError } from '../core/errors.ts';
import { afterAttended } from '../http/client.ts';
import type { Clusters } from './cluster.ts';
import type { ClusterPair, Reconciler } from './contract.ts';
import { Controller, type ControllerOptions } from './controller.ts';

export interface ManagerOptions extends Pick<ControllerOptions, 'facts' | 'log' | 'metrics' | 'clock'> {
  readonly reconcilers: readonly Reconciler[];
  /** Grace period for running passes of a removed pair; then they are aborted. @default {5000} */
  readonly lastPassesMs?: number;
}

interface Member {
  readonly scope: ClusterPair;
  readonly clusters: Clusters;
  readonly controllers: readonly Controller[];
}

export class Manager {
  readonly #options: ManagerOptions;
  readonly #members = new Map<string, Member>();
  /** Removed pairs with running passes. */
  readonly #leaving = new Map<string, Promise<void>>();
  #working = false;

  constructor(options: ManagerOptions) {
    this.#options = options;
  }

  get scopes(): readonly ClusterPair[] {
    return [...this.#members.values()].map(({ scope }) => scope);
  }

  /** @throws Error for an unknown pair */
  clustersOf(name: string): Clusters {
    const member = this.#members.get(name);
    if (member === undefined) throw new Error(`Unknown scope "${name}"`);
    return member.clusters;
  }

  /** Starts the watches of a pair, and its workers once {@link work} was called. */
  add(scope: ClusterPair, clusters: Clusters): void {
    const { reconcilers, log } = this.#options;
    const options = { ...this.#options, scope, clusters, log: log.child({ scope: scope.name }) };
    const controllers = reconcilers
      .filter((reconciler) => reconciler.only?.has(scope.name) ?? true)
      .map((reconciler) => new Controller({ ...options, reconciler }));
    this.#members.set(scope.name, { scope, clusters, controllers });
    for (const controller of controllers) {
      controller.watch();
      if (this.#working) controller.work();
    }
  }

  /** Stops a pair. Resolves after its last write. Deletes no objects. */
  remove(name: string): Promise<void> {
    const member = this.#members.get(name);
    if (member === undefined) return this.#leaving.get(name) ?? Promise.resolve();
    this.#members.delete(name);
    const left = ended(member, this.#options.lastPassesMs ?? 5000).finally(() => this.#leaving.delete(name));
    this.#leaving.set(name, left);
    return left;
  }

  /** Starts all workers, because this process leads from now on. */
  work(): void {
    this.#working = true;
    for (const { controllers } of this.#members.values())
      for (const controller of controllers) controller.work();
  }

  /** Stops all pairs. */
  async stop(): Promise<void> {
    await Promise.all([...this.#members.keys()].map((name) => this.remove(name)));
    await Promise.all(this.#leaving.values());
  }

  /** Why the pair is not synced yet; undefined if it is, or is unknown. */
  waitingFor(name: string): string | undefined {
    for (const controller of this.#members.get(name)?.controllers ?? [])
      if (!controller.readings.synced) return controller.readings.waitingFor ?? 'waiting for caches to sync';
    return undefined;
  }

  /** The read error of the pair's hosted cluster; undefined if there is none, or the pair is unknown. */
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
    const late = Promise.withResolvers<void>();
    const cancel = afterAttended(lastPassesMs, late.resolve);
    await Promise.race([passes.catch(() => undefined), late.promise]);
    cancel();
    hosted.close();
  }
  await passes;
  management.cache.sweep();
}
