/** Which cluster an event speaks of. */
import type { CloudEvent } from '../brokers/cloud-event.ts';

/** A hint to look at one cluster. */
export interface ClusterHint {
  readonly clusterId: string;
  /** What the sender believed; only used to recognise repetitions. */
  readonly generation: number | undefined;
}

/** A hint, or that the event is about something else (taken off the queue), or that it can never be understood. */
export type HintResult =
  | { readonly kind: 'cluster'; readonly hint: ClusterHint }
  | { readonly kind: 'other'; readonly reason: string }
  | { readonly kind: 'invalid'; readonly reason: string };

/** Identifiers that are safe in a path, a label and an object name: what the API issues (UUIDv7) and `cls-123` of the requirement. */
export const CLUSTER_ID: RegExp = /^[a-z0-9]([a-z0-9-]{0,36}[a-z0-9])?$/;

/**
 * Any type with a segment `cluster` counts: `cluster.create` (requirement), `com.redhat.hyperfleet.cluster.reconcile` (running
 * system), `io.hyperfleet.cluster.updated` (dry runs). An event of a node pool is somebody else's.
 *
 * @example
 * ```ts
 * import { clusterHint } from './cluster-event.ts';
 * import assert from 'node:assert/strict';
 *
 * const event = { specversion: '1.0', id: '1', source: 's', type: 'cluster.create', data: { id: 'cls-123' }, extensions: {} };
 * assert.deepEqual(clusterHint(event), { kind: 'cluster', hint: { clusterId: 'cls-123', generation: undefined } });
 * ```
 */
export function clusterHint(event: CloudEvent): HintResult {
  if (!event.type.toLowerCase().split('.').includes('cluster')) {
    return { kind: 'other', reason: `type "${event.type.slice(0, 120)}" is not about a cluster` };
  }
  const data = typeof event.data === 'string' ? parsed(event.data) : event.data;
  if (typeof data !== 'object' || data === null) return { kind: 'invalid', reason: 'data is not an object' };
  const { id, generation } = data as { readonly id?: unknown; readonly generation?: unknown };
  if (typeof id !== 'string' || id === '') return { kind: 'invalid', reason: 'data.id is missing' };
  if (!CLUSTER_ID.test(id)) {
    return {
      kind: 'invalid',
      reason: 'data.id is no cluster identifier: expected up to 38 of a-z, 0-9 and -',
    };
  }
  return {
    kind: 'cluster',
    hint: { clusterId: id, generation: Number.isInteger(generation) ? (generation as number) : undefined },
  };
}

/** Some senders put the data as text that holds JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
