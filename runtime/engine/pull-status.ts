/** A PullStatus as a reconciler reports it: where it lies, what is applied, and its status with the times of transition kept. */
import {
  PULL_STATUS_API_VERSION,
  PULL_STATUS_KIND,
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
  return {
    role,
    apiVersion: PULL_STATUS_API_VERSION,
    kind: PULL_STATUS_KIND,
    namespace,
    name: pullStatusName(kind, name),
  };
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
