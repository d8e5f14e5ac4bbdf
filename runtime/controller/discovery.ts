/**
 * Finds hosted clusters by the HostedControlPlanes of the management cluster, and keeps a manager in line with them. The
 * kubeconfig of each is looked at again every minute.
 */
import { backOffMs, jitterMs, pause } from '../kube/back-off.ts';
import { asPullwrightError } from '../kube/failure.ts';
import { Places } from '../kube/places.ts';
import { type Redacted, sameSecret } from '../rules/redacted.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Cluster } from './cluster.ts';

import type { Scope } from './contract.ts';
import type { Manager } from './manager.ts';
import type { Source } from './source.ts';
import type { ObjectStore } from './store.ts';

/** How to reach the hosted clusters. */
export interface HostedClusters {
  /** The kubeconfig as it is now. */
  read(scope: Scope): Promise<Redacted<string>>;
  open(kubeconfig: Redacted<string>, scope: Scope): Promise<Cluster>;
}

export interface DiscoveryOptions {
  readonly management: Cluster;
  readonly manager: Manager;
  /** Hosted clusters that the store speaks of. */
  readonly scopesOf: (store: ObjectStore) => readonly Scope[];
  readonly hosted: HostedClusters;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The kubeconfig is looked at again after this time. @default {60000} */
  readonly refreshMs?: number;
}

const PLANES = { apiVersion: 'hypershift.openshift.io/v1beta1', kind: 'HostedControlPlane' };
const BACK_OFF = { firstMs: 1000, maxMs: 60_000 };

/** Hosted clusters that start at the same time, and how long one may hold its place. */
const STARTING = 16;
const START_PATIENCE_MS = 5000;

interface Follower {
  readonly stop: AbortController;
  readonly done: Promise<void>;
  failing: boolean;
}

export class Discovery {
  readonly #options: DiscoveryOptions;
  readonly #followers = new Map<string, Follower>();
  readonly #starting = new Places(STARTING);
  #source: Source | undefined;
  readonly #ends: (() => unknown)[] = [];

  constructor(options: DiscoveryOptions) {
    this.#options = options;
  }

  start(): void {
    const source = this.#options.management.cache.source(PLANES);
    this.#source = source;
    this.#ends.push(
      source.subscribe(() => this.#update()),
      source.onStatus(() => {
        this.#say(source);
        this.#update();
      }),
    );
    const counter = setInterval(() => this.#count(), 5000);
    counter.unref();
    this.#ends.push(() => clearInterval(counter));
  }

  /** Why it is not known which hosted clusters there are; undefined when it is. */
  get waitingFor(): string | undefined {
    const { is, error } = this.#source?.status ?? { is: 'new' as const };
    if (is === 'synced') return undefined;
    if (is === 'missing') return 'the cluster serves no HostedControlPlane: it is no management cluster';
    return error?.message ?? 'HostedControlPlanes are not read yet';
  }

  /** A hosted cluster that was found and not opened yet; undefined when there is none. */
  get unopened(): string | undefined {
    const opened = new Set(this.#options.manager.scopes.map(({ name }) => name));
    const [name] = [...this.#followers.keys()].filter((one) => !opened.has(one));
    return name === undefined ? undefined : `hosted cluster "${name}" is not opened`;
  }

  async stop(): Promise<void> {
    for (const end of this.#ends.splice(0)) end();
    for (const { stop } of this.#followers.values()) stop.abort();
    await Promise.all([...this.#followers.values()].map(({ done }) => done));
  }

  #say({ status: { is, error } }: Source): void {
    const { log } = this.#options;
    if (error !== undefined)
      log.warn('cannot look for hosted clusters', {
        code: error.code,
        problem: error.message,
        hint: error.hint,
      });
    else if (is === 'missing') log.warn('the cluster serves no HostedControlPlane');
    else log.info('looking for hosted clusters');
  }

  #update(): void {
    if (this.#source?.status.is !== 'synced') return;
    const { management, scopesOf } = this.#options;
    const planes = new Set(management.cache.store.list(PLANES).map(({ metadata }) => metadata.namespace));
    const scopes = scopesOf(management.cache.store).filter((scope) =>
      planes.has(scope.controlPlaneNamespace),
    );
    const names = new Set(scopes.map(({ name }) => name));
    for (const scope of scopes) if (!this.#followers.has(scope.name)) this.#follow(scope);
    for (const [name, follower] of this.#followers) if (!names.has(name)) this.#leave(name, follower);
  }

  #follow(scope: Scope): void {
    this.#options.log.info('hosted cluster found', { scope: scope.name });
    const stop = new AbortController();
    const follower: Follower = {
      stop,
      failing: false,
      done: this.#keepConnected(scope, stop.signal, (failing) => {
        follower.failing = failing;
      }),
    };
    this.#followers.set(scope.name, follower);
  }

  #leave(name: string, { stop }: Follower): void {
    this.#options.log.info('hosted cluster is gone', { scope: name });
    stop.abort();
    this.#followers.delete(name);
  }

  /** Opens the cluster, and opens it again whenever its kubeconfig changes. */
  async #keepConnected(scope: Scope, signal: AbortSignal, fail: (failing: boolean) => void): Promise<void> {
    const { manager, log, refreshMs = 60_000 } = this.#options;
    let used: Redacted<string> | undefined;
    let said = '';
    let failures = 0;
    while (!signal.aborted) {
      try {
        const text = await this.#options.hosted.read(scope);
        if (used === undefined || !sameSecret(used, text)) await this.#connect(scope, text, signal);
        [used, said, failures] = [text, '', 0];
        fail(false);
      } catch (error) {
        const { code, message, hint } = asPullwrightError(error);
        if (message !== said)
          log.warn('hosted cluster cannot be opened', { scope: scope.name, code, problem: message, hint });
        said = message;
        failures += 1;
        fail(true);
        // Without a usable kubeconfig the last good connection stays: credentials outlive a mistake in the Secret.
      }
      const waitMs =
        failures === 0
          ? jitterMs(refreshMs, 0.1, Math.random())
          : backOffMs(BACK_OFF, failures, Math.random());
      await pause(waitMs, signal);
    }
    await manager.remove(scope.name);
  }

  /** A few at a time: hundreds of clusters that fill their caches at once would all be late. One that does not answer holds up nobody for long. */
  async #connect(scope: Scope, text: Redacted<string>, signal: AbortSignal): Promise<void> {
    const { management, manager, hosted } = this.#options;
    await this.#starting.enter();
    try {
      const cluster = await hosted.open(text, scope);
      await manager.remove(scope.name);
      manager.add(scope, { hosted: cluster, management });
      const deadline = performance.now() + START_PATIENCE_MS;
      while (manager.waitingFor(scope.name) !== undefined && performance.now() < deadline && !signal.aborted)
        await pause(50, signal);
    } finally {
      this.#starting.leave();
    }
  }

  #count(): void {
    const counts = { ready: 0, starting: 0, failing: 0 };
    for (const [name, { failing }] of this.#followers) {
      if (failing) counts.failing += 1;
      else if (this.#options.manager.waitingFor(name) === undefined) counts.ready += 1;
      else counts.starting += 1;
    }
    this.#options.metrics.hostedClusters(counts);
  }
}
