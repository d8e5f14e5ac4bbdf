/**
 * Writes that the API server refused for a reason that does not pass by itself: somebody else's object has the name (which no cache
 * shows where no read covers it), the account may not, a policy or a quota says no. Forgotten when a later write goes through.
 */
import { describeObject } from '../rules/kubernetes/object.ts';
import type { Committed } from './commit.ts';
import type { Problem, Ref } from './contract.ts';
import { isLasting } from './failed-status.ts';

const REMEMBERED = 10_000;

export class RefusedWrites {
  readonly #refused = new Map<string, Problem>();

  get(ref: Ref): Problem | undefined {
    return this.#refused.get(textOf(ref));
  }

  /** Takes in what became of writes. Gives whether something is known now that was not. */
  learn(committed: readonly Committed[]): boolean {
    let isNew = false;
    for (const done of committed) {
      const text = textOf(done.ref);
      if (done.verb !== 'failed') isNew = this.#refused.delete(text) || isNew;
      // By the code: a message that counts (as that of a quota) would be news each time.
      else if (isLasting(done.problem) && this.#refused.get(text)?.code !== done.problem.code) {
        this.#refused.set(text, done.problem);
        isNew = true;
      }
    }
    const [oldest] = this.#refused.keys();
    if (this.#refused.size > REMEMBERED && oldest !== undefined) this.#refused.delete(oldest);
    return isNew;
  }
}

function textOf({ role, apiVersion, kind, namespace, name }: Ref): string {
  return `${role} ${apiVersion} ${describeObject({ kind, namespace, name })}`;
}
