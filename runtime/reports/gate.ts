/**
 * Who may see the report: the API server says who has a token, and what they may. Answers are remembered for seconds, so that a
 * right that is taken away ends soon; what was never asked costs the API server at most so many questions a second.
 */
import { isApiError } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import { digestObject } from '../kube/decode.ts';
import { describeError } from '../rules/errors.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import type { Redacted } from '../rules/redacted.ts';
import { Bucket } from '../rules/report-page/bucket.ts';
import {
  accessReview,
  isAllowed,
  REPORT_AUDIENCE,
  type ReportUser,
  reviewedUser,
  tokenReview,
} from '../rules/report-page/reviews.ts';
import { onOneLine } from '../rules/text/printable.ts';
import type { Logger } from '../telemetry/logger.ts';

export interface GateOptions {
  readonly client: Pick<KubeClient, 'create'>;
  readonly log: Logger;
  /** Milliseconds that only grow. */
  readonly now: () => number;
}

/** Whether somebody may see what they ask for. */
export type Admittance =
  | { readonly is: 'allowed' }
  | { readonly is: 'refused'; readonly status: 401 | 403 | 429 | 503; readonly why: string };

/** For so long an answer of the API server counts. */
const REMEMBERED_MS = 10_000;
/** So many answers are remembered, of each kind. */
const MOST_REMEMBERED = 1000;
/** Requests that the API server has to be asked about: of one address, and of all. */
const FROM_ONE = { rate: 10, burst: 20 } as const;
const FROM_ALL = { rate: 30, burst: 60 } as const;
const MOST_ADDRESSES = 1000;

interface Remembered<T> {
  readonly until: number;
  readonly answer: Promise<T>;
}

export class Gate {
  readonly #options: GateOptions;
  readonly #users = new Map<string, Remembered<ReportUser | undefined>>();
  readonly #rights = new Map<string, Remembered<boolean>>();
  readonly #addresses = new Map<string, Bucket>();
  readonly #all: Bucket;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#all = new Bucket(FROM_ALL, options.now());
  }

  /**
   * Judges. Nothing but a plain yes of the API server to both questions lets anybody in.
   *
   * @param namespace the one that is asked for; undefined for the whole
   * @param address from where
   */
  async judge(token: Redacted<string>, namespace: string | undefined, address: string): Promise<Admittance> {
    const id = digestObject(token);
    const right = `${id} ${namespace ?? ''}`;
    const isKnown = this.#knows(this.#users, id) && this.#knows(this.#rights, right);
    if (!isKnown && !this.#mayAsk(address))
      return refused(429, 'the cluster had to be asked too often who somebody is and what they may see');
    try {
      const user = await this.#remember(this.#users, id, async () =>
        reviewedUser(await this.#ask(tokenReview(token))),
      );
      if (user === undefined)
        return refused(
          401,
          `the cluster does not accept the token: it must be valid, and made for the audience ${REPORT_AUDIENCE}`,
        );
      const may = await this.#remember(this.#rights, right, async () =>
        isAllowed(await this.#ask(accessReview(user, namespace))),
      );
      return may ? { is: 'allowed' } : refused(403, refusalText(user, namespace));
    } catch (error) {
      this.#options.log.warn('cannot ask the API server who may see the report', {
        problem: describeError(error),
      });
      const lacks = isApiError(error, 403)
        ? 'this server may not ask the cluster who you are: its account lacks the right to create token and access reviews'
        : 'the cluster could not be asked who you are and what you may see';
      return refused(503, lacks);
    }
  }

  #ask(review: KubeObject): Promise<KubeObject> {
    return this.#options.client.create(review, 'pullwright-reports');
  }

  #knows(memory: ReadonlyMap<string, Remembered<unknown>>, id: string): boolean {
    const known = memory.get(id);
    return known !== undefined && known.until > this.#options.now();
  }

  /** One address cannot use up what all have, as long as there are others. */
  #mayAsk(address: string): boolean {
    const now = this.#options.now();
    const own = this.#addresses.get(address) ?? new Bucket(FROM_ONE, now);
    // The last ones stay.
    this.#addresses.delete(address);
    this.#addresses.set(address, own);
    dropOldest(this.#addresses, MOST_ADDRESSES);
    return own.take(now) && this.#all.take(now);
  }

  /** One question for all who ask the same at once. An answer that fails is not remembered. */
  #remember<T>(memory: Map<string, Remembered<T>>, id: string, ask: () => Promise<T>): Promise<T> {
    const now = this.#options.now();
    const known = memory.get(id);
    if (known !== undefined && known.until > now) return known.answer;
    const answer = ask();
    const entry = { until: now + REMEMBERED_MS, answer };
    memory.delete(id);
    memory.set(id, entry);
    dropOldest(memory, MOST_REMEMBERED);
    answer.catch(() => {
      if (memory.get(id) === entry) memory.delete(id);
    });
    return answer;
  }
}

function dropOldest(memory: Map<string, unknown>, most: number): void {
  const [oldest] = memory.keys();
  if (memory.size > most && oldest !== undefined) memory.delete(oldest);
}

/** What an administrator has to bind. */
function refusalText(user: ReportUser, namespace: string | undefined): string {
  const username = onOneLine(user.username);
  return namespace === undefined
    ? `"${username}" may not see the whole cluster: a ClusterRoleBinding to ClusterRole pullwright-report-view allows it; what concerns one namespace is at /namespaces/<namespace>/report.html`
    : `"${username}" may not see the report of namespace "${namespace}": a RoleBinding there to ClusterRole pullwright-namespace-report-view allows it`;
}

function refused(status: 401 | 403 | 429 | 503, why: string): Admittance {
  return { is: 'refused', status, why };
}
