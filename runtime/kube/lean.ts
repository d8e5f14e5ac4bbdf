/** Objects without what nobody here reads, so that a cache of many is small. */
import { type KubeObject, LAST_APPLIED, type ManagedFieldsEntry } from '../rules/kubernetes/object.ts';

/** Kinds of ours of which a field that the API server dropped must not go unseen. */
const LAST_APPLIED_KEPT: ReadonlySet<string> = new Set(['PullSecretProfile']);

/** Kinds whose status another operator may write in our place: who does is how we see it. */
const STATUS_WRITERS_KEPT: ReadonlySet<string> = new Set(['CRIOCredentialProviderConfig']);

/**
 * Leaves out kubectl's copy of the object (but of profiles), the managed fields of status writers (but for kinds whose status others manage),
 * and of a Node the list of its images and volumes (most of its bytes).
 *
 * @example
 * ```ts
 * import { leanObject } from './lean.ts';
 * import assert from 'node:assert/strict';
 *
 * const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' }, status: { images: [{}], phase: 'x' } };
 * assert.deepEqual(leanObject(node).status, { phase: 'x' });
 * ```
 */
export function leanObject(object: KubeObject): KubeObject {
  const { managedFields, ...rest } = object.metadata;
  const { annotations } = rest;
  const isKept = STATUS_WRITERS_KEPT.has(object.kind);
  const fields = managedFields
    ?.filter((entry) => isKept || (entry.subresource ?? '') === '')
    .map(withSharedFields);
  const metadata = {
    ...rest,
    ...(annotations === undefined || LAST_APPLIED_KEPT.has(object.kind)
      ? {}
      : { annotations: without(annotations, LAST_APPLIED) }),
    ...(fields === undefined ? {} : { managedFields: fields }),
  };
  if (object.kind !== 'Node') return { ...object, metadata };
  const {
    images: _images,
    volumesInUse: _inUse,
    volumesAttached: _attached,
    ...status
  } = (object.status ?? {}) as Record<string, unknown>;
  return { ...object, metadata, status };
}

/** Objects that one manager made by the thousand own the same fields: those are kept once. */
const knownFields = new Map<string, ManagedFieldsEntry['fieldsV1']>();
const MOST_KNOWN = 1000;
/** Of what one manager owns, as text: longer ones are hardly twice the same. A Secret of ours has a twentieth of it. */
const MOST_TEXT = 16 * 1024;

function withSharedFields(entry: ManagedFieldsEntry): ManagedFieldsEntry {
  const { fieldsV1 } = entry;
  if (fieldsV1 === undefined) return entry;
  const text = JSON.stringify(fieldsV1);
  if (text.length > MOST_TEXT) return entry;
  const known = knownFields.get(text);
  if (known !== undefined) return { ...entry, fieldsV1: known };
  if (knownFields.size >= MOST_KNOWN) knownFields.clear();
  knownFields.set(text, fieldsV1);
  return entry;
}

function without<V>(map: Readonly<Record<string, V>>, key: string): Readonly<Record<string, V>> {
  if (!(key in map)) return map;
  return Object.fromEntries(Object.entries(map).filter(([name]) => name !== key));
}
