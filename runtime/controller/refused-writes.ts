/**
 * Writes that the API server refused for a reason that does not pass by itself, and what the status of their object says then: a
 * reconciler declares its status together with its objects, and `Ready=True` would be a lie when one of them is refused for good.
 */
import { type Condition, nextConditions } from '../rules/kubernetes/conditions.ts';
import { describeObject } from '../rules/kubernetes/object.ts';
import type { Committed } from './commit.ts';
import type { Problem, Ref } from './contract.ts';

const REMEMBERED = 10_000;

/**
 * Somebody else's object has the name (which no cache shows where no read covers it), the account may not, a policy or a quota says no.
 * Forgotten when a later write goes through.
 */
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

/** Refusals that last until a person acts, though they are tried again meanwhile. */
const LASTING: readonly string[] = [
  'Forbidden',
  'QuotaExceeded',
  'AdmissionDenied',
  'NamespaceTerminating',
  'ManagedElsewhere',
];

/** Whether it does not pass by itself: what is retried says nothing about the declaration. */
export function isLasting({ disposition, code }: Problem): boolean {
  return disposition === 'terminal' || LASTING.includes(code);
}

/**
 * `status` with `Ready=False` and `Stalled=True` by `problem` in place of `Ready=True`, and of `Reconciling=True`: what waits by itself
 * waits in vain. A status that is stalled, or has no condition `Ready`, comes back as it is: it has its own reason.
 *
 * @param present conditions that the object has now, for the times of transition
 * @example
 * ```ts
 * import { failedStatus } from './refused-writes.ts';
 * import assert from 'node:assert/strict';
 *
 * const ready = { type: 'Ready', status: 'True', reason: 'Merged', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
 * const problem = { disposition: 'terminal', code: 'ForeignObject', message: 'Cannot apply "Secret/a/b": it exists' } as const;
 * const status = failedStatus({ conditions: [ready] }, problem, [], new Date(0)) as { conditions: { type: string; status: string }[] };
 * assert.deepEqual(status.conditions.map(({ type, status }) => [type, status]), [['Ready', 'False'], ['Stalled', 'True']]);
 * ```
 */
export function failedStatus(
  status: Readonly<Record<string, unknown>>,
  { code, message, hint }: Problem,
  present: unknown,
  now: Date,
): Readonly<Record<string, unknown>> {
  const wanted = conditionsIn(status['conditions']);
  const ready = wanted.find(({ type }) => type === 'Ready');
  const goesOn = wanted.some(({ type, status }) => type === 'Reconciling' && status === 'True');
  if (ready === undefined || (ready.status !== 'True' && !goesOn)) return status;
  const text = { reason: code, message: hint === undefined ? message : `${message}. ${hint}` };
  const failed = [
    { ...ready, ...text, status: 'False' as const },
    { ...ready, ...text, type: 'Stalled', status: 'True' as const },
    ...wanted.filter(({ type }) => !['Ready', 'Stalled', 'Reconciling'].includes(type)),
  ];
  return { ...status, conditions: nextConditions(conditionsIn(present), failed, now) };
}

function conditionsIn(value: unknown): readonly Condition[] {
  return Array.isArray(value)
    ? value.filter((one): one is Condition => typeof one === 'object' && one !== null)
    : [];
}
