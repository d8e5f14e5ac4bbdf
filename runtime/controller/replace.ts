/**
 * What cannot be changed in place is deleted and made again: the type of a Secret, an immutable one, a selector, the role of a binding.
 *
 * Only what carries our mark or our fields is deleted to be made again, and never a CustomResourceDefinition, a Namespace or a
 * PersistentVolumeClaim: what they hold would go with them.
 */
import { type ApiError, isApiError } from '../kube/api-error.ts';
import { PullwrightError } from '../rules/errors.ts';
import { immutableText, isReplaceable } from '../rules/kubernetes/immutable-field.ts';
import { describeObject, type KubeObject } from '../rules/kubernetes/object.ts';
import { type Author, fieldManager } from './changes.ts';
import type { Cluster } from './cluster.ts';
import type { Ref } from './contract.ts';

/** A change that the API server refused because a field cannot be changed. */
export interface Replacement {
  readonly ref: Ref;
  readonly before: KubeObject;
  readonly desired: KubeObject;
  readonly refusal: ApiError;
  /** It is ours and nobody else's. */
  readonly mayDelete: boolean;
}

/**
 * Makes the object again.
 *
 * @throws PullwrightError `FieldImmutable` when that is left to a person, `Terminating` while a finalizer holds it
 */
export async function replaceObject(
  replacement: Replacement,
  author: Author,
  { client, cache }: Cluster,
): Promise<{ readonly verb: 'replaced'; readonly ref: Ref }> {
  const { ref, before, desired } = replacement;
  if (!replacement.mayDelete || !isReplaceable(before)) throw cannotChange(replacement);
  const { uid } = before.metadata;
  try {
    await client.remove(ref, uid === undefined ? {} : { uid });
  } catch (error) {
    throw isForbidden(error) ? cannotChange(replacement) : error;
  }
  const left = await client.get(ref);
  if (left !== undefined && left.metadata.uid === uid) throw goingAway(ref, left);
  cache.forget(before);
  cache.observe(await client.apply(desired, { manager: fieldManager(author.reconciler) }));
  return { verb: 'replaced', ref };
}

/** A refusal that no other value and no retry fixes. */
export function isImmutable(error: unknown): error is ApiError {
  return isApiError(error, 422) && error.causes.some(({ immutable }) => immutable);
}

/** For want of rights, and not because the namespace goes away. */
export function isForbidden(error: unknown): boolean {
  return isApiError(error, 403) && !error.causes.some(({ reason }) => reason === 'NamespaceTerminating');
}

/** A person must act: it is not ours to delete, or we may not. */
function cannotChange({ before, desired, refusal }: Replacement): PullwrightError {
  const fields = refusal.causes.filter(({ immutable }) => immutable).map(({ field }) => field);
  const { message, hint } = immutableText(before, desired, fields);
  return new PullwrightError(message, { code: 'FieldImmutable', disposition: 'terminal', hint });
}

/** Made again when it has gone; somebody's finalizer takes its time. */
function goingAway(ref: Ref, { metadata }: KubeObject): PullwrightError {
  const finalizers = (metadata.finalizers ?? []).join(', ');
  return new PullwrightError(
    `Cannot make "${describeObject(ref)}" again yet: it is being deleted${finalizers === '' ? '' : `, and waits for ${finalizers}`}`,
    { code: 'Terminating', disposition: 'waiting', afterMs: 1000 },
  );
}
