/**
 * Objects that are wholly ours, without server-side apply: which of their fields differ, and the merge patch that fixes them. The
 * field manager is recorded either way, so that apply can take over at any time.
 */
import type { KubeObject } from '../core/kubernetes/object.ts';
import { type Difference, drift, type FieldStep, givenUp, isOwnedByAnother, writtenBy } from './drift.ts';

/** As {@link drift}, also for fields that `manager` created or patched. */
export function plainDrift(desired: KubeObject, live: KubeObject, manager: string): readonly Difference[] {
  return drift(desired, live, manager, 'written');
}

/**
 * The JSON merge patch (RFC 7386) that makes `live` what `desired` says: all of `desired`, null for what `manager` alone wrote
 * once and wants no longer, and the uid, so that it can hit no other object of the name. What others added stays.
 */
export function plainPatch(desired: KubeObject, live: KubeObject, manager: string): object {
  const { uid } = live.metadata;
  const named = uid === undefined ? desired : { ...desired, metadata: { ...desired.metadata, uid } };
  return givenUp(writtenBy(live, manager), desired)
    .filter((path) => !isOwnedByAnother(live, path, { manager, ownership: 'written' }))
    .reduce<object>(without, named);
}

type Fields = Readonly<Record<string, unknown>>;

/** `patch` with null at `path`; an element of a list is left to whoever wants it. */
function without(patch: object, [step, ...rest]: readonly FieldStep[]): object {
  if (typeof step !== 'string') return patch;
  const below = (patch as Fields)[step] ?? {};
  return { ...patch, [step]: rest.length === 0 ? null : without(below, rest) };
}
