/**
 * Finds hosted clusters by the HostedControlPlanes of the management cluster, and keeps a manager in line with them. The
 * kubeconfig of each is read again every minute.
 */
import { pause } from '../http/retry.ts';
import { isApiError } from '../kube/api-error.ts';
import { asPullwrightError } from '../kube/failure.ts';
import { backOffMs, jitterMs } from '../rules/back-off.ts';
import { PullwrightError } from '../rules/errors.ts';
import { type Redacted, sameSecret } from '../rules/redacted.ts';
import type { Cluster } from './cluster.ts';
import type { Scope } from './contract.ts';
import type { DiscoveryOptions, Follower } from './discovery-options.ts';
import { filled, startingPlaces } from './discovery-start.ts';
import { HostedReport, PASSING_FAILURES } from './hosted-report.ts';
import type { Source } from './source.ts';

const PLANES = { apiVersion: 'hypershift.openshift.io/v1beta1', kind: 'HostedControlPlane' };
/** Its UID identifies a cluster, whatever address leads there. */
const KUBE_SYSTEM = { apiVersion: 'v1', kind: 'Namespace', name: 'kube-system' };
const BACK_OFF = { firstMs: 1000, maxMs: 60_000 };

export class Discovery {
  readonly #options: DiscoveryOptions;
  readonly #followers = new Map<string, Follower>();
  /** Hosted clusters that there are, whoever looks after them. */
  #there: ReadonlySet<string> = new Set();
  readonly #starting = startingPlaces();
  /** UIDs of the open clusters by name; that of the management cluster is {@link #ownUid}. */
  readonly #uids = new Map<string, string | undefined>();
  #ownUid: string | undefined;
  readonly #report: HostedReport;
  #source: Source | undefined;
  readonly #ends: (() => unknown)[] = [];

  constructor(options: DiscoveryOptions) {
    this.#options = options;
    this.#report = new HostedReport(options, this.#followers);
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
    const counter = setInterval(() => this.#report.look(this.waitingFor === undefined), 5000);
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
    const [found] = [...this.#followers].filter(([name]) => !opened.has(name));
    if (found === undefined) return undefined;
    const [name, { failure }] = found;
    return failure?.message ?? `hosted cluster "${name}" is not opened`;
  }

  /** Other hosted clusters are this process's by now: looks after those that have come. */
  shareChanged(): void {
    this.#update();
  }

  /** Lets go of hosted clusters as they are; resolves when nothing of them is under way any more. */
  async letGo(isLeaving: (name: string) => boolean): Promise<void> {
    const leaving = [...this.#followers].filter(([name]) => isLeaving(name));
    for (const [name, follower] of leaving)
      this.#leave(name, follower, 'hosted cluster is left to another replica');
    await Promise.all(leaving.map(([, { done }]) => done));
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
    const { management, scopesOf, share } = this.#options;
    const planes = new Set(management.cache.store.list(PLANES).map(({ metadata }) => metadata.namespace));
    const all = scopesOf(management.cache.store).filter((scope) => planes.has(scope.controlPlaneNamespace));
    this.#there = new Set(all.map(({ name }) => name));
    const scopes = all.filter(({ name }) => share?.serves(name) ?? true);
    for (const scope of scopes) if (!this.#followers.has(scope.name)) this.#follow(scope);
    // What another replica takes over is let go of with its shard.
    for (const [name, follower] of this.#followers)
      if (!this.#there.has(name)) this.#leave(name, follower, 'hosted cluster is gone');
  }

  #follow(scope: Scope): void {
    this.#options.log.info('hosted cluster found', { scope: scope.name });
    const follower: Follower = {
      scope,
      stop: new AbortController(),
      done: Promise.resolve(),
      used: undefined,
      state: 'good',
      failures: 0,
      failure: undefined,
      unread: 0,
    };
    this.#followers.set(scope.name, follower);
    follower.done = this.#keepConnected(scope, follower);
  }

  #leave(name: string, { stop }: Follower, why: string): void {
    this.#options.log.info(why, { scope: name });
    stop.abort();
    this.#followers.delete(name);
    this.#uids.delete(name);
    this.#report.over(name);
  }

  /** Opens the cluster, and opens it again whenever its kubeconfig changes or leads elsewhere. */
  async #keepConnected(scope: Scope, follower: Follower): Promise<void> {
    const { manager, refreshMs = 60_000 } = this.#options;
    const { signal } = follower.stop;
    while (!signal.aborted) {
      try {
        await this.#look(scope, follower);
        if (signal.aborted) break;
        [follower.failures, follower.failure, follower.state] = [0, undefined, 'good'];
        if (follower.unread < PASSING_FAILURES) this.#report.over(scope.name);
      } catch (error) {
        // Without a usable kubeconfig the last good connection stays: credentials outlive a mistake in the Secret.
        this.#failed(scope, follower, error);
      }
      const { failures } = follower;
      const waitMs =
        failures === 0
          ? jitterMs(refreshMs, 0.1, Math.random())
          : Math.min(refreshMs, backOffMs(BACK_OFF, failures, Math.random()));
      await pause(waitMs, signal);
    }
    await manager.remove(scope.name);
  }

  #failed(scope: Scope, follower: Follower, error: unknown): void {
    const failure = asPullwrightError(error);
    const { code, message, hint } = failure;
    if (message !== follower.failure?.message)
      this.#options.log.warn('hosted cluster cannot be opened', {
        scope: scope.name,
        code,
        problem: message,
        hint,
      });
    follower.failure = failure;
    follower.failures += 1;
    follower.state = failure.code === 'SameCluster' ? 'refused' : 'failing';
    if (follower.state === 'refused' || follower.failures >= PASSING_FAILURES)
      this.#report.tell(scope, failure);
  }

