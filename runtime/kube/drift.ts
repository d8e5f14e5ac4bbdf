/**
 * Server-side apply, judged without a server: does `desired`, applied by `manager`, change `live`? Used in a cluster to send
 * nothing when nothing differs, and offline to show what would be sent.
 */

import type { KubeObject } from '../rules/kubernetes/object.ts';
import { isRecord, scalarText } from '../rules/record.ts';
import { Redacted, sameSecret } from '../rules/redacted.ts';
import { pathStep } from './diff.ts';
import type { Difference } from './difference.ts';
import { findByKeys, isSet, keyValue, listKeys } from './list-keys.ts';
import {
  type FieldStep,
  fieldsOf,
  givenUp,
  isOwnedByAnother,
  type Ownership,
  ownedBy,
  withManager,
  writtenBy,
} from './managed-fields.ts';
import { own } from './own.ts';

type Map = Readonly<Record<string, unknown>>;

/**
 * The differences that an apply of `desired` by `manager` would make to `live`: fields that it sets to something else, and
 * fields that this manager alone owns and no longer wants. A field that `desired` leaves out and others set is no difference.
 *
 * @example
 * ```ts
 * import { drift } from './drift.ts';
 * import assert from 'node:assert/strict';
 *
 * const live = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', uid: 'u' }, data: { x: '1', other: '2' } };
 * const desired = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { x: '3' } };
 * assert.deepEqual(drift(desired, live, 'pullwright-demo'), [{ path: 'data.x', before: '1', after: '3' }]);
 * ```
 */
export function drift(
  desired: KubeObject,
  live: KubeObject,
  manager: string,
  ownership: Ownership = 'applied',
): readonly Difference[] {
  const owned = ownership === 'written' ? writtenBy(live, manager) : ownedBy(live, manager);
  const appliedBefore = Object.keys(owned).length > 0;
  const set = compareMap(contentOf(desired), contentOf(live), '').filter(
    (difference) => !(appliedBefore && isOmittedZero(difference)),
  );
  const dropped = givenUp(owned, desired)
    .filter((path) => !isOwnedByAnother(live, path, { manager, ownership }))
    .map((path) => ({ path: renderPath(path), before: valueAt(live, path), after: undefined }));
  return [...set, ...dropped.filter((difference) => difference.before !== undefined)];
}

/** What `live` becomes when `manager` applies `desired`: fields merged, given-up fields removed unless others own them too, ownership recorded. */
export function applied(desired: KubeObject, live: KubeObject | undefined, manager: string): KubeObject {
  const fields = fieldsOf(desired);
  if (live === undefined) return withManager(desired, manager, fields);
  const pruned = givenUp(ownedBy(live, manager), desired)
    .filter((path) => !isOwnedByAnother(live, path, { manager, ownership: 'applied' }))
    .reduce<unknown>((object, path) => without(object, path), live);
  return withManager(merge(pruned, desired, '') as KubeObject, manager, fields);
}

/** Status aside: that is another resource. */
function contentOf(object: KubeObject): Map {
  const { status: _status, metadata, ...rest } = object;
  const { labels, annotations, finalizers, ownerReferences } = metadata;
  return { ...rest, metadata: { labels, annotations, finalizers, ownerReferences } };
}

function compareMap(desired: Map, live: Map, path: string): Difference[] {
  return Object.entries(desired).flatMap(([key, value]) => {
    if (value === undefined) return [];
    return compareValue(key, value, own(live, key), path === '' ? key : `${path}${pathStep(key)}`);
  });
}

/** Whether two values mean the same to the API server: an empty map or list may be dropped by it. */
function compareValue(field: string, desired: unknown, live: unknown, path: string): Difference[] {
  if (isMap(desired)) {
    if (isMap(live)) return compareMap(desired, live, path);
    return live === undefined && isEmptyDeep(desired) ? [] : [{ path, before: live, after: desired }];
  }
  if (Array.isArray(desired)) return compareList(field, desired, live, path);
  return sameLeaf(desired, live) ? [] : [{ path, before: live, after: desired }];
}

