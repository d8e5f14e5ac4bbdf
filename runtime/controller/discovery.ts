/**
 * Finds hosted clusters by the HostedControlPlanes and HostedClusters of the management cluster, and keeps a manager in line with them. The
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
import { HostedReport, PASSING_FAILURES } from './hosted-report.ts';
import type { Source } from './source.ts';

const PLANES = { apiVersion: 'hypershift.openshift.io/v1beta1', kind: 'HostedControlPlane' };
const CLUSTERS = { ...PLANES, kind: 'HostedCluster' };
/** Its UID identifies a cluster, whatever address leads there. */
const KUBE_SYSTEM = { apiVersion: 'v1', kind: 'Namespace', name: 'kube-system' };
const BACK_OFF = { firstMs: 1000, maxMs: 60_000 };

export class Discovery {
  readonly #options: DiscoveryOptions;
  readonly #followers = new Map<string, Follower>();
  /** UIDs of the open clusters by name; that of the management cluster is {@link #ownUid}. */
  readonly #uids = new Map<string, string | undefined>();
  #ownUid: string | undefined;
  readonly #report: HostedReport;
  #sources: readonly Source[] = [];
  readonly #ends: (() => unknown)[] = [];

  constructor(options: DiscoveryOptions) {
    this.#options = options;
    this.#report = new HostedReport(options, this.#followers);
  }

  start(): void {
    this.#sources = [PLANES, CLUSTERS].map((kind) => this.#options.management.cache.source(kind));
    for (const source of this.#sources)
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
    if (this.#sources.length === 0) return 'hosted clusters are not read yet';
    const [waiting] = this.#sources.filter(({ status }) => status.is !== 'synced');
    if (waiting === undefined) return undefined;
    const { is, error } = waiting.status;
    if (is === 'missing')
      return `the cluster serves no ${waiting.selection.kind}: it is no management cluster`;
    return error?.message ?? `${waiting.selection.kind}s are not read yet`;
  }

  /** A hosted cluster that was found and not opened yet; undefined when there is none. */
  get unopened(): string | undefined {
    const opened = new Set(this.#options.manager.scopes.map(({ name }) => name));
    const [found] = [...this.#followers].filter(([name]) => !opened.has(name));
    if (found === undefined) return undefined;
    const [name, { failure }] = found;
    return failure?.message ?? `hosted cluster "${name}" is not opened`;
  }

  async stop(): Promise<void> {
    for (const end of this.#ends.splice(0)) end();
    for (const { stop } of this.#followers.values()) stop.abort();
    await Promise.all([...this.#followers.values()].map(({ done }) => done));
  }

  #say({ selection: { kind }, status: { is, error } }: Source): void {
    const { log } = this.#options;
    if (error !== undefined)
      log.warn('cannot look for hosted clusters', {
        code: error.code,
        problem: error.message,
        hint: error.hint,
      });
    else if (is === 'missing') log.warn('the cluster does not serve a kind', { kind });
    else if (this.waitingFor === undefined) log.info('looking for hosted clusters');
  }

  #update(): void {
    if (this.waitingFor !== undefined) return;
    const { management, scopesOf } = this.#options;
    const { store } = management.cache;
    const planes = new Set(store.list(PLANES).map(({ metadata }) => metadata.namespace));
    const scopes = scopesOf(store).filter((scope) => planes.has(scope.controlPlaneNamespace));
    const names = new Set(scopes.map(({ name }) => name));
    for (const scope of scopes) if (!this.#followers.has(scope.name)) this.#follow(scope);
    for (const [name, follower] of this.#followers) if (!names.has(name)) this.#leave(name, follower);
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

  #leave(name: string, { stop }: Follower): void {
    this.#options.log.info('hosted cluster is gone, or of another shard', { scope: name });
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

  async #connect(scope: Scope, kubeconfig: Redacted<string>, follower: Follower): Promise<void> {
    const { manager, hosted, management } = this.#options;
    const { signal } = follower.stop;
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
    await manager.remove(scope.name);
    manager.add(scope, { hosted: cluster, management });
    follower.used = kubeconfig;
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
}