  /** Reads the kubeconfig; opens the cluster when it changed. */
  async #look(scope: Scope, follower: Follower): Promise<void> {
    const kubeconfig = await this.#options.hosted.read(scope);
    const { used } = follower;
    if (used === undefined || !sameSecret(used, kubeconfig)) await this.#connect(scope, kubeconfig, follower);
  }

  /** With one of the places for those that start, as long as it goes on; what is waited for after that holds up nobody. */
  async #connect(scope: Scope, kubeconfig: Redacted<string>, follower: Follower): Promise<void> {
    const { manager, hosted, management } = this.#options;
    const { signal } = follower.stop;
    const place = await this.#starting.enter();
    try {
      if (signal.aborted) return;
      const cluster = await hosted.open(kubeconfig, scope);
      try {
        this.#ownUid ??= await this.#uidOf('management', management);
        const uid = await this.#uidOf(scope.name, cluster);
        if (signal.aborted) return cluster.close();
        this.#claim(scope, uid);
      } catch (error) {
        cluster.close();
        throw error;
      }
      place.moved();
      await manager.remove(scope.name);
      manager.add(scope, { hosted: cluster, management: this.#managementFor(scope) });
      follower.used = kubeconfig;
      await filled(place, () => manager.waitingFor(scope.name), signal);
    } finally {
      place.leave();
    }
  }

  /** @returns undefined where the kubeconfig may not read it: the cluster is compared with no other */
  async #uidOf(scope: string, cluster: Cluster): Promise<string | undefined> {
    try {
      return (await cluster.client.get(KUBE_SYSTEM))?.metadata.uid;
    } catch (error) {
      if (!isApiError(error, 403)) throw error;
      this.#options.log.warn('cannot compare the cluster with others', {
        scope,
        hint: 'Grant get on the namespace "kube-system", so that two kubeconfigs of one cluster are noticed',
      });
      return undefined;
    }
  }

  /**
   * Keeps two names, or a name and the management cluster, from being one API server: both would write and prune there.
   *
   * @throws PullwrightError `SameCluster`
   */
  #claim(scope: Scope, uid: string | undefined): void {
    const { name } = scope;
    const [taken] =
      uid === undefined ? [] : ([...this.#uids].find(([other, its]) => other !== name && its === uid) ?? []);
    const holder =
      uid !== undefined && uid === this.#ownUid
        ? 'the management cluster'
        : taken === undefined
          ? undefined
          : `the cluster of "${taken}"`;
    if (holder !== undefined)
      throw new PullwrightError(
        `Cannot open hosted cluster "${name}": the kubeconfig in "${this.#options.hosted.subject(scope)}" leads to ${holder} (kube-system has uid ${uid})`,
        { code: 'SameCluster', hint: `Put the kubeconfig of "${name}" there, or delete the HostedCluster` },
      );
    this.#uids.set(name, uid);
  }

  /** The management cluster, which every scope writes to while it may. */
  #managementFor({ name }: Scope): Cluster {
    const { management, share } = this.#options;
    return share === undefined ? management : management.as(() => share.mayWrite(name));
  }
}
