/** What is no object: evictions and JSON patches, under a rate limit per cluster. */
import { fieldManager } from './changes.ts';
import type { Cluster } from './cluster.ts';
import { problemOf } from './commit.ts';
import type { Action, Problem, Ref, Role } from './contract.ts';
import { RateLimiter } from './rate-limit.ts';

export class ActionRunner {
  readonly #clusters: Readonly<Record<Role, Cluster>>;
  readonly #limiter: RateLimiter;

  constructor(clusters: Readonly<Record<Role, Cluster>>, now: () => number) {
    this.#clusters = clusters;
    this.#limiter = new RateLimiter({ now, firstMs: 0, maxMs: 0, rate: 2, burst: 10 });
  }

  /** Runs `actions` in order. What the limit does not let through comes back as a problem that waits. */
  async run(actions: readonly Action[], reconciler: string): Promise<readonly Problem[]> {
    const problems: Problem[] = [];
    for (const action of actions) {
      const waitMs = this.#limiter.delayOf('actions');
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
    const ref: Ref =
      action.action === 'evict'
        ? { ...action, apiVersion: 'v1', kind: 'Pod', name: action.name }
        : action.ref;
    const cluster = this.#clusters[ref.role];
    try {
      cluster.assertMayWrite();
      if (action.action === 'evict') await cluster.client.evict(ref, { uid: action.uid });
      else
        cluster.cache.observe(
          await cluster.client.jsonPatch(
            ref,
            [...uidTest(ref), ...action.operations],
            fieldManager(reconciler),
          ),
        );
      return undefined;
    } catch (error) {
      return problemOf(error, ref);
    }
  }
}

function uidTest({ uid }: Ref): readonly object[] {
  return uid === undefined ? [] : [{ op: 'test', path: '/metadata/uid', value: uid }];
}