function compareList(field: string, desired: readonly unknown[], live: unknown, path: string): Difference[] {
  if (!Array.isArray(live))
    return desired.length === 0 && live === undefined ? [] : [{ path, before: live, after: desired }];
  if (isSet(field)) {
    return desired
      .filter((value) => !live.includes(value))
      .map((value) => ({ path: `${path}[${scalarText(value)}]`, before: undefined, after: value }));
  }
  const keys = listKeys(field, desired);
  if (keys === undefined)
    return sameList(field, desired, live) ? [] : [{ path, before: live, after: desired }];
  return desired.flatMap((element) => {
    const place = `${path}[${keys.map((key) => text(keyValue(element, key))).join('/')}]`;
    const other = findByKeys(live, keys, element);
    return other === undefined
      ? [{ path: place, before: undefined, after: element }]
      : compareMap(element as Map, other as Map, place);
  });
}

/** A list that is one value: same length, and each element covered, because the server fills defaults into elements. */
function sameList(field: string, desired: readonly unknown[], live: readonly unknown[]): boolean {
  return (
    desired.length === live.length &&
    desired.every((element, index) => compareValue(field, element, live[index], '').length === 0)
  );
}

function sameLeaf(a: unknown, b: unknown): boolean {
  if (a instanceof Redacted && b instanceof Redacted)
    return sameSecret(a as Redacted<string>, b as Redacted<string>);
  return a === b || (a === null && b === undefined);
}

/**
 * The server stores no zero value of an `omitempty` field, so `hostPID: false` never comes back. Once this manager has applied,
 * such a field counts as set. Labels and annotations are stored even when empty.
 */
function isOmittedZero({ path, before, after }: Difference): boolean {
  return (
    before === undefined && !path.startsWith('metadata') && (after === false || after === 0 || after === '')
  );
}

function isMap(value: unknown): value is Map {
  return isRecord(value) && !(value instanceof Redacted);
}

function isEmptyDeep(value: Map): boolean {
  return Object.values(value).every((child) => child === undefined);
}

function merge(base: unknown, over: unknown, field: string): unknown {
  if (over === undefined) return base;
  if (isMap(base) && isMap(over)) {
    const entries = Object.entries(over).map(
      ([key, value]) => [key, merge(own(base, key), value, key)] as const,
    );
    return { ...base, ...Object.fromEntries(entries.filter(([, value]) => value !== undefined)) };
  }
  if (Array.isArray(base) && Array.isArray(over)) return mergeList(base, over, field);
  return over;
}

function mergeList(base: readonly unknown[], over: readonly unknown[], field: string): readonly unknown[] {
  if (isSet(field)) return [...base, ...over.filter((value) => !base.includes(value))];
  const keys = listKeys(field, over);
  if (keys === undefined) return over;
  const kept = base.map((element) => merge(element, findByKeys(over, keys, element), field));
  return [...kept, ...over.filter((element) => findByKeys(base, keys, element) === undefined)];
}

function without(node: unknown, [step, ...rest]: readonly FieldStep[]): unknown {
  if (step === undefined) return node;
  if (typeof step === 'string') {
    if (!isMap(node)) return node;
    const { [step]: child, ...others } = node;
    return rest.length === 0 ? others : { ...node, [step]: without(child, rest) };
  }
  if (!Array.isArray(node)) return node;
  const target = 'value' in step ? step.value : findByKeys(node, Object.keys(step.keys), step.keys);
  return rest.length === 0
    ? node.filter((element) => element !== target)
    : node.map((element) => (element === target ? without(element, rest) : element));
}

function valueAt(node: unknown, path: readonly FieldStep[]): unknown {
  return path.reduce<unknown>((value, step) => {
    if (typeof step === 'string') return isMap(value) ? own(value, step) : undefined;
    if (!Array.isArray(value)) return undefined;
    return 'value' in step
      ? value.includes(step.value)
        ? step.value
        : undefined
      : findByKeys(value, Object.keys(step.keys), step.keys);
  }, node);
}

function renderPath(path: readonly FieldStep[]): string {
  return path
    .map((step, index) => {
      if (typeof step === 'string') return index === 0 ? step : pathStep(step);
      return 'value' in step
        ? `[${scalarText(step.value)}]`
        : `[${Object.values(step.keys).map(scalarText).join('/')}]`;
    })
    .join('');
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
