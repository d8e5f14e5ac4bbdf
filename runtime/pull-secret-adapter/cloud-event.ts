/**
 * CloudEvents 1.0 over any broker, in structured mode (the body is the whole event) and binary mode (attributes hold the context,
 * the body is the data).
 *
 * Source of the rule: the CloudEvents 1.0 JSON format and its protocol bindings, and the events of the existing publisher:
 * structured JSON without content type, `time` or `subject`. Like the existing subscriber, the parser accepts an empty source and
 * specversion 0.3. It also supports binary mode.
 */
import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { isRecord, jsonOf, scalarText, withSortedKeys } from '../core/record.ts';
import { CLUSTER_ID } from './places.ts';

export interface CloudEvent extends Readonly<z.output<typeof context>> {
  readonly data: unknown;
  /** Other attributes with text values, such as `traceparent`; names in lower case. */
  readonly extensions: Readonly<Record<string, string>>;
}

/** A message as a broker delivers it. Attribute names in any case. */
export interface WireMessage {
  readonly body: Uint8Array;
  readonly attributes: Readonly<Record<string, string>>;
}

/** An event, or why the message is invalid. Redelivery cannot fix an invalid message. */
export type CloudEventResult =
  | { readonly ok: true; readonly event: CloudEvent }
  | { readonly ok: false; readonly reason: string };

/** Largest body that is parsed, in bytes. A usual event has about 300. */
export const MAX_EVENT_BYTES = 1_048_576;

const CONTEXT = ['specversion', 'id', 'source', 'type', 'time', 'datacontenttype', 'data', 'data_base64'];
/** Prefixes of context attributes: HTTP and Pub/Sub use `ce-`, AMQP `cloudEvents:` or `cloudEvents_`. */
const PREFIXES = ['ce-', 'ce_', 'cloudevents:', 'cloudevents_'];

/** Parses a message. Never throws: an invalid message yields a reason, which never quotes the message. */
export function parseCloudEvent(message: WireMessage): CloudEventResult {
  if (message.body.length > MAX_EVENT_BYTES) {
    return reject(`the body has ${message.body.length} bytes, more than ${MAX_EVENT_BYTES}`);
  }
  const attributes = Object.fromEntries(
    Object.entries(message.attributes).map(([name, value]) => [name.toLowerCase(), value]),
  );
  const isStructured = attributes['content-type']?.startsWith('application/cloudevents') === true;
  const isBinary =
    !isStructured && PREFIXES.some((prefix) => attributes[`${prefix}specversion`] !== undefined);
  return isBinary ? fromBinary(message.body, attributes) : fromStructured(message.body);
}

/**
 * Encodes the event as JSON in structured mode: context attributes, data, extensions, in the order of the Go SDK, with sorted
 * keys of the data.
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
    data: withSortedKeys(data),
    ...extensions,
  });
}

function fromBinary(body: Uint8Array, attributes: Readonly<Record<string, string>>): CloudEventResult {
  const context: Record<string, string> = {};
  for (const [name, value] of Object.entries(attributes)) {
    const prefix = PREFIXES.find((candidate) => name.startsWith(candidate));
    if (prefix !== undefined) context[name.slice(prefix.length)] = value;
  }
  const content = attributes['content-type'];
  if (content !== undefined) context['datacontenttype'] = content;
  const data = jsonIn(body);
  if (data === undefined && body.length > 0) return reject('the data is not JSON in UTF-8');
  return build(context, data);
}

function fromStructured(body: Uint8Array): CloudEventResult {
  const fields = jsonIn(body);
  if (fields === undefined) return reject('the body is not JSON in UTF-8');
  if (!isRecord(fields)) return reject('the body is not a JSON object');
  if (fields['data_base64'] === undefined) return build(fields, fields['data']);
  if (typeof fields['data_base64'] !== 'string') return reject('data_base64 is not text');
  const decoded = jsonIn(Buffer.from(fields['data_base64'], 'base64'));
  return decoded === undefined ? reject('data_base64 is not JSON') : build(fields, decoded);
}

const MISSING_TYPE = 'type is missing';
const UNKNOWN_VERSION = 'specversion is missing or unknown: expected 1.0';
const optionalText = z.string().optional().catch(undefined);
const context = z.object({
  specversion: z.string(UNKNOWN_VERSION).regex(/^(1\.\d+|0\.3)$/, UNKNOWN_VERSION),
  type: z.string(MISSING_TYPE).min(1, MISSING_TYPE),
  id: z.string('id is not text').default(''),
  source: z.string().catch(''),
  time: optionalText,
  datacontenttype: optionalText,
});

function build(fields: Readonly<Record<string, unknown>>, data: unknown): CloudEventResult {
  const { data: event, error } = context.safeParse(fields);
  if (event === undefined) return reject(error?.issues[0]?.message ?? '');
  return { ok: true, event: { ...event, data, extensions: extensionsOf(fields) } };
}

function extensionsOf(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const extensions = Object.entries(fields)
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([key, value]) => !CONTEXT.includes(key) && typeof value !== 'object' && value !== undefined);
  return Object.fromEntries(extensions.map(([key, value]) => [key, scalarText(value)]));
}

/** Undefined if the bytes are not JSON in UTF-8. */
function jsonIn(bytes: Uint8Array): unknown {
  return isUtf8(bytes) ? jsonOf(new TextDecoder().decode(bytes)) : undefined;
}

function reject(reason: string): CloudEventResult {
  return { ok: false, reason };
}

// The cluster that an event refers to.

const NO_ID = 'data.id is missing';
const cluster = z.object(
  {
    id: z
      .string(NO_ID)
      .min(1, NO_ID)
      .regex(CLUSTER_ID, 'data.id is not a cluster identifier: expected up to 38 of a-z, 0-9 and -'),
    /** The generation according to the sender; only used to detect duplicates. */
    generation: z.int().optional().catch(undefined),
  },
  'data is not an object',
);

/** The cluster to reconcile. `other`: the event is not about a cluster, so it is acknowledged. */
export type ClusterHint =
  | ({ readonly kind: 'cluster' } & Readonly<z.output<typeof cluster>>)
  | { readonly kind: 'other' }
  | { readonly kind: 'invalid'; readonly reason: string };

/**
 * Returns the cluster of an event. Every type with a segment `cluster` matches: `cluster.create` (requirement),
 * `com.redhat.hyperfleet.cluster.reconcile` (running system), `io.hyperfleet.cluster.updated` (dry runs). Others are ignored.
 */
export function clusterHint(event: CloudEvent): ClusterHint {
  if (!event.type.toLowerCase().split('.').includes('cluster')) return { kind: 'other' };
  // Some senders encode the data as a string that contains JSON.
  const { data, error } = cluster.safeParse(typeof event.data === 'string' ? jsonOf(event.data) : event.data);
  return data === undefined
    ? { kind: 'invalid', reason: error?.issues[0]?.message ?? '' }
    : { kind: 'cluster', ...data };
}
