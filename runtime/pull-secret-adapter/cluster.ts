/**
 * The cluster document of the HyperFleet API, read once into what the adapter needs. The pull secret is wrapped here and the
 * raw document is not kept.
 *
 * Source of the rule: the requirement (`spec.provider`, `spec.gcp.projectId`, `spec.pullSecret.data`, `status.adapters[...]`), the
 * older GCP variant (`spec.platform.type`, `spec.platform.gcp.projectID`) and the current core API (mirrored conditions).
 */
import { isRecord, recordOf } from '../core/record.ts';
import { type Redacted, redact } from '../core/redacted.ts';

/** A condition as the API mirrors it, or of an adapter's own report. */
export interface ApiCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly observed_generation?: number;
  readonly last_updated_time?: string;
  readonly last_transition_time?: string;
}

/** What the adapter knows of a cluster. */
export interface HyperfleetCluster {
  readonly id: string;
  readonly name: string;
  readonly generation: number;
  readonly deleting: boolean;
  /** Lower case; undefined when the document names none. */
  readonly provider: string | undefined;
  readonly projectId: string | undefined;
  readonly region: string | undefined;
  /** Exactly the text given; an object is written as compact JSON. */
  readonly pullSecret: Redacted<string> | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly conditions: readonly ApiCondition[];
  /** `status.adapters` of the requirement: adapter name to its `available`. */
  readonly adapters: Readonly<Record<string, string>>;
  readonly createdTime: string | undefined;
  readonly updatedTime: string | undefined;
  /** What may name the tenant, as the API and not the cluster's author sets it: `created_by` and `tenancy.KEY`; and `labels.KEY`. */
  readonly tenantFields: Readonly<Record<string, string>>;
}

/** One item of `GET .../statuses`. */
export interface AdapterStatus {
  readonly adapter: string;
  readonly observed_generation: number;
  readonly conditions: readonly ApiCondition[];
  readonly data?: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly last_report_time?: string;
}

export type ReadResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reason: string };

/**
 * Reads a cluster document. Only identity and generation are required; the plan validates the rest.
 */
export function readCluster(document: unknown): ReadResult<HyperfleetCluster> {
  if (!isRecord(document)) return { ok: false, reason: 'the cluster document is not an object' };
  const { id, generation } = document;
  if (typeof id !== 'string' || id === '') return { ok: false, reason: 'the cluster document has no id' };
  if (typeof generation !== 'number' || !Number.isInteger(generation) || generation < 1) {
    return { ok: false, reason: 'the cluster document has no generation: expected an integer of at least 1' };
  }
  const spec = recordOf(document['spec']);
  const status = recordOf(document['status']);
  const platform = recordOf(spec['platform']);
  const gcp = { ...recordOf(platform['gcp']), ...recordOf(spec['gcp']) };
  return {
    ok: true,
    value: {
      id,
      generation,
      name: text(document['name']) ?? id,
      deleting: (text(document['deleted_time']) ?? '') !== '',
      provider: (text(spec['provider']) ?? text(platform['type']))?.toLowerCase(),
      projectId: nonEmpty(text(gcp['projectId']) ?? text(gcp['projectID'])),
      region: nonEmpty(text(gcp['region'])),
      pullSecret: pullSecretOf(recordOf(spec['pullSecret'])['data']),
      labels: textValues(document['labels']),
      conditions: readConditions(status['conditions']),
      adapters: readAdapters(status['adapters']),
      createdTime: text(document['created_time']),
      updatedTime: text(document['updated_time']),
      tenantFields: tenantFields(document),
    },
  };
}

function tenantFields(document: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const prefixed = (prefix: string, value: unknown): readonly (readonly [string, string])[] =>
    Object.entries(textValues(value)).map(([key, one]) => [`${prefix}.${key}`, one]);
  const createdBy = text(document['created_by']);
  return Object.fromEntries([
    ...(createdBy === undefined ? [] : [['created_by', createdBy] as const]),
    ...prefixed('tenancy', document['tenancy']),
    ...prefixed('labels', document['labels']),
  ]);
}

/** Reads one item of the statuses list; undefined when it is none. */
export function readAdapterStatus(item: unknown): AdapterStatus | undefined {
  if (!isRecord(item) || typeof item['adapter'] !== 'string') return undefined;
  const generation = item['observed_generation'];
  const lastReport = text(item['last_report_time']);
  return {
    adapter: item['adapter'],
    observed_generation: typeof generation === 'number' ? generation : 0,
    conditions: readConditions(item['conditions']),
    data: recordOf(item['data']),
    metadata: recordOf(item['metadata']),
    ...(lastReport === undefined ? {} : { last_report_time: lastReport }),
  };
}

function pullSecretOf(data: unknown): Redacted<string> | undefined {
  if (typeof data === 'string') return data === '' ? undefined : redact(data);
  return isRecord(data) ? redact(JSON.stringify(data)) : undefined;
}

function readConditions(value: unknown): readonly ApiCondition[] {
  if (!Array.isArray(value)) return [];
  return value.filter(
    (item): item is ApiCondition =>
      isRecord(item) && typeof item['type'] === 'string' && typeof item['status'] === 'string',
  );
}

/** A map by name, or a list of objects with `name` or `adapter`; `available` may be text or a truth value. */
function readAdapters(value: unknown): Readonly<Record<string, string>> {
  const entries: [unknown, unknown][] = Array.isArray(value)
    ? value.filter(isRecord).map((item) => [item['name'] ?? item['adapter'], item])
    : Object.entries(recordOf(value));
  const found: Record<string, string> = {};
  for (const [name, item] of entries) {
    const available = isRecord(item) ? item['available'] : undefined;
    if (typeof name !== 'string') continue;
    if (typeof available === 'boolean') found[name] = available ? 'True' : 'False';
    if (typeof available === 'string') found[name] = available;
  }
  return found;
}

function textValues(value: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(recordOf(value)).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  );
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function nonEmpty(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}
