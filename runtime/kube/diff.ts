/** What differs between two states of one object, leaf by leaf, for people to read. Secret values stay wrapped. */

import type { KubeObject } from '../rules/kubernetes/object.ts';
import { isRecord, scalarText } from '../rules/record.ts';
import { Redacted, sameSecret } from '../rules/redacted.ts';
import type { Difference } from './difference.ts';
import { findByKeys, keyValue, listKeys } from './list-keys.ts';
import { own } from './own.ts';

type Map = Readonly<Record<string, unknown>>;

const BOOKKEEPING: ReadonlySet<string> = new Set([
  'managedFields',
  'resourceVersion',
  'uid',
  'generation',
  'creationTimestamp',
]);

/**
 * Every leaf that is not the same, in the order of `after`, then what only `before` has. Server bookkeeping is left out.
 *
 * @example
 * ```ts
 * import { diff } from './diff.ts';
 * import assert from 'node:assert/strict';
 *
 * const before = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'a', labels: { x: '1' } } };
 * const after = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'a', labels: { y: '2' } } };
 * assert.deepEqual(diff(before, after).map((one) => one.path), ['metadata.labels.y', 'metadata.labels.x']);
 * ```
 */
export function diff(before: KubeObject | undefined, after: KubeObject | undefined): readonly Difference[] {
  return compare('', bare(before), bare(after), '');
}

function bare(object: KubeObject | undefined): unknown {
  if (object === undefined) return undefined;
  const metadata = Object.fromEntries(
    Object.entries(object.metadata).filter(([key]) => !BOOKKEEPING.has(key)),
  );
  return { ...object, metadata };
}

function compare(field: string, before: unknown, after: unknown, path: string): Difference[] {
  if (same(before, after)) return [];
  if (isMap(before) && isMap(after)) return compareMaps(before, after, path);
  if (Array.isArray(before) && Array.isArray(after)) {
    const keys = listKeys(field, after.length > 0 ? after : before);
    if (keys !== undefined) return compareKeyed(before, after, keys, path);
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path, before, after }];
  }
  return [{ path, before, after }];
}

function compareMaps(before: Map, after: Map, path: string): Difference[] {
  const keys = [...Object.keys(after), ...Object.keys(before).filter((key) => !Object.hasOwn(after, key))];
  return keys.flatMap((key) =>
    compare(key, own(before, key), own(after, key), path === '' ? key : `${path}${pathStep(key)}`),
  );
}

function compareKeyed(
  before: readonly unknown[],
  after: readonly unknown[],
  keys: readonly string[],
  path: string,
): Difference[] {
  const place = (element: unknown): string =>
    `${path}[${keys.map((key) => scalarText(keyValue(element, key))).join('/')}]`;
  const changed = after.flatMap((element) =>
    compare('', findByKeys(before, keys, element), element, place(element)),
  );
  const gone = before.filter((element) => findByKeys(after, keys, element) === undefined);
  return [
    ...changed,
    ...gone.map((element) => ({ path: place(element), before: element, after: undefined })),
  ];
}

function same(a: unknown, b: unknown): boolean {
  if (a instanceof Redacted && b instanceof Redacted)
    return sameSecret(a as Redacted<string>, b as Redacted<string>);
  return a === b;
}

function isMap(value: unknown): value is Map {
  return isRecord(value) && !(value instanceof Redacted);
}

/** `.name` for plain names, `["a/b"]` for the rest. */
export function pathStep(key: string): string {
  return /^[A-Za-z_][\w-]*$/.test(key) ? `.${key}` : `["${key}"]`;
}
