/**
 * Discovers hosted clusters by the HostedControlPlanes and HostedClusters of the management cluster, and adds them to a manager
 * or removes them. The kubeconfig of each is read again every minute.
 */

import { isDeepStrictEqual } from 'node:util';
import { backOffMs, jitterMs } from '../core/back-off.ts';
import { PullwrightError } from '../core/errors.ts';
import { HOSTED_CLUSTER, PLANES } from '../core/kubernetes/hypershift.ts';
import type { SecretObject } from '../core/kubernetes/object.ts';
import { PULL_STATUS, pullStatus, pullStatusName } from '../core/kubernetes/pull-status.ts';
import { type Logger, problemFields } from '../core/logger.ts';
import { type Redacted, redact, reveal, sameSecret } from '../core/redacted.ts';
import { pause } from '../http/client.ts';
import { asPullwrightError, isApiError } from '../kube/api-error.ts';
import { objectRef } from '../kube/resources.ts';
import type { Source } from './cache.ts';
import type { Cluster } from './cluster.ts';
import type { ClusterPair } from './contract.ts';
import { hostedClustersSaid, type SeenCluster } from './hosted-status.ts';
import type { Manager } from './manager.ts';
import type { Metrics } from './metrics.ts';
import type { ObjectStore } from './store.ts';

// Reports the state of hosted clusters: counts as metrics, an event on the HostedControlPlane of each failing one, and a
// PullStatus beside the Lease of this process, which `pullwright status` reads.

/** Consecutive failed checks before a report, because a starting control plane has no kubeconfig and a restarting one is down. */
const PASSING_LOOKS = 5;

const DISCOVERY_MANAGER = 'pullwright-discovery';
/** Checks before a failed write is retried. */
const PAUSE_AFTER_REFUSAL = 12;
/** Checks after which the PullStatus is verified, because others may have deleted or changed it. */
const LOOK_AGAIN = 120;

export class HostedReport {
  readonly #options: DiscoveryOptions;
  readonly #followers: ReadonlyMap<string, Follower>;
  #written = '';
  #problem = '';
  /** Remaining checks until the next verification or retry. */
  #rest = 0;
  #writing = false;

  constructor(options: DiscoveryOptions, followers: ReadonlyMap<string, Follower>) {
    this.#options = options;
    this.#followers = followers;
  }

  /**
   * Checks each cluster once. Called every few seconds.
   *
   * @param isKnown whether discovery is synced; before, no PullStatus is written
   */
  look(isKnown: boolean): void {
    const seen = [...this.#followers].map(([name, follower]) => this.#seen(name, follower));
    const counts = { ready: 0, starting: 0, failing: 0, refused: 0 };
    for (const { state } of seen) counts[state] += 1;
    this.#options.metrics.hostedClusters(counts);
    if (isKnown) void this.#write(seen);
  }

  /** Records an Event on the HostedControlPlane with the failure, unless it was the last one. */
  #tell(follower: Follower, { code, message, hint = '' }: PullwrightError): void {
    const { management } = this.#options;
    if (!management.mayWrite || follower.told === message) return;
    follower.told = message;
    const { controlPlaneNamespace } = follower.scope;
    for (const plane of management.cache.store.list(PLANES, controlPlaneNamespace)) {
      const regarding = { ...objectRef(plane), uid: plane.metadata.uid };
      management.events
        .record({ regarding, type: 'Warning', reason: code, action: 'Connect', note: `${message}. ${hint}` })
        .catch(() => {
          follower.told = undefined;
        });
    }
  }

