/**
 * CloudEvents 1.0 over any broker: structured (the whole event is the body) and binary (attributes carry the context, the
 * body is the data).
 *
 * Source of the rule: the CloudEvents 1.0 JSON format and its protocol bindings, and what the existing publisher really
 * sends: structured JSON without content type, `time` or `subject`. As lenient as the existing subscriber (an empty source and
 * specversion 0.3 pass), and binary mode is understood on top.
 */
import { isRecord, jsonOf, scalarText } from '../core/record.ts';

/** An event. */
export interface CloudEvent {
  readonly specversion: string;
  readonly id: string;
  readonly source: string;
  readonly type: string;
  /** RFC 3339, when the sender gave one. */
  readonly time?: string | undefined;
  readonly datacontenttype?: string | undefined;
  readonly data: unknown;
  /** Other attributes with text values, such as `traceparent`; names in lower case. */
  readonly extensions: Readonly<Record<string, string>>;
}

/** A message as a broker delivers it. Attribute names in any case. */
export interface WireMessage {
  readonly body: Uint8Array;
  readonly attributes: Readonly<Record<string, string>>;
}

/** An event, or why the message is none: such a message can never become one, so redelivering it is useless. */
export type CloudEventResult =
  | { readonly ok: true; readonly event: CloudEvent }
  | { readonly ok: false; readonly reason: string };

/** Longest body that is parsed, in bytes. An event is a hint of some 300 bytes. */
export const MAX_EVENT_BYTES = 1_048_576;

const CONTEXT = ['specversion', 'id', 'source', 'type', 'time', 'datacontenttype', 'data', 'data_base64'];
/** How the context attributes are prefixed: HTTP and Pub/Sub use `ce-`, AMQP `cloudEvents:` or `cloudEvents_`. */
const PREFIXES = ['ce-', 'ce_', 'cloudevents:', 'cloudevents_'];

/**
 * Reads one event out of a message. Total: garbage gives a reason (which never quotes the message), never an exception.
 */
export function parseCloudEvent(message: WireMessage): CloudEventResult {
  if (message.body.length > MAX_EVENT_BYTES) {
    return reject(`the body has ${message.body.length} bytes, more than ${MAX_EVENT_BYTES}`);
  }
  const attributes = lowerCased(message.attributes);
  return isBinary(attributes) ? fromBinary(message.body, attributes) : fromStructured(message.body);
}

/**
 * The event as one JSON text in structured mode: context attributes, data, extensions, in the order of the Go SDK, keys of
 * the data sorted.
 */
export function encodeCloudEvent(event: CloudEvent): string {
  const { specversion, id, source, type, time, datacontenttype, data, extensions } = event;
  return JSON.stringify({
    specversion,
    id,
    source,
    type,
    datacontenttype,
    time,
    data: sorted(data),
    ...extensions,
  });
}

function lowerCased(attributes: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name.toLowerCase(), value]));
}

function isBinary(attributes: Readonly<Record<string, string>>): boolean {
  const content = attributes['content-type'] ?? '';
  if (content.startsWith('application/cloudevents')) return false;
  return PREFIXES.some((prefix) => attributes[`${prefix}specversion`] !== undefined);
}

function fromBinary(body: Uint8Array, attributes: Readonly<Record<string, string>>): CloudEventResult {
  const context: Record<string, string> = {};
  for (const [name, value] of Object.entries(attributes)) {
    const prefix = PREFIXES.find((candidate) => name.startsWith(candidate));
    if (prefix !== undefined) context[name.slice(prefix.length)] = value;
  }
  const content = attributes['content-type'];
  if (content !== undefined) context['datacontenttype'] = content;
  const data = body.length === 0 ? { ok: true as const, value: undefined } : parseJson(body);
  if (!data.ok) return reject('the data is not JSON in UTF-8');
  return build(context, data.value);
}

