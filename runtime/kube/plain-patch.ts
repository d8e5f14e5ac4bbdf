/**
 * Objects that are wholly ours, without server-side apply: which of their fields differ, and the merge patch that fixes them. The
 * field manager is recorded either way, so that apply can take over at any time.
 */
import type { KubeObject } from '../rules/kubernetes/object.ts';
import type { Difference } from './difference.ts';
import { drift } from './drift.ts';
import { type FieldStep, givenUp, isOwnedByAnother, writtenBy } from './managed-fields.ts';

/** As {@link drift}, also for fields that `manager` created or patched. */
export function plainDrift(desired: KubeObject, live: KubeObject, manager: string): readonly Difference[] {
  return drift(desired, live, manager, 'written');
}

/**
 * The JSON merge patch (RFC 7386) that makes `live` what `desired` says: all of `desired`, null for what `manager` alone wrote
 * once and wants no longer, and the uid, so that it can hit no other object of the name. What others added stays.
 *
 * @example
 * ```ts
 * import { plainPatch } from './plain-patch.ts';
 * import assert from 'node:assert/strict';
 *
 * const desired = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { x: '2' } };
 * const managedFields = [{ manager: 'm', operation: 'Update', fieldsV1: { 'f:data': { 'f:x': {}, 'f:y': {} } } }];
 * const live = { ...desired, metadata: { name: 'a', uid: 'u', managedFields }, data: { x: '1', y: '1', z: '1' } };
 * assert.deepEqual(plainPatch(desired, live, 'm'), { ...desired, metadata: { name: 'a', uid: 'u' }, data: { x: '2', y: null } });
 * ```
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
