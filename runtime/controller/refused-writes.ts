/**
 * Names that somebody else's object has, and that no cache shows because no read covers it: the API server told when the object was to
 * be made. Forgotten when a later write goes through.
 */
import { describeObject } from '../rules/kubernetes/object.ts';
import type { Committed } from './commit.ts';
import type { Ref } from './contract.ts';

const REMEMBERED = 10_000;

export class TakenNames {
  readonly #taken = new Set<string>();

  has(ref: Ref): boolean {
    return this.#taken.has(textOf(ref));
  }

  /** Takes in what became of writes. Gives whether something is known now that was not. */
  learn(committed: readonly Committed[]): boolean {
    let isNew = false;
    for (const done of committed) {
      const text = textOf(done.ref);
      if (done.verb !== 'failed') isNew = this.#taken.delete(text) || isNew;
      else if (done.problem.code === 'ForeignObject' && !this.#taken.has(text)) {
        this.#taken.add(text);
        isNew = true;
      }
    }
    const [oldest] = this.#taken;
    if (this.#taken.size > REMEMBERED && oldest !== undefined) this.#taken.delete(oldest);
    return isNew;
  }
}

function textOf({ role, apiVersion, kind, namespace, name }: Ref): string {
  return `${role} ${apiVersion} ${describeObject({ kind, namespace, name })}`;
}
