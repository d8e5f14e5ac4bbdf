/** What is no object: evictions and JSON patches, under a rate limit per cluster. */
import { digestObject } from '../kube/decode.ts';
import { PullwrightError } from '../rules/errors.ts';
import { describeObject } from '../rules/kubernetes/object.ts';
import { fieldManager } from './changes.ts';
import type { Cluster } from './cluster.ts';
import { problemOf } from './commit.ts';
import type { Action, Problem, Ref, Role } from './contract.ts';
import { EvictionBudget, type EvictionCase } from './eviction-budget.ts';
import { withoutFight } from './fight.ts';
import { pullSecretsIn } from './pod-trials.ts';
import { RateLimiter } from './rate-limit.ts';

type Eviction = Extract<Action, { action: 'evict' }>;
type JsonPatch = Extract<Action, { action: 'json-patch' }>;

export class ActionRunner {
  readonly #clusters: Readonly<Record<Role, Cluster>>;
  readonly #limiters: Readonly<Record<Action['action'], RateLimiter>>;
  readonly #budget: EvictionBudget;

  constructor(clusters: Readonly<Record<Role, Cluster>>, now: () => number, wall: () => number = Date.now) {
    this.#clusters = clusters;
    this.#limiters = {
      evict: new RateLimiter({ now, firstMs: 0, maxMs: 0, rate: 2, burst: 10 }),
      // A patch disturbs no pod, and there may be one for each namespace.
      'json-patch': new RateLimiter({ now, firstMs: 0, maxMs: 0, rate: 50, burst: 100 }),
    };
    this.#budget = new EvictionBudget(wall);
  }

  /** Runs `actions` in order. What the limit does not let through comes back as a problem that waits. */
  async run(actions: readonly Action[], reconciler: string): Promise<readonly Problem[]> {
    const problems: Problem[] = [];
    for (const action of actions) {
      const verdict = action.action === 'evict' ? this.#budgetProblem(action) : undefined;
      if (verdict === 'done') continue;
      if (verdict !== undefined) {
        problems.push(verdict);
        continue;
      }
      const waitMs = this.#limiters[action.action].delayOf('actions');
      if (waitMs > 0) {
        const left = `${actions.length} actions are more than may be done at once`;
        return [...problems, { disposition: 'waiting', code: 'RateLimited', message: left, afterMs: waitMs }];
      }
      const problem = await this.#runOne(action, reconciler);
      if (problem !== undefined) problems.push(problem);
    }
    return problems;
  }

  async #runOne(action: Action, reconciler: string): Promise<Problem | undefined> {
    const ref = refOf(action);
    const cluster = this.#clusters[ref.role];
    try {
      cluster.assertMayWrite();
      if (action.action === 'evict') await this.#evict(action, cluster, reconciler);
      else await patch(action, cluster, reconciler);
      return undefined;
    } catch (error) {
      return problemOf(error, ref);
    }
  }

  async #evict(action: Eviction, cluster: Cluster, reconciler: string): Promise<void> {
    await assertHelps(action, cluster, reconciler);
    cluster.assertMayWrite();
    await cluster.client.evict(refOf(action), { uid: action.uid });
    this.#budget.evicted(caseOf(action));
  }

  #budgetProblem(action: Eviction): Problem | 'done' | undefined {
    const verdict = this.#budget.judge(caseOf(action));
    if (verdict === 'evict') return undefined;
    if (verdict === 'done') return 'done';
    const subject = `Pod/${action.namespace}/${action.name}`;
    if (verdict !== 'again') {
      const message = `${subject} waits: enough pods of its workload were evicted a moment ago`;
      return { disposition: 'waiting', code: 'EvictionBudget', message, afterMs: verdict.waitMs };
    }
    return {
      disposition: 'terminal',
      code: 'EvictedBefore',
      message: `Cannot help "${subject}" by an eviction: it came in place of one that was evicted because it ${action.reason}`,
      hint: 'Look at what changes the pod at admission; it is not evicted again',
      regarding: refOf(action),
    };
  }
}

/** What is tested first changes with each version; two programs that fight over a list write the same operations again and again. */
async function patch({ ref, operations }: JsonPatch, cluster: Cluster, reconciler: string): Promise<void> {
  const digest = (): string => digestObject(operations.filter(({ op }) => op !== 'test'));
  const before = cluster.cache.store.get(ref);
  const write = {
    subject: `patch ${describeObject(ref)}`,
    version: before?.metadata.resourceVersion,
    digest,
  };
  const written = await cluster.held.unlessRefused(write, () =>
    withoutFight({ ref, before, digest }, cluster, () =>
      cluster.client.jsonPatch(ref, [...uidTest(ref), ...operations], fieldManager(reconciler)),
    ),
  );
  cluster.cache.observe(written);
}

/** The API server is asked what it would make of the successor: who comes back as it went is not evicted. */
async function assertHelps(action: Eviction, cluster: Cluster, reconciler: string): Promise<void> {
  const subject = `Pod/${action.namespace}/${action.name}`;
  const { pod, wants } = action.successor;
  const made = await cluster.client
    .create(pod, fieldManager(reconciler), { dryRun: true })
    .catch((error: unknown) => {
      throw new PullwrightError(
        `Cannot evict "${subject}": its successor would be refused: ${problemOf(error).message}`,
        {
          code: 'WouldNotHelp',
          disposition: 'waiting',
          afterMs: ASK_AGAIN_MS,
        },
      );
    });
  const lacking = wants.filter((name) => !pullSecretsIn(made).includes(name));
  if (lacking.length === 0) return;
  throw new PullwrightError(
    `Cannot help "${subject}" by an eviction: a new pod would lack ${lacking.join(', ')} as well`,
    { code: 'WouldNotHelp', disposition: 'waiting', afterMs: ASK_AGAIN_MS },
  );
}

const ASK_AGAIN_MS = 300_000;

function caseOf({ uid, workload, createdAt, successor }: Eviction): EvictionCase {
  return { pod: uid, workload, createdAt, cause: successor.wants.join(' ') };
}

function refOf(action: Action): Ref {
  if (action.action !== 'evict') return action.ref;
  const { role, namespace, name, uid } = action;
  return { role, apiVersion: 'v1', kind: 'Pod', namespace, name, uid };
}

function uidTest({ uid }: Ref): readonly object[] {
  return uid === undefined ? [] : [{ op: 'test', path: '/metadata/uid', value: uid }];
}
