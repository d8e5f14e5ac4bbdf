/**
 * Finds hosted clusters by the HostedControlPlanes of the management cluster, and keeps a manager in line with them. The
 * kubeconfig of each, and which cluster it leads to, is looked at again every minute.
 */
import { pause } from '../http/retry.ts';
import { asPullwrightError } from '../kube/failure.ts';
import { backOffMs, jitterMs } from '../rules/back-off.ts';
import { sameSecret } from '../rules/redacted.ts';
import type { Cluster } from './cluster.ts';
import { ClusterGuard, ClusterTaken } from './cluster-guard.ts';
import { isAddress } from './cluster-mark.ts';
import { NO_CLAIM_MEMORY } from './cluster-ownership-memory.ts';
import type { Scope } from './contract.ts';
import type { DiscoveryOptions, Follower } from './discovery-options.ts';
import type { HostedKubeconfig } from './hosted-kubeconfig.ts';
import { HostedReport, PASSING_FAILURES } from './hosted-report.ts';
import { RefusalReport } from './refusal-report.ts';
import { SharedClaims } from './shared-claims.ts';
import type { Source } from './source.ts';

const PLANES = { apiVersion: 'hypershift.openshift.io/v1beta1', kind: 'HostedControlPlane' };
const BACK_OFF = { firstMs: 1000, maxMs: 60_000 };

export class Discovery {
  readonly #options: DiscoveryOptions;
  readonly #followers = new Map<string, Follower>();
  /** Hosted clusters that there are, whoever looks after them. */
  #there: ReadonlySet<string> = new Set();
  readonly #guard: ClusterGuard;
  readonly #refusals: RefusalReport;
  readonly #report: HostedReport;
  #source: Source | undefined;
  readonly #ends: (() => unknown)[] = [];

  constructor(options: DiscoveryOptions) {
    this.#options = options;
    const { management, log, metrics, memory = NO_CLAIM_MEMORY, share } = options;
    const sharing =
      share === undefined
        ? undefined
        : {
            claims: new SharedClaims(management, share.namespace),
            isThere: (name: string) => this.#there.has(name),
          };
    this.#guard = new ClusterGuard({ management, memory, log, sharing });
    this.#refusals = new RefusalReport({ management, metrics });
    this.#report = new HostedReport(options, this.#followers, this.#refusals);
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
    const counter = setInterval(() => {
      this.#report.look(this.waitingFor === undefined);
      void this.#guard.save();
    }, 5000);
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

  /** This process leads from now on: what the one before remembered goes before what this one saw first. */
  async lead(): Promise<void> {
    for (const name of await this.#guard.overruled()) await this.#drop(name);
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
    this.#guard.claims.enter(scope.name);
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
    this.#guard.claims.leave(name);
    this.#refusals.over(name);
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
        if (follower.unread < PASSING_FAILURES) this.#refusals.over(scope.name);
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
    if (!(error instanceof ClusterTaken)) {
      follower.state = 'failing';
      if (follower.failures >= PASSING_FAILURES) this.#refusals.tell(scope, failure);
      return;
    }
    follower.state = 'refused';
    this.#refusals.refused(scope, error);
  }

  /** Looks at the kubeconfig and where it leads; opens the cluster when either is news. */
  async #look(scope: Scope, follower: Follower): Promise<void> {
    const kubeconfig = await this.#options.hosted.read(scope);
    const { used } = follower;
    const isKnown = used !== undefined && sameSecret(used, kubeconfig.text);
    if (isKnown && (await this.#isStillThere(scope, kubeconfig, follower.stop.signal))) return;
    await this.#connect(scope, kubeconfig, follower);
  }

  /** Whether the address still leads to the cluster that is looked after. One that does not answer may. @throws ClusterTaken */
  async #isStillThere(
    { name, ...scope }: Scope,
    { isClone = false }: HostedKubeconfig,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { manager, hosted } = this.#options;
    const before = this.#guard.claims.markOf(name);
    if (before === undefined) return false;
    const cluster = manager.clustersOf(name).hosted;
    const mark = await this.#guard.markOf(name, cluster, { isClone, signal }).catch(() => before);
    // Rights to read the mark come and go; the cluster is the same.
    if (mark !== before && !isAddress(mark) && !isAddress(before)) return false;
    this.#guard.claim(name, before, hosted.subject({ name, ...scope }));
    return true;
  }

  async #connect(scope: Scope, kubeconfig: HostedKubeconfig, follower: Follower): Promise<void> {
    const { manager, hosted } = this.#options;
    const { signal } = follower.stop;
    const cluster = await hosted.open(kubeconfig.text, scope);
    const mark = await this.#claim(scope, cluster, kubeconfig, signal).catch((error: unknown) => {
      cluster.close();
      throw error;
    });
    if (mark === undefined) return cluster.close();
    await manager.remove(scope.name);
    this.#guard.claims.open(scope.name, mark);
    manager.add(scope, { hosted: cluster, management: this.#managementFor(scope) });
    follower.used = kubeconfig.text;
  }

  /** Before anything is written there; gives the mark, or nothing when `signal` has ended it. @throws ClusterTaken */
  async #claim(
    scope: Scope,
    cluster: Cluster,
    { isClone = false }: HostedKubeconfig,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    await this.#guard.prepare();
    const mark = await this.#guard.markOf(scope.name, cluster, { isClone, signal });
    if (signal.aborted) return undefined;
    const leaving = await this.#guard.take(scope.name, mark, this.#options.hosted.subject(scope));
    // From here on others are refused for this one: it must not be read as refused for them meanwhile.
    this.#refusals.over(scope.name);
    for (const other of leaving) await this.#drop(other);
    return signal.aborted ? undefined : mark;
  }

  /** The management cluster, which every scope writes to while it may. */
  #managementFor({ name }: Scope): Cluster {
    const { management, share } = this.#options;
    return share === undefined ? management : management.as(() => share.mayWrite(name));
  }

  /** Its cluster belongs to another one: leaves it as it is. */
  async #drop(name: string): Promise<void> {
    this.#options.log.warn('hosted cluster is left to another one', { scope: name });
    this.#guard.claims.close(name);
    const follower = this.#followers.get(name);
    if (follower !== undefined) follower.used = undefined;
    await this.#options.manager.remove(name);
  }
}
