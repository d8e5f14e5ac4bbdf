/** What is no object: evictions and JSON patches, under a rate limit per cluster. */
import { digestObject } from '../kube/decode.ts';
import { PullwrightError } from '../rules/errors.ts';
import { outlivesEviction } from '../rules/kubernetes/pod-owner.ts';
import { counted } from '../rules/text/counted.ts';
import { fieldManager } from './changes.ts';
import type { Cluster } from './cluster.ts';
import { type Committed, problemOf } from './commit.ts';
import { withoutFight } from './conflict-breaker.ts';
import type { Action, EventNote, Problem, Ref, Role } from './contract.ts';
import { EvictionBudget, type EvictionCase } from './eviction-budget.ts';
import { EvictionHolds } from './eviction-holds.ts';
import { pullSecretsIn } from './pod-trials.ts';
import { RateLimiter } from './rate-limit.ts';

type Eviction = Extract<Action, { action: 'evict' }>;
type JsonPatch = Extract<Action, { action: 'json-patch' }>;

/** What came of the actions of one pass. */
export interface Ran {
  /** Pods that were evicted: they vanish, and this is what is left to tell why. */
  readonly evicted: readonly Committed[];
  /** Objects that were patched, or could not be. */
  readonly patched: readonly Committed[];
  readonly events: readonly EventNote[];
  readonly problems: readonly Problem[];
}

export class ActionRunner {
  readonly #clusters: Readonly<Record<Role, Cluster>>;
  readonly #limiters: Readonly<Record<Action['action'], RateLimiter>>;
  readonly #budget: EvictionBudget;
  readonly #holds: EvictionHolds;

  constructor(clusters: Readonly<Record<Role, Cluster>>, now: () => number, wall: () => number = Date.now) {
    this.#clusters = clusters;
    this.#limiters = {
      evict: new RateLimiter({ now, firstMs: 0, maxMs: 0, rate: 2, burst: 10 }),
      // A patch disturbs no pod, and there may be one for each namespace.
      'json-patch': new RateLimiter({ now, firstMs: 0, maxMs: 0, rate: 50, burst: 100 }),
    };
    this.#budget = new EvictionBudget(wall);
    this.#holds = new EvictionHolds(now);
  }

  /** Runs `actions` in order. What the limit does not let through comes back as a problem that waits. */
  async run(actions: readonly Action[], reconciler: string): Promise<Ran> {
    const problems: Problem[] = [];
    const evicted: Eviction[] = [];
    const patched: Committed[] = [];
    for (const action of actions) {
      const verdict = action.action === 'evict' ? this.#heldBack(action) : undefined;
      if (verdict === 'done') continue;
      const problem =
        verdict ?? this.#limitProblem(action, actions.length) ?? (await this.#runOne(action, reconciler));
      if (action.action === 'json-patch') patched.push(patchedAs(action.ref, problem));
      else if (problem === undefined) evicted.push(action);
      if (problem === undefined) continue;
      problems.push(problem);
      if (problem.code === 'RateLimited') break;
    }
    return {
      evicted: evicted.map((action) => ({ verb: 'evicted', ref: refOf(action) })),
      patched,
      events: evicted.map(evictionEvent),
      problems,
    };
  }

  #limitProblem({ action }: Action, count: number): Problem | undefined {
    const afterMs = this.#limiters[action].delayOf('actions');
    if (afterMs <= 0) return undefined;
    const message = `${counted(count, 'action is', 'actions are')} more than may be done at once`;
    return { disposition: 'waiting', code: 'RateLimited', message, afterMs };
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
      const problem = problemOf(error, ref);
      const isAnswer = action.action === 'evict' && ANSWERS.includes(problem.code);
      return isAnswer ? this.#holds.hold(action.uid, problem) : problem;
    }
  }

  async #evict(action: Eviction, cluster: Cluster, reconciler: string): Promise<void> {
    await this.#assertOutlived(action, cluster);
    await assertHelps(action, cluster, reconciler);
    cluster.assertMayWrite();
    await cluster.client.evict(refOf(action), { uid: action.uid });
    this.#budget.evicted(caseOf(action));
    this.#holds.forget(action.uid);
  }

  /** A Job counts the eviction as a failure: the last one that it allows would end it. */
  async #assertOutlived(action: Eviction, cluster: Cluster): Promise<void> {
    const { owner, namespace } = action;
    if (owner.kind !== 'Job') return;
    const job = await cluster.client.get({ namespace, ...owner });
    const recent = this.#budget.recent(caseOf(action));
    if (job !== undefined && outlivesEviction(job, action.successor.pod, recent)) return;
    throw new PullwrightError(
      `Cannot help "${subjectOf(action)}" by an eviction: Job/${namespace}/${owner.name} would count it as a failure, and has no try left`,
      {
        code: 'WouldNotHelp',
        disposition: 'waiting',
        hint: 'Delete the Job and create it again: its new pods get the names',
      },
    );
  }

  /** Before anybody is asked. */
  #heldBack(action: Eviction): Problem | 'done' | undefined {
    const verdict = this.#budget.judge(caseOf(action));
    if (verdict === 'evict') return this.#holds.get(action.uid);
    if (verdict === 'done') return 'done';
    const subject = subjectOf(action);
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