  #seen(scope: string, follower: Follower): SeenCluster {
    const { manager } = this.#options;
    const failure = follower.failure ?? manager.failureOf(scope);
    if (failure === undefined) {
      [follower.looks, follower.told] = [0, undefined];
      const isReady = follower.used !== undefined && manager.waitingFor(scope) === undefined;
      return { scope, state: isReady ? 'ready' : 'starting' };
    }
    follower.looks += 1;
    const state = failure.code === 'SameCluster' ? 'refused' : 'failing';
    if (state === 'failing' && follower.looks < PASSING_LOOKS) return { scope, state };
    this.#tell(follower, failure);
    return { scope, state, trouble: failure };
  }

  /** Writes a changed PullStatus. Never rejects: a failed write is retried in a later check. */
  async #write(seen: readonly SeenCluster[]): Promise<void> {
    const { lease, log } = this.#options;
    if (lease?.isHeld() !== true) {
      [this.#written, this.#rest] = ['', 0];
      return;
    }
    this.#rest -= 1;
    const said = hostedClustersSaid(seen);
    const text = JSON.stringify(said);
    if (this.#writing || (this.#rest > 0 && (text === this.#written || this.#problem !== ''))) return;
    this.#writing = true;
    try {
      await this.#put(lease, said);
      [this.#written, this.#problem, this.#rest] = [text, '', LOOK_AGAIN];
    } catch (error) {
      const problem = asPullwrightError(error);
      if (problem.message !== this.#problem)
        log.info('cannot report on hosted clusters', problemFields(problem));
      [this.#problem, this.#rest] = [problem.message, PAUSE_AFTER_REFUSAL];
    } finally {
      this.#writing = false;
    }
  }

  async #put(
    { namespace, name }: NonNullable<DiscoveryOptions['lease']>,
    said: ReturnType<typeof hostedClustersSaid>,
  ): Promise<void> {
    const { client } = this.#options.management;
    const about = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace, name };
    const ref = { ...PULL_STATUS, namespace, name: pullStatusName(about.kind, name) };
    const present = await client.get(ref);
    const { object, status } = pullStatus({
      reporter: 'pullwright',
      about,
      ...said,
      present,
      now: new Date(),
    });
    const manager = { manager: DISCOVERY_MANAGER, force: true };
    if (present === undefined) await client.apply(object, manager);
    if (!isDeepStrictEqual(present?.status, status))
      await client.apply({ ...object, status }, { ...manager, subresource: 'status' });
  }
}

/** Its UID identifies a cluster independently of its address. */
const KUBE_SYSTEM = { apiVersion: 'v1', kind: 'Namespace', name: 'kube-system' };
const BACK_OFF = { firstMs: 1000, maxMs: 60_000 };

export class Discovery {
  readonly #options: DiscoveryOptions;
  readonly #followers = new Map<string, Follower>();
  /** UIDs of the open hosted clusters by name, without the management cluster ({@link #ownUid}). */
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
    this.#sources = [PLANES, HOSTED_CLUSTER].map((kind) => this.#options.management.cache.source(kind));
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

  /** Why discovery is not synced; undefined if it is. */
  get waitingFor(): string | undefined {
    if (this.#sources.length === 0) return 'hosted clusters are not synced yet';
    const [waiting] = this.#sources.filter(({ status }) => status.is !== 'synced');
    if (waiting === undefined) return undefined;
    const { is, error } = waiting.status;
    if (is === 'missing')
      return `the API server does not serve ${waiting.selection.kind}: it is not a management cluster`;
    return error?.message ?? `${waiting.selection.kind}s are not synced yet`;
  }

  /** Why the first unopened hosted cluster is not open; undefined if all are. */
  get unopened(): string | undefined {
    const opened = new Set(this.#options.manager.scopes.map(({ name }) => name));
    const [found] = [...this.#followers].filter(([name]) => !opened.has(name));
    if (found === undefined) return undefined;
    const [name, { failure }] = found;
    return failure?.message ?? `hosted cluster "${name}" is not connected`;
  }

  async stop(): Promise<void> {
    for (const end of this.#ends.splice(0)) end();
    for (const { stop } of this.#followers.values()) stop.abort();
    await Promise.all([...this.#followers.values()].map(({ done }) => done));
  }

  #say({ selection: { kind }, status: { is, error } }: Source): void {
    const { log } = this.#options;
    if (error !== undefined) log.warn('cannot list hosted clusters', problemFields(error));
    else if (is === 'missing') log.warn('the API server does not serve a kind', { kind });
    else if (this.waitingFor === undefined) log.info('discovering hosted clusters');
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

  #follow(scope: ClusterPair): void {
    this.#options.log.info('hosted cluster found', { scope: scope.name });
    const follower = new Follower(scope);
    this.#followers.set(scope.name, follower);
    follower.done = this.#keepConnected(follower);
  }

  #leave(name: string, { stop }: Follower): void {
    this.#options.log.info('hosted cluster deleted, or in another shard', { scope: name });
    stop.abort();
    this.#followers.delete(name);
    this.#uids.delete(name);
  }

  /** Opens the cluster, and reopens it when its kubeconfig changes. */
  async #keepConnected(follower: Follower): Promise<void> {
    const { manager, hosted, refreshMs = 60_000 } = this.#options;
    const { scope, stop } = follower;
    const { signal } = stop;
    while (!signal.aborted) {
      try {
        const kubeconfig = await hosted.read(scope);
        if (follower.used === undefined || !sameSecret(follower.used, kubeconfig))
          await this.#connect(kubeconfig, follower);
        if (signal.aborted) break;
        [follower.failures, follower.failure] = [0, undefined];
      } catch (error) {
        // Keep the last good connection: its credentials stay valid when the Secret becomes invalid.
        this.#failed(follower, error);
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

  #failed(follower: Follower, error: unknown): void {
    const failure = asPullwrightError(error);
    const fields = { scope: follower.scope.name, ...problemFields(failure) };
    if (failure.message !== follower.failure?.message)
      this.#options.log.warn('cannot connect to hosted cluster', fields);
    follower.failure = failure;
    follower.failures += 1;
  }

  async #connect(kubeconfig: Redacted<string>, follower: Follower): Promise<void> {
    const { manager, hosted, management } = this.#options;
    const { scope, stop } = follower;
    const { signal } = stop;
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

  /** The UID of a cluster; undefined if RBAC forbids to read it, so that duplicates are not detected. */
  async #uidOf(scope: string, cluster: Cluster): Promise<string | undefined> {
    try {
      return (await cluster.client.get(KUBE_SYSTEM, { tries: 1 }))?.metadata.uid;
    } catch (error) {
      if (!isApiError(error, 403)) throw error;
      this.#options.log.warn('cannot compare the cluster with the others', {
        scope,
        hint: 'Grant get on the namespace "kube-system", to detect two kubeconfigs of one cluster',
      });
      return undefined;
    }
  }

  /**
   * Rejects a cluster that is already open under another name or is the management cluster: both would write and prune there.
   *
   * @throws PullwrightError `SameCluster`
   */
  #claim(scope: ClusterPair, uid: string | undefined): void {
    const { name } = scope;
    const [taken] = [...this.#uids].find(([other, its]) => other !== name && its === uid) ?? [];
    const other = taken === undefined ? undefined : `the cluster of "${taken}"`;
    const holder = uid === this.#ownUid ? 'the management cluster' : other;
    if (uid !== undefined && holder !== undefined)
      throw new PullwrightError(
        `Cannot connect to hosted cluster "${name}": the kubeconfig in "${this.#options.hosted.subject(scope)}" leads to ${holder} (kube-system has uid ${uid})`,
        { code: 'SameCluster', hint: `Put the kubeconfig of "${name}" there, or delete the HostedCluster` },
      );
    this.#uids.set(name, uid);
  }
}

/** Access to the hosted clusters. */
export interface HostedClusters {
  /** Reads the current kubeconfig. */
  read(scope: ClusterPair): Promise<Redacted<string>>;
  open(kubeconfig: Redacted<string>, scope: ClusterPair): Promise<Cluster>;
  /** The object with the kubeconfig, for messages. */
  subject(scope: ClusterPair): string;
}

export interface DiscoveryOptions {
  readonly management: Cluster;
  readonly manager: Manager;
  /** Returns the hosted clusters of this process (its shard) from the store. */
  readonly scopesOf: (store: ObjectStore) => readonly ClusterPair[];
  readonly hosted: HostedClusters;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Interval between reads of a kubeconfig. @default {60000} */
  readonly refreshMs?: number;
  /** The Lease of this process; a PullStatus beside it reports the state of the hosted clusters. @default no PullStatus */
  readonly lease?: { readonly namespace: string; readonly name: string; isHeld(): boolean };
}

/** One followed hosted cluster, and the result of its last check. */
export class Follower {
  readonly scope: ClusterPair;
  readonly stop: AbortController = new AbortController();
  done: Promise<void> = Promise.resolve();
  /** The kubeconfig of the open connection. */
  used: Redacted<string> | undefined;
  /** Consecutive failures, and the last one. */
  failures = 0;
  failure: PullwrightError | undefined;
  /** Consecutive checks with a failure, and the message of the last Event. */
  looks = 0;
  told: string | undefined;

  constructor(scope: ClusterPair) {
    this.scope = scope;
  }
}

// The kubeconfig of a hosted cluster: one Secret in its control plane namespace, read by name, so that RBAC needs no `list`.

/** Key of HyperShift's kubeconfig Secrets. */
const KEY = 'kubeconfig';
/** The kubeconfig Secret that HyperShift creates, for `system:admin`. */
const HYPERSHIFT_MAKES = 'admin-kubeconfig';

/**
 * Reads the Secret `name` of the scope's control plane namespace.
 *
 * @throws PullwrightError `KubeconfigMissing`
 */
export async function readHostedKubeconfig(
  management: Cluster,
  scope: ClusterPair,
  name: string,
): Promise<Redacted<string>> {
  const namespace = scope.controlPlaneNamespace;
  const secret = (await management.client.get({ apiVersion: 'v1', kind: 'Secret', namespace, name })) as
    | SecretObject
    | undefined;
  const value = secret?.data?.[KEY];
  if (value !== undefined) return redact(Buffer.from(reveal(value), 'base64').toString('utf8'));
  const state = secret === undefined ? 'it does not exist' : `it has no key "${KEY}"`;
  throw new PullwrightError(`Cannot read kubeconfig "Secret/${namespace}/${name}": ${state}`, {
    code: 'KubeconfigMissing',
    hint:
      name === HYPERSHIFT_MAKES
        ? 'HyperShift creates it when the control plane is available'
        : `Put the kubeconfig of an account of the hosted cluster there, or name another Secret (reconciler.kubeconfigSecret of the fleet, --kubeconfig-secret), such as ${HYPERSHIFT_MAKES}; it is retried within a minute`,
  });
}
