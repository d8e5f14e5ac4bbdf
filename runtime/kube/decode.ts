/**
 * Between raw JSON and {@link KubeObject}: the one file where Secret values become `Redacted`, and the one where they
 * become text again.
 */
import { hash } from 'node:crypto';
import { type KubeObject, LAST_APPLIED, type ManagedFieldsEntry } from '../core/kubernetes/object.ts';
import { isRecord, scalarText } from '../core/record.ts';
import { Redacted, redact, reveal } from '../core/redacted.ts';

type Raw = Readonly<Record<string, unknown>>;

/**
 * Takes a parsed JSON object and wraps what is secret in it: of a Secret the values of `data` and `stringData` and the
 * annotation `kubectl.kubernetes.io/last-applied-configuration`. `stringData` is folded into `data`, as the API server does
 * on write. Everything else is the very same object.
 */
export function decodeObject(raw: Raw): KubeObject {
  // Whatever the version says: a slip in it must not show the values. Groups have a slash, and Secrets of their own.
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
  if (!isRecord(values)) return {};
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, wrapValue(value, toBase64)]));
}

function wrapValue(value: unknown, toBase64: (text: string) => string): Redacted<string> {
  if (value instanceof Redacted) return value as Redacted<string>;
  // The API server stores null as an empty value; other types cannot come from it, only from a hand-written file.
  return shared(
    typeof value === 'string'
      ? toBase64(value)
      : value === null || value === undefined
        ? ''
        : toBase64(JSON.stringify(value)),
  );
}

/** Copies of one Secret in thousands of namespaces come one after the other: their value is kept once. */
const recent: Redacted<string>[] = [];
const MOST_RECENT = 16;
/** Shorter values are not worth the search. */
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

/** A digest of the whole object, secret values included: the same for the same content, and nothing can be read out of it. */
export function digestObject(object: unknown): string {
  return hash('sha256', JSON.stringify(encodeObject(object)), 'hex');
}

/**
 * The raw JSON to send or write: every `Redacted` leaf as its value. What holds none is the very same object. Call it where the
 * bytes leave, nowhere else.
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

// Objects without the fields that are never read, so that a large cache stays small.

/** Kinds of ours of which a field that the API server dropped must not go unseen. */
const LAST_APPLIED_KEPT: ReadonlySet<string> = new Set(['PullSecretProfile']);

/** Kinds whose status another operator may write in our place: who does is how we see it. */
const STATUS_WRITERS_KEPT: ReadonlySet<string> = new Set(['CRIOCredentialProviderConfig']);

/**
 * Leaves out kubectl's copy of the object (but of profiles), the managed fields of status writers (but for kinds whose status others manage),
 * and of a Node the list of its images and volumes (most of its bytes).
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

/** The value under `key`, never what a plain object inherits: a label may be called `constructor`. */
export function own(map: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(map, key) ? map[key] : undefined;
}
