/**
 * `metadata.managedFields`, read and written: which fields a manager owns. Source: the FieldsV1 format of the Kubernetes API
 * (`f:<field>`, `k:<json of the key fields>`, `v:<json value>`, `.`).
 */

import type { KubeObject, ManagedFieldsEntry } from '../rules/kubernetes/object.ts';
import { Redacted } from '../rules/redacted.ts';
import { findByKeys, isSet, keyValue, listKeys } from './list-keys.ts';
import { own } from './own.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The FieldsV1 that server-side apply of `object` would record. Identity and server-set metadata are left out, as the server does. */
export function fieldsOf(object: KubeObject): Fields {
  const { apiVersion: _apiVersion, kind: _kind, metadata, status: _status, ...rest } = object;
  const { labels, annotations, finalizers, ownerReferences } = metadata;
  return {
    ...fieldsOfMap({ metadata: clean({ labels, annotations, finalizers, ownerReferences }) }),
    ...fieldsOfMap(rest),
  };
}

function clean(map: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(map).filter(([, value]) => value !== undefined));
}

function fieldsOfMap(map: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(clean(map)).map(([key, value]) => [`f:${key}`, fieldsOfValue(key, value)]),
  );
}

function fieldsOfValue(field: string, value: unknown): Record<string, unknown> {
  if (Array.isArray(value)) return fieldsOfList(field, value);
  if (typeof value !== 'object' || value === null || value instanceof Redacted) return {};
  return fieldsOfMap(value as Readonly<Record<string, unknown>>);
}

function fieldsOfList(field: string, list: readonly unknown[]): Record<string, unknown> {
  if (isSet(field)) return Object.fromEntries(list.map((value) => [`v:${JSON.stringify(value)}`, {}]));
  const keys = listKeys(field, list);
  if (keys === undefined) return {};
  return Object.fromEntries(
    list.map((element) => {
      const id = Object.fromEntries(keys.map((key) => [key, keyValue(element, key)]));
      return [
        `k:${JSON.stringify(id)}`,
        { '.': {}, ...fieldsOfMap(element as Readonly<Record<string, unknown>>) },
      ];
    }),
  );
}

/** The fields that `manager` owns by apply on the main resource. */
export function ownedBy(object: KubeObject, manager: string): Fields {
  return applyEntry(object, manager)?.fieldsV1 ?? {};
}

function applyEntry(object: KubeObject, manager: string): ManagedFieldsEntry | undefined {
  return object.metadata.managedFields?.find(
    (entry) => entry.manager === manager && entry.operation === 'Apply' && (entry.subresource ?? '') === '',
  );
}

/** The fields that `manager` owns on the main resource, whether it applied, created or patched them. */
export function writtenBy(object: KubeObject, manager: string): Fields {
  return (object.metadata.managedFields ?? [])
    .filter((entry) => entry.manager === manager && (entry.subresource ?? '') === '')
    .reduce<Fields>((fields, entry) => union(fields, entry.fieldsV1 ?? {}), {});
}

function union(a: Fields, b: Fields): Fields {
  if (Object.keys(a).length === 0) return b;
  const inner = Object.entries(b).map(([key, value]) => [
    key,
    union((a[key] ?? {}) as Fields, (value ?? {}) as Fields),
  ]);
  return { ...a, ...Object.fromEntries(inner) };
}

/** Managers that own the field at `path`, with their operation. A step is the key of a map, or `k:<json>` of a keyed list. */
export function managersOf(object: KubeObject, path: readonly string[]): readonly ManagedFieldsEntry[] {
  return (object.metadata.managedFields ?? []).filter((entry) => hasField(entry.fieldsV1 ?? {}, path));
}

/**
 * How a manager came to its fields: by server-side apply, whose entry stands for itself, or in whatever way. To the API server an
 * apply and an update of one manager are two owners.
 */
export type Ownership = 'applied' | 'written';

/** Whether somebody other than `manager` owns the field too, so that it stays when `manager` gives it up. */
export function isOwnedByAnother(
  object: KubeObject,
  path: readonly FieldStep[],
  { manager, ownership }: { readonly manager: string; readonly ownership: Ownership },
): boolean {
  const tokens = path.map((step) =>
    typeof step === 'string'
      ? `f:${step}`
      : 'keys' in step
        ? `k:${JSON.stringify(step.keys)}`
        : `v:${JSON.stringify(step.value)}`,
  );
  const mine = applyEntry(object, manager);
  return (object.metadata.managedFields ?? []).some((entry) => {
    const isMine = ownership === 'written' ? entry.manager === manager : entry === mine;
    if (isMine || (entry.subresource ?? '') !== '') return false;
    let node: unknown = entry.fieldsV1;
    for (const token of tokens) node = (node as Fields | undefined)?.[token];
    return node !== undefined;
  });
}

function hasField(fields: Fields, path: readonly string[]): boolean {
  let node: unknown = fields;
  for (const key of path) {
    const token = key.startsWith('k:') ? key : `f:${key}`;
    if (typeof node !== 'object' || node === null || !(token in node)) return false;
    node = (node as Fields)[token];
  }
  return true;
}

/**
 * The paths that `owned` covers and `desired` no longer has. Each path ends where the difference begins; an element of a keyed
 * list is `{ keys }`, a set member `{ value }`.
 */
export type FieldStep = string | { readonly keys: Fields } | { readonly value: unknown };

export function givenUp(
  owned: Fields,
  desired: unknown,
  path: readonly FieldStep[] = [],
): readonly (readonly FieldStep[])[] {
  return Object.entries(owned).flatMap(([token, below]) => {
    const step = stepOf(token);
    if (step === undefined) return [];
    const child = childOf(desired, step);
    const inner = (typeof below === 'object' && below !== null ? below : {}) as Fields;
    // A map that was only a way to owned leaves is not given up itself; an element or a value is.
    const whole = Object.keys(inner).length === 0 || '.' in inner;
    if (child === undefined && whole) return [[...path, step]];
    return givenUp(inner, child, [...path, step]);
  });
}

function stepOf(token: string): FieldStep | undefined {
  if (token.startsWith('f:')) return token.slice(2);
  if (token.startsWith('k:')) return { keys: JSON.parse(token.slice(2)) as Fields };
  if (token.startsWith('v:')) return { value: JSON.parse(token.slice(2)) as unknown };
  return undefined;
}

/** What `step` leads to below `node`, or undefined. */
export function childOf(node: unknown, step: FieldStep): unknown {
  if (typeof step === 'string')
    return typeof node === 'object' && node !== null ? own(node as Fields, step) : undefined;
  if (!Array.isArray(node)) return undefined;
  if ('value' in step) return node.includes(step.value) ? step.value : undefined;
  return findByKeys(node, Object.keys(step.keys), step.keys);
}

/** `object` with the apply entry of `manager` replaced by `fields` (none when empty). Offline only: a server does this itself. */
export function withManager(object: KubeObject, manager: string, fields: Fields): KubeObject {
  const others = (object.metadata.managedFields ?? []).filter(
    (entry) => entry !== applyEntry(object, manager),
  );
  const mine: ManagedFieldsEntry = {
    manager,
    operation: 'Apply',
    apiVersion: object.apiVersion,
    fieldsType: 'FieldsV1',
    fieldsV1: fields,
  };
  const managedFields = Object.keys(fields).length === 0 ? others : [...others, mine];
  return { ...object, metadata: { ...object.metadata, managedFields } };
}