/** The object is somebody else's, and there is no mode in which it is only looked at. */
const PATCH_FIGHT = 'Let one of both write it: stop the other, or no longer ask for this here';

/** What is tested first changes with each version; two programs that fight over a list write the same operations again and again. */
async function patch({ ref, operations }: JsonPatch, cluster: Cluster, reconciler: string): Promise<void> {
  const digest = (): string => digestObject(operations.filter(({ op }) => op !== 'test'));
  const before = cluster.cache.store.get(ref);
  const written = await withoutFight({ ref, before, digest, hint: PATCH_FIGHT }, cluster, () =>
    cluster.client.jsonPatch(ref, [...uidTest(ref), ...operations.map(sent)], fieldManager(reconciler)),
  );
  cluster.cache.observe(written);
}

/** The API server is asked what it would make of the successor: who comes back as it went is not evicted. */
async function assertHelps(action: Eviction, cluster: Cluster, reconciler: string): Promise<void> {
  const subject = subjectOf(action);
  const { pod, wants } = action.successor;
  const made = await cluster.client
    .create(pod, fieldManager(reconciler), { dryRun: true })
    .catch((error: unknown) => {
      throw new PullwrightError(
        `Cannot evict "${subject}": its successor would be refused: ${problemOf(error).message}`,
        { code: 'WouldNotHelp', disposition: 'waiting' },
      );
    });
  const lacking = wants.filter((name) => !pullSecretsIn(made).includes(name));
  if (lacking.length === 0) return;
  throw new PullwrightError(
    `Cannot help "${subject}" by an eviction: a new pod would lack ${lacking.join(', ')} as well`,
    { code: 'WouldNotHelp', disposition: 'waiting' },
  );
}

/** What the cluster answers when an eviction is no way out. */
const ANSWERS: readonly string[] = ['WouldNotHelp', 'DisruptionBudget'];

function evictionEvent(action: Eviction): EventNote {
  const { reason, owner } = action;
  const note = `Evicted because it ${reason}; ${owner.kind} "${owner.name}" makes another one`;
  return { regarding: refOf(action), type: 'Normal', reason: 'PodEvicted', action: 'Evict', note };
}

function subjectOf({ namespace, name }: Eviction): string {
  return `Pod/${namespace}/${name}`;
}

function caseOf({ uid, owner, createdAt, successor }: Eviction): EvictionCase {
  return { pod: uid, workload: owner.uid, createdAt, cause: successor.wants.join(' ') };
}

function refOf(action: Action): Ref {
  if (action.action !== 'evict') return action.ref;
  const { role, namespace, name, uid } = action;
  return { role, apiVersion: 'v1', kind: 'Pod', namespace, name, uid };
}

function patchedAs(ref: Ref, problem: Problem | undefined): Committed {
  return problem === undefined ? { verb: 'configured', ref } : { verb: 'failed', ref, problem };
}

/** A version that is written is compared too, and answered by 409; a test that fails by 422, as if the patch were wrong. */
function sent(operation: JsonPatch['operations'][number]): object {
  return operation.op === 'test' && operation.path === '/metadata/resourceVersion'
    ? { ...operation, op: 'replace' }
    : operation;
}

function uidTest({ uid }: Ref): readonly object[] {
  return uid === undefined ? [] : [{ op: 'test', path: '/metadata/uid', value: uid }];
}
