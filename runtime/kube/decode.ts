/** Converts between raw JSON and {@link KubeObject}. Only this file wraps Secret values in `Redacted`, and unwraps them again. */
import { hash } from 'node:crypto';
import { type KubeObject, LAST_APPLIED, type ManagedFieldsEntry } from '../core/kubernetes/object.ts';
import { mapValues, recordOf, scalarText } from '../core/record.ts';
import { Redacted, redact, reveal } from '../core/redacted.ts';

type Raw = Readonly<Record<string, unknown>>;

/**
 * Wraps the secret values of a parsed Secret: `data`, `stringData` and the annotation
 * `kubectl.kubernetes.io/last-applied-configuration`. Merges `stringData` into `data`, as the API server does on write. Returns
 * any other object unchanged.
 */
export function decodeObject(raw: Raw): KubeObject {
  // Accept any version, so that a typo cannot expose values. An apiVersion with a slash has a group: not a core Secret.
  if (raw['kind'] !== 'Secret' || scalarText(raw['apiVersion']).includes('/')) return raw as KubeObject;
  const { stringData, data, ...rest } = raw;
  const wrapped = {
    ...wrapValues(data, (text) => text),
    ...wrapValues(stringData, (text) => Buffer.from(text).toString('base64')),
  };
  const decoded: Record<string, unknown> = { ...rest, ...withoutSecretAnnotation(rest['metadata']) };
  if (data !== undefined || stringData !== undefined) decoded['data'] = wrapped;
  return decoded as KubeObject;
}

function wrapValues(values: unknown, toBase64: (text: string) => string): Record<string, Redacted<string>> {
  return mapValues(recordOf(values), (value) => wrapValue(value, toBase64));
}

function wrapValue(value: unknown, toBase64: (text: string) => string): Redacted<string> {
  if (value instanceof Redacted) return value as Redacted<string>;
  // The API server stores null as an empty value; other types occur only in hand-written files.
  const content = value ?? '';
  return shared(toBase64(typeof content === 'string' ? content : JSON.stringify(content)));
}

/** Recent values. Copies of a Secret in thousands of namespaces are decoded consecutively and share one value. */
const recent: Redacted<string>[] = [];
const MOST_RECENT = 16;
/** Shorter values are not shared, because the search costs more. */
const LEAST_SHARED = 64;

function shared(text: string): Redacted<string> {
  if (text.length < LEAST_SHARED) return redact(text);
  const known = recent.find((one) => reveal(one) === text);
  if (known !== undefined) return known;
  const value = redact(text);
  if (recent.unshift(value) > MOST_RECENT) recent.pop();
  return value;
}

function withoutSecretAnnotation(metadata: unknown): { metadata?: unknown } {
  if (typeof metadata !== 'object' || metadata === null || !('annotations' in metadata)) return {};
  const annotations = metadata.annotations as Raw | null | undefined;
  const applied = annotations?.[LAST_APPLIED];
  if (typeof applied !== 'string') return {};
  return { metadata: { ...metadata, annotations: { ...annotations, [LAST_APPLIED]: redact(applied) } } };
}

/** SHA-256 of the whole object, secret values included. */
export function digestObject(object: unknown): string {
  return hash('sha256', JSON.stringify(encodeObject(object)), 'hex');
}

/**
 * Replaces every `Redacted` value by its content, for sending or writing. Returns an object without any unchanged. Call it only
 * directly before the output.
 */
export function encodeObject(object: unknown): unknown {
  if (object instanceof Redacted) return reveal(object);
  if (typeof object !== 'object' || object === null) return object;
  if (Array.isArray(object)) {
    const items = object.map(encodeObject);
    return items.every((item, at) => item === object[at]) ? object : items;
  }
  let encoded: Record<string, unknown> | undefined;
  for (const key of Object.keys(object)) {
    const value = (object as Raw)[key];
    const one = encodeObject(value);
    if (one === value) continue;
    encoded ??= { ...object };
    // A key may be called __proto__.
    Object.defineProperty(encoded, key, { value: one, enumerable: true, configurable: true, writable: true });
  }
  return encoded ?? object;
}

// Drops fields that are never read, to save memory in caches.

/** Kinds whose last-applied annotation is kept, to detect fields that the API server dropped. */
const LAST_APPLIED_KEPT: ReadonlySet<string> = new Set(['PullSecretProfile']);

/** Kinds whose managed fields of the status are kept, to detect another operator that writes it. */
const STATUS_WRITERS_KEPT: ReadonlySet<string> = new Set(['CRIOCredentialProviderConfig']);

/**
 * Removes the last-applied annotation and the managed fields of subresources, except for the kinds above, and the images and
 * volumes of a Node, which are most of its size.
 */
export function leanObject(object: KubeObject): KubeObject {
  const { managedFields, ...rest } = object.metadata;
  const { [LAST_APPLIED]: _applied, ...annotations } = rest.annotations ?? {};
  const isKept = STATUS_WRITERS_KEPT.has(object.kind);
  const fields = managedFields
    ?.filter((entry) => isKept || (entry.subresource ?? '') === '')
    .map(withSharedFields);
  const metadata = {
    ...rest,
    ...(rest.annotations === undefined || LAST_APPLIED_KEPT.has(object.kind) ? {} : { annotations }),
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

/** Managed fields by their JSON, because thousands of objects of one manager share the same ones. */
const knownFields = new Map<string, ManagedFieldsEntry['fieldsV1']>();
const MOST_KNOWN = 1000;
/** Longer managed fields are not shared, because they rarely repeat. Those of our Secrets have a twentieth of this size. */
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

/** The own property `key`, never an inherited one: a label may be named `constructor`. */
export function own(map: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(map, key) ? map[key] : undefined;
}