function fromStructured(body: Uint8Array): CloudEventResult {
  const parsed = parseJson(body);
  if (!parsed.ok) return reject('the body is not JSON in UTF-8');
  if (!isRecord(parsed.value)) return reject('the body is not a JSON object');
  const fields = parsed.value;
  if (fields['data_base64'] === undefined) return build(fields, fields['data']);
  if (typeof fields['data_base64'] !== 'string') return reject('data_base64 is not text');
  const decoded = parseJson(Buffer.from(fields['data_base64'], 'base64'));
  return decoded.ok ? build(fields, decoded.value) : reject('data_base64 does not hold JSON');
}

function build(fields: Readonly<Record<string, unknown>>, data: unknown): CloudEventResult {
  const { specversion, id, type, source, time, datacontenttype } = fields;
  if (typeof specversion !== 'string' || !/^(1\.\d+|0\.3)$/.test(specversion)) {
    return reject('specversion is missing or unknown: expected 1.0');
  }
  if (typeof type !== 'string' || type === '') return reject('type is missing');
  if (id !== undefined && typeof id !== 'string') return reject('id is not text');
  return {
    ok: true,
    event: {
      specversion,
      id: id ?? '',
      source: typeof source === 'string' ? source : '',
      type,
      time: typeof time === 'string' ? time : undefined,
      datacontenttype: typeof datacontenttype === 'string' ? datacontenttype : undefined,
      data,
      extensions: extensionsOf(fields),
    },
  };
}

function extensionsOf(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const extensions: Record<string, string> = {};
  for (const [name, value] of Object.entries(fields)) {
    const key = name.toLowerCase();
    const plain = ['string', 'number', 'boolean'].includes(typeof value);
    if (!CONTEXT.includes(key) && plain) extensions[key] = scalarText(value);
  }
  return extensions;
}

function parseJson(bytes: Uint8Array): { ok: true; value: unknown } | { ok: false } {
  try {
    return { ok: true, value: JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) };
  } catch {
    return { ok: false };
  }
}

function reject(reason: string): CloudEventResult {
  return { ok: false, reason };
}

/** Go writes maps with sorted keys. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  );
}

// Which cluster an event speaks of.

/** Which cluster to look at, or that the event is about something else (acknowledged), or that it is invalid. */
export type ClusterHint =
  | {
      readonly kind: 'cluster';
      readonly clusterId: string;
      /** What the sender believed; only used to recognise repetitions. */
      readonly generation: number | undefined;
    }
  | { readonly kind: 'other' }
  | { readonly kind: 'invalid'; readonly reason: string };

/** Identifiers that are safe in a path, a label and an object name: what the API issues (UUIDv7) and `cls-123` of the requirement. */
export const CLUSTER_ID: RegExp = /^[a-z0-9]([a-z0-9-]{0,36}[a-z0-9])?$/;

/**
 * Any type with a segment `cluster` counts: `cluster.create` (requirement), `com.redhat.hyperfleet.cluster.reconcile` (running
 * system), `io.hyperfleet.cluster.updated` (dry runs). Events of node pools are ignored.
 */
export function clusterHint(event: CloudEvent): ClusterHint {
  if (!event.type.toLowerCase().split('.').includes('cluster')) return { kind: 'other' };
  // Some senders put the data as text that holds JSON.
  const data = typeof event.data === 'string' ? jsonOf(event.data) : event.data;
  if (typeof data !== 'object' || data === null) return { kind: 'invalid', reason: 'data is not an object' };
  const { id, generation } = data as { readonly id?: unknown; readonly generation?: unknown };
  if (typeof id !== 'string' || id === '') return { kind: 'invalid', reason: 'data.id is missing' };
  if (!CLUSTER_ID.test(id)) {
    return {
      kind: 'invalid',
      reason: 'data.id is not a cluster identifier: expected up to 38 of a-z, 0-9 and -',
    };
  }
  return {
    kind: 'cluster',
    clusterId: id,
    generation: Number.isInteger(generation) ? (generation as number) : undefined,
  };
}
