/**
 * Tells people how hosted clusters fare: counts as metrics, an event on the HostedControlPlane of each that is in trouble, and a
 * PullStatus beside the Lease of this process. A log is read by nobody who asks `status`.
 */
import type { KubeClient } from '../kube/client.ts';
import { asPullwrightError } from '../kube/failure.ts';
import type { PullwrightError } from '../rules/errors.ts';
import { hostedClustersSaid, type SeenCluster } from '../rules/kubernetes/hosted-clusters.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { type PullStatusInput, pullStatus } from '../rules/kubernetes/pull-status.ts';
import type { Scope } from './contract.ts';
import type { DiscoveryOptions, Follower } from './discovery-options.ts';

/** A control plane that comes up has no kubeconfig for a moment, and one that restarts does not answer: what lasts longer is told. */
export const PASSING_FAILURES = 5;

const DISCOVERY_MANAGER = 'pullwright-discovery';
const PLANES = { apiVersion: 'hypershift.openshift.io/v1beta1', kind: 'HostedControlPlane' };
/** Looks from one try to the next. */
const PAUSE_AFTER_REFUSAL = 12;
/** Looks after which what was written is looked at again: others may have deleted or changed it. */
const LOOK_AGAIN = 120;
interface Written {
  readonly text: string;
  /** Of the object, as it was stored. */
  readonly resourceVersion: string | undefined;
  /** Until it is looked at again. */
  looks: number;
}

export class HostedReport {
  readonly #options: DiscoveryOptions;
  readonly #followers: ReadonlyMap<string, Follower>;
  /** Message of the last Event by hosted cluster. */
  readonly #told = new Map<string, string>();
  #written: Written | undefined;
  #problem = '';
  /** Looks that are left out after a refusal: nobody is asked every few seconds for what an older installation does not allow. */
  #pause = 0;
  #writing = false;

  constructor(options: DiscoveryOptions, followers: ReadonlyMap<string, Follower>) {
    this.#options = options;
    this.#followers = followers;
  }

  /**
   * Looks at each cluster once. Called every few seconds.
   *
   * @param isKnown whether it is known which hosted clusters there are: that none is in trouble is said of no others
   */
  look(isKnown: boolean): void {
    const seen = [...this.#followers].map(([name, follower]) => this.#seen(name, follower));
    const counts = { ready: 0, starting: 0, failing: 0, refused: 0 };
    for (const { state } of seen) counts[state] += 1;
    this.#options.metrics.hostedClusters(counts);
    if (isKnown) void this.#write(seen);
  }

  /** An Event on the HostedControlPlane with why its cluster is not looked after, unless it says so already. */
  tell({ name, controlPlaneNamespace }: Scope, { code, message, hint = '' }: PullwrightError): void {
    const { management } = this.#options;
    if (!management.mayWrite || this.#told.get(name) === message) return;
    this.#told.set(name, message);
    for (const { apiVersion, kind, metadata } of management.cache.store.list(PLANES, controlPlaneNamespace)) {
      const { namespace = '', name: plane, uid } = metadata;
      const regarding = { apiVersion, kind, namespace, name: plane, ...(uid === undefined ? {} : { uid }) };
      management.events
        .record({ regarding, type: 'Warning', reason: code, action: 'Connect', note: `${message}. ${hint}` })
        .catch(() => this.#told.delete(name));
    }
  }

  /** The trouble that was told of is over. */
  over(name: string): void {
    this.#told.delete(name);
  }

  #seen(scope: string, follower: Follower): SeenCluster {
    const { manager } = this.#options;
    if (follower.state !== 'good') {
      const { failure } = follower;
      const lasts = follower.state === 'refused' || follower.failures >= PASSING_FAILURES;
      return {
        scope,
        state: follower.state,
        ...(lasts && failure !== undefined ? { trouble: failure } : {}),
      };
    }
    const failure = manager.failureOf(scope);
    if (failure === undefined) {
      if (follower.unread >= PASSING_FAILURES) this.over(scope);
      follower.unread = 0;
      const isReady = follower.used !== undefined && manager.waitingFor(scope) === undefined;
      return { scope, state: isReady ? 'ready' : 'starting' };
    }
    follower.unread += 1;
    if (follower.unread < PASSING_FAILURES) return { scope, state: 'failing' };
    this.tell(follower.scope, failure);
    return { scope, state: 'failing', trouble: failure };
  }

  /** Never rejects: what is not written now is written the next time. */
  async #write(seen: readonly SeenCluster[]): Promise<void> {
    const { lease } = this.#options;
    this.#pause = Math.max(0, this.#pause - 1);
    if (lease?.isHeld() !== true) this.#written = undefined;
    if (lease?.isHeld() !== true || this.#writing || this.#pause > 0) return;
    this.#writing = true;
    try {
      await this.#say(lease, seen);
      this.#problem = '';
    } catch (error) {
      const { code, message, hint } = asPullwrightError(error);
      if (message !== this.#problem)
        this.#options.log.info('cannot report on hosted clusters', { code, problem: message, hint });
      this.#problem = message;
      this.#pause = PAUSE_AFTER_REFUSAL;
    } finally {
      this.#writing = false;
    }
  }

  /** Writes only what is news. */
  async #say(
    { namespace, name }: NonNullable<DiscoveryOptions['lease']>,
    seen: readonly SeenCluster[],
  ): Promise<void> {
    const { client } = this.#options.management;
    const said = hostedClustersSaid(seen);
    const text = JSON.stringify(said);
    const before = this.#written;
    if (before?.text === text && (before.looks -= 1) > 0) return;
    const about = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace, name };
    const input = { reporter: 'pullwright', about, ...said, now: new Date() };
    const { object } = pullStatus({ ...input, present: undefined });
    const present = await client.get({ ...object, namespace, name: object.metadata.name });
    const isSame = before?.text === text && present?.metadata.resourceVersion === before.resourceVersion;
    const resourceVersion =
      present !== undefined && isSame ? before.resourceVersion : await this.#put(client, input, present);
    this.#written = { text, resourceVersion, looks: LOOK_AGAIN };
  }

  /** Gives the version of what is stored then. */
  async #put(
    client: KubeClient,
    input: Omit<PullStatusInput, 'present'>,
    present: KubeObject | undefined,
  ): Promise<string | undefined> {
    const { object, status } = pullStatus({ ...input, present });
    const manager = { manager: DISCOVERY_MANAGER, force: true };
    if (present === undefined) await client.apply(object, manager);
    const stored = await client.apply({ ...object, status }, { ...manager, subresource: 'status' });
    return stored.metadata.resourceVersion;
  }
}
