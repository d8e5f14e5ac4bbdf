/** JSON patches of lists that others own too, under a rate limit per cluster. */

import { counted } from '../core/text.ts';
import { digestObject } from '../kube/decode.ts';
import { type Committed, problemOf } from './apply.ts';
import { fieldManager } from './changes.ts';
import { type Cluster, withoutFight } from './cluster.ts';
import type { Action, ReconcileError, Ref, Role } from './contract.ts';
import { RateLimiter } from './queue.ts';

/** What came of the actions of one pass. */
export interface Ran {
  /** Objects that were patched, or could not be. */
  readonly patched: readonly Committed[];
  readonly problems: readonly ReconcileError[];
}

export class ActionRunner {
  readonly #clusters: Readonly<Record<Role, Cluster>>;
  readonly #limiter: RateLimiter;

  constructor(clusters: Readonly<Record<Role, Cluster>>, now: () => number) {
    this.#clusters = clusters;
    // There may be one for each namespace.
    this.#limiter = new RateLimiter({ now, firstMs: 0, maxMs: 0, rate: 50, burst: 100 });
  }

  /** Runs `actions` in order. What the limit does not let through comes back as a problem that waits. */
  async run(actions: readonly Action[], reconciler: string): Promise<Ran> {
    const problems: ReconcileError[] = [];
    const patched: Committed[] = [];
    for (const action of actions) {
      const problem = this.#limitProblem(actions.length) ?? (await this.#runOne(action, reconciler));
      patched.push(patchedAs(action.ref, problem));
      if (problem === undefined) continue;
      problems.push(problem);
      if (problem.code === 'RateLimited') break;
    }
    return { patched, problems };
  }

  #limitProblem(count: number): ReconcileError | undefined {
    const afterMs = this.#limiter.delayOf('actions');
    if (afterMs <= 0) return undefined;
    const message = `${counted(count, 'action is', 'actions are')} more than may be done at once`;
    return { retryPolicy: 'waiting', code: 'RateLimited', message, afterMs };
  }

  async #runOne(action: Action, reconciler: string): Promise<ReconcileError | undefined> {
    const cluster = this.#clusters[action.ref.role];
    try {
      cluster.assertMayWrite();
      await patch(action, cluster, reconciler);
      return undefined;
    } catch (error) {
      return problemOf(error, action.ref);
    }
  }
}

/** The object is somebody else's, and there is no mode in which it is only looked at. */
const PATCH_FIGHT = 'Let one of both write it: stop the other, or no longer ask for this here';

/** What is tested first changes with each version; two programs that fight over a list write the same operations again and again. */
async function patch({ ref, operations }: Action, cluster: Cluster, reconciler: string): Promise<void> {
  const digest = (): string => digestObject(operations.filter(({ op }) => op !== 'test'));
  const before = cluster.cache.store.get(ref);
  const written = await withoutFight({ ref, before, digest, hint: PATCH_FIGHT }, cluster, () =>
    cluster.client.jsonPatch(ref, [...uidTest(ref), ...operations.map(sent)], fieldManager(reconciler)),
  );
  cluster.cache.observe(written);
}

function patchedAs(ref: Ref, problem: ReconcileError | undefined): Committed {
  return problem === undefined ? { verb: 'configured', ref } : { verb: 'failed', ref, problem };
}

/** A version that is written is compared too, and answered by 409; a test that fails by 422, as if the patch were wrong. */
function sent(operation: Action['operations'][number]): object {
  return operation.op === 'test' && operation.path === '/metadata/resourceVersion'
    ? { ...operation, op: 'replace' }
    : operation;
}

function uidTest({ uid }: Ref): readonly object[] {
  return uid === undefined ? [] : [{ op: 'test', path: '/metadata/uid', value: uid }];
}
