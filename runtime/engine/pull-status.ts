/** A PullStatus as a reconciler reports it: where it lies, what is applied, and its status with the times of transition kept. */
import { type ConditionInput, conditionsIn, nextConditions } from '../core/kubernetes/conditions.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import {
  PULL_STATUS,
  type PullStatusInput,
  type PullStatusTarget,
  pullStatus,
  pullStatusName,
} from '../core/kubernetes/pull-status.ts';
import type { Apply, Reader, Ref, StatusPatch } from './contract.ts';

/** Where the PullStatus of an object is: beside it, in the cluster of `role`. */
export function pullStatusRef(
  role: Ref['role'],
  { kind, namespace, name }: Omit<PullStatusTarget, 'apiVersion'>,
): Ref {
  return { role, ...PULL_STATUS, namespace, name: pullStatusName(kind, name) };
}

/** What is said, of what. */
type Said = Omit<PullStatusInput, 'present' | 'now'>;

/**
 * The two parts of an outcome that a PullStatus is.
 *
 * @param role the cluster of the subject.
 */
export function reportPullStatus(
  reader: Reader,
  role: Ref['role'],
  said: Said,
): { readonly apply: Apply; readonly status: StatusPatch } {
  const ref = pullStatusRef(role, said.about);
  const { object, status } = pullStatus({ ...said, present: reader.get(ref), now: reader.now });
  return { apply: { role, object }, status: { ref, status } };
}

/** The status of an object that has one of its own: conditions keep the time of their last transition. */
export function statusPatch(
  ref: Ref,
  object: KubeObject,
  conditions: readonly ConditionInput[],
  now: Date,
  fields: Readonly<Record<string, unknown>> = {},
): StatusPatch {
  return { ref, status: { ...fields, conditions: nextConditions(conditionsIn(object), conditions, now) } };
}
