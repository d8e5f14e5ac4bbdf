/**
 * Between raw JSON and {@link KubeObject}: the one place where Secret values become `Redacted`, and the one where they
 * become text again.
 */

import { hash } from 'node:crypto';
import { type KubeObject, LAST_APPLIED } from '../rules/kubernetes/object.ts';
import { isRecord, scalarText } from '../rules/record.ts';
import { Redacted, redact, reveal } from '../rules/redacted.ts';

type Raw = Readonly<Record<string, unknown>>;

/**
 * Takes a parsed JSON object and wraps what is secret in it: of a Secret the values of `data` and `stringData` and the
 * annotation `kubectl.kubernetes.io/last-applied-configuration`. `stringData` is folded into `data`, as the API server does
 * on write. Everything else is the very same object.
 *
 * @example
 * ```ts
 * import { decodeObject } from './decode.ts';
 * import assert from 'node:assert/strict';
 *
 * const secret = decodeObject({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' }, data: { token: 'aHVudGVyMg==' } });
 * assert.equal(JSON.stringify(secret), '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"token":"[redacted]"}}');
 * ```
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
