/** The PullStatus of a reconciler: reference, applied object, and status with unchanged transition times. */
import { type ConditionInput, conditionsIn, nextConditions } from '../core/kubernetes/conditions.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import {
  PULL_STATUS,
  type PullStatusInput,
  type PullStatusTarget,
  pullStatus,
  pullStatusName,
} from '../core/kubernetes/pull-status.ts';
import type { Reader, Ref, StatusPatch } from './contract.ts';

/** The reference to the PullStatus of an object, in the same namespace of the cluster of `role`. */
export function pullStatusRef(
  role: Ref['role'],
  { kind, namespace, name }: Omit<PullStatusTarget, 'apiVersion'>,
): Ref {
  return { role, ...PULL_STATUS, namespace, name: pullStatusName(kind, name) };
}

type Said = Omit<PullStatusInput, 'present' | 'now'>;

/**
 * Returns the object to apply and the status to write.
 *
 * @param role the cluster of the subject
 */
export function reportPullStatus(reader: Reader, role: Ref['role'], said: Said) {
  const ref = pullStatusRef(role, said.about);
  const { object, status } = pullStatus({ ...said, present: reader.get(ref), now: reader.now });
  return { apply: { role, object }, status: { ref, status } };
}

/** The status of an object itself: unchanged conditions keep their transition time. */
export function statusPatch(
  ref: Ref,
  object: KubeObject,
  conditions: readonly ConditionInput[],
  now: Date,
  fields: Readonly<Record<string, unknown>> = {},
): StatusPatch {
  return { ref, status: { ...fields, conditions: nextConditions(conditionsIn(object), conditions, now) } };
}
