/** Keeps two hosted clusters, or one and the management cluster, from being one and the same API server. */
import { asPullwrightError } from '../kube/failure.ts';
import { PullwrightError } from '../rules/errors.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Cluster } from './cluster.ts';
import { clusterMark, describeMark, isAddress } from './cluster-mark.ts';
import { Claims } from './cluster-ownership.ts';
import type { ClaimMemory } from './cluster-ownership-memory.ts';
import { CLONE_ANNOTATION } from './hosted-kubeconfig.ts';
import type { IsThere, SharedClaims } from './shared-claims.ts';

/** Somebody else looks after the cluster that a kubeconfig leads to. */
export class ClusterTaken extends PullwrightError {
  readonly mark: string;
  /** Name of the hosted cluster, or `management`. */
  readonly holder: string;

  constructor(input: {
    readonly name: string;
    readonly subject: string;
    readonly mark: string;
    readonly holder: string;
  }) {
    const { name, subject, mark, holder } = input;
    const whose =
      holder === MANAGEMENT
        ? 'the management cluster itself'
        : `the cluster of "${holder}", which has it first`;
    super(
      `Cannot look after hosted cluster "${name}": the kubeconfig in "${subject}" leads to ${whose} (${describeMark(mark)})`,
      {
        code: 'SameCluster',
        hint: `Put the kubeconfig of "${name}" there, or take the HostedCluster away that should not be; a restored copy with UIDs of another cluster needs the annotation ${CLONE_ANNOTATION}: "true" on that Secret`,
      },
    );
    this.name = 'ClusterTaken';
    this.mark = mark;
    this.holder = holder;
  }
}

/** Stands for the management cluster where the name of a hosted cluster is expected. */
export const MANAGEMENT = 'management';

/** Where several replicas divide the hosted clusters: what they hold together. */
export interface Sharing {
  readonly claims: SharedClaims;
  readonly isThere: IsThere;
}

export class ClusterGuard {
  readonly claims: Claims = new Claims();
  readonly #sharing: Sharing | undefined;
  readonly #management: Cluster;
  readonly #memory: ClaimMemory;
  readonly #log: Logger;
  #own: string | undefined;
  #saved: string | undefined;
  #problem = '';

  constructor(input: {
    readonly management: Cluster;
    readonly memory: ClaimMemory;
    readonly log: Logger;
    /** @default this process looks after all */
    readonly sharing?: Sharing | undefined;
  }) {
    this.#sharing = input.sharing;
    this.#management = input.management;
    this.#memory = input.memory;
    this.#log = input.log;
  }

  /**
   * What has to be known before the first claim: the mark of the management cluster, and what is remembered.
   *
   * @throws PullwrightError when the management cluster does not answer
   */
  async prepare(): Promise<void> {
    if (this.#own !== undefined) return;
    const own = await clusterMark(this.#management);
    await this.#recall();
    if (this.#own === undefined && isAddress(own)) this.#sayUnknown('management', own);
    this.#own = own;
  }

  /** The mark of a hosted cluster; that of a clone is its own. @throws PullwrightError when it does not answer */
  async markOf(
    name: string,
    cluster: Cluster,
    { isClone, signal }: { readonly isClone: boolean; readonly signal?: AbortSignal },
  ): Promise<string> {
    const mark = await clusterMark(cluster, signal);
    if (isClone) return `${mark}.${name.replaceAll('/', '.')}`;
    if (isAddress(mark) && this.claims.markOf(name) !== mark) this.#sayUnknown(name, mark);
    return mark;
  }

  /**
   * The kubeconfig of `name` leads to the cluster `mark`: gives who has to leave it first.
   *
   * @throws ClusterTaken
   */
  claim(name: string, mark: string, subject: string): readonly string[] {
    const holder = mark === this.#own ? MANAGEMENT : undefined;
    if (holder !== undefined) throw new ClusterTaken({ name, subject, mark, holder });
    const verdict = this.claims.judge(name, mark);
    if (verdict.may) return verdict.yields;
    throw new ClusterTaken({ name, subject, mark, holder: verdict.holder });
  }

  /**
   * As {@link claim}, before anything is written there. Where other replicas look after clusters too, what they hold together decides
   * between two names, and nothing that this one alone has seen: else each of the two could be refused for the other.
   *
   * @throws ClusterTaken
   * @throws PullwrightError when it cannot be written down
   */
  async take(name: string, mark: string, subject: string): Promise<readonly string[]> {
    if (this.#sharing === undefined) return this.claim(name, mark, subject);
    const open = this.claims.opened()[mark];
    // The shared memory may be lost; whoever writes there goes on.
    if (mark === this.#own || (open !== undefined && open !== name)) this.claim(name, mark, subject);
    const { claims, isThere } = this.#sharing;
    const holder = await claims.hold(name, mark, isThere);
    this.claims.remember({ [mark]: holder });
    if (holder !== name) throw new ClusterTaken({ name, subject, mark, holder });
    return this.claim(name, mark, subject);
  }

  /** Reads again what is remembered; gives who looks after what belongs to another one. */
  async overruled(): Promise<readonly string[]> {
    try {
      await this.#recall();
    } catch (error) {
      this.#say(error);
    }
    return this.claims.overruled();
  }

  /** Writes what is to be remembered, when it is news and this process leads. Never rejects. */
  async save(): Promise<void> {
    if (this.#own === undefined || !this.#management.mayWrite) return;
    if (this.#sharing !== undefined) return this.#settle(this.#sharing);
    const record = this.claims.record();
    const text = JSON.stringify(record);
    if (text === this.#saved) return;
    try {
      await this.#memory.write(record);
      this.#saved = text;
      this.#problem = '';
    } catch (error) {
      this.#say(error);
    }
  }

  async #settle({ claims, isThere }: Sharing): Promise<void> {
    try {
      await claims.settle(() => this.claims.opened(), isThere);
      this.#problem = '';
    } catch (error) {
      this.#say(error);
    }
  }

  async #recall(): Promise<void> {
    this.claims.remember(await this.#memory.read());
  }

  #say(error: unknown): void {
    const { code, message, hint } = asPullwrightError(error);
    if (message !== this.#problem)
      this.#log.warn('cannot remember which hosted cluster is whose', { code, problem: message, hint });
    this.#problem = message;
  }

  #sayUnknown(name: string, mark: string): void {
    this.#log.warn('cannot tell which cluster this is: known by its address alone', {
      scope: name,
      address: mark,
      hint: 'Grant get on the namespace "kube-system", so that a kubeconfig that leads to another one\'s cluster is noticed',
    });
  }
}
