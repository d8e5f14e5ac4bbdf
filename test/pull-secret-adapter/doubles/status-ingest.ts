/**
 * Order of the HyperFleet API's checks of a status report: fields 400, then 404, discards 204, mandatory conditions 400, else
 * 201.
 */
import { scalarText } from '../../../runtime/core/record.ts';

export interface IngestBody {
  readonly adapter?: unknown;
  readonly observed_generation?: unknown;
  readonly observed_time?: unknown;
  readonly conditions?: unknown;
}

export interface IngestAnswer {
  readonly status: 201 | 204 | 400 | 404;
  readonly detail?: string;
  /** Whether the report counts for the aggregated conditions. */
  readonly aggregate?: boolean;
}

export interface StoredReport {
  readonly observed_generation: number;
  readonly observed_time: string;
}

const MANDATORY = ['Available', 'Applied', 'Health'];

/**
 * Answer of the API.
 *
 * @param existing the previous report of the same adapter
 * @example
 * ```ts
 * import { ingestStatus } from './status-ingest.ts';
 * import assert from 'node:assert/strict';
 *
 * const now = new Date('2026-01-01T00:00:00Z');
 * const body = { adapter: 'a', observed_generation: 3, observed_time: now.toISOString(), conditions: [] };
 * assert.deepEqual(ingestStatus(body, { generation: 2 }, undefined, now), { status: 204 });
 * ```
 */
export function ingestStatus(
  body: IngestBody,
  resource: { readonly generation: number } | undefined,
  existing: StoredReport | undefined,
  now: Date,
): IngestAnswer {
  const fault = fieldFault(body, now);
  if (fault !== undefined) return { status: 400, detail: fault };
  if (resource === undefined) return { status: 404 };
  const conditions = body.conditions as readonly { type: string; status: string }[];
  const unknown = conditions.some((one) => one.type === 'Available' && one.status === 'Unknown');
  const generation = body.observed_generation as number;
  if (generation > resource.generation) return { status: 204 };
  if (existing !== undefined) {
    if (generation < existing.observed_generation || unknown) return { status: 204 };
    const older = Date.parse(scalarText(body.observed_time)) < Date.parse(existing.observed_time);
    if (generation === existing.observed_generation && older) return { status: 204 };
  }
  const missing = MANDATORY.find((type) => !conditions.some((one) => one.type === type));
  if (missing !== undefined) {
    return {
      status: 400,
      detail: `missing mandatory condition '${missing}': all adapters must report Available, Applied, and Health`,
    };
  }
  return { status: 201, aggregate: !unknown };
}

function fieldFault(body: IngestBody, now: Date): string | undefined {
  if (typeof body.adapter !== 'string' || body.adapter === '') return 'adapter is required';
  if (typeof body.observed_generation !== 'number' || body.observed_generation < 1)
    return 'observed_generation must be >= 1';
  const ahead = Date.parse(scalarText(body.observed_time)) - now.getTime();
  if (Number.isNaN(ahead)) return 'observed_time is required';
  if (ahead > 300_000) return 'observed_time must not be more than 5m0s in the future';
  if (ahead < -1_800_000) return 'observed_time must not be more than 30m0s in the past';
  return Array.isArray(body.conditions) ? conditionFault(body.conditions) : 'conditions is required';
}

function conditionFault(conditions: readonly unknown[]): string | undefined {
  const seen = new Set<string>();
  for (const [index, condition] of conditions.entries()) {
    const { type = '', status } = condition as { readonly type?: string; readonly status?: string };
    if (type === '') return `condition type cannot be empty at index ${index}`;
    if (seen.has(type)) return `duplicate condition type '${type}' at index ${index}`;
    seen.add(type);
    if (!['True', 'False', 'Unknown'].includes(status ?? '')) {
      return `invalid status value '${status}' for condition at index ${index} (type: ${type}): must be 'True', 'False', or 'Unknown'`;
    }
  }
  return undefined;
}
