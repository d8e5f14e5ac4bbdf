/**
 * Parses the cluster document of the HyperFleet API. The pull secret is wrapped here, and the raw document is discarded.
 *
 * Source of the rule: the requirement (`spec.provider`, `spec.gcp.projectId`, `spec.pullSecret.data`, `status.adapters[...]`),
 * the older GCP variant (`spec.platform.type`, `spec.platform.gcp.projectID`) and the current core API (mirrored conditions).
 * `status.adapters` is a map by name. A list is ignored, because no version of the API returns one.
 */
import { z } from 'zod';
import { isRecord, textOf } from '../core/record.ts';
import { type Redacted, redact } from '../core/redacted.ts';

// Only ID and generation are required. Other fields of a wrong type are treated as absent; the plan reports missing fields.

const text = z.string().optional().catch(undefined);
/** For fields that CEL expressions read: a value of a wrong type becomes null, so that the field still exists. */
const textOrNull = z.string().nullish().catch(null);
export const map = z.record(z.string(), z.unknown()).catch({});

function part<S extends z.ZodRawShape>(shape: S): z.ZodCatch<z.ZodObject<S>> {
  const whole = z.object(shape);
  return whole.catch(() => whole.parse({}));
}

/** Skips invalid items. */
function listOf<T>(item: z.ZodType<T>): z.ZodType<readonly T[]> {
  const read = (value: unknown): readonly T[] => {
    const { success, data } = item.safeParse(value);
    return success ? [data] : [];
  };
  return z
    .array(z.unknown())
    .catch([])
    .transform((values) => values.flatMap(read));
}

/** Skips invalid values. */
export function mapOf<T>(item: z.ZodType<T>): z.ZodType<Readonly<Record<string, T>>> {
  return map.transform((values) => {
    const entries = listOf(z.tuple([z.string(), item])).parse(Object.entries(values));
    return Object.fromEntries(entries);
  });
}

/** A condition mirrored by the API, or of an adapter's report. */
const condition = z.looseObject({
  type: z.string(),
  status: z.string(),
  reason: textOrNull,
  message: textOrNull,
  observed_generation: z.int().optional().catch(undefined),
  last_updated_time: text,
  last_transition_time: text,
});

/** One item of `GET .../statuses`. */
const adapterStatus = z.object({
  adapter: z.string(),
  observed_generation: z.number().catch(0),
  conditions: listOf(condition),
  data: map,
  metadata: map,
  last_report_time: text,
});

export type AdapterStatus = z.output<typeof adapterStatus>;

/** Parses the items of the status list. */
export const adapterStatuses = listOf(adapterStatus);

const NO_GENERATION = 'has no generation: expected an integer of at least 1';

const available = z
  .object({ available: z.union([z.string(), z.boolean()]) })
  .transform(({ available: said }) => (typeof said === 'string' ? said : said ? 'True' : 'False'));

/** Schema of a cluster. Error messages name what is missing in the document. */
export const clusterDocument = z
  .object(
    {
      id: z.string('has no id').min(1, 'has no id'),
      generation: z.int(NO_GENERATION).min(1, NO_GENERATION),
      name: text,
      deleted_time: text,
      created_time: text,
      updated_time: text,
      created_by: text,
      labels: mapOf(z.string()),
      tenancy: mapOf(z.string()),
      owner_references: map,
      spec: part({
        provider: text,
        gcp: map,
        platform: part({ type: text, gcp: map }),
        pullSecret: map,
      }),
      status: part({ conditions: listOf(condition), adapters: mapOf(available) }),
    },
    'is not an object',
  )
  .transform(({ id, generation, spec, status, ...document }) => {
    const gcp = { ...spec.platform.gcp, ...spec.gcp };
    return {
      id,
      generation,
      name: document.name ?? id,
      deleting: (document.deleted_time ?? '') !== '',
      /** In lower case; undefined if the document has none. */
      provider: (spec.provider ?? spec.platform.type)?.toLowerCase(),
      projectId: (text.parse(gcp['projectId']) ?? textOf(gcp['projectID'])) || undefined,
      region: textOf(gcp['region']) || undefined,
      /** The exact text; an object is converted to compact JSON. */
      pullSecret: pullSecretOf(spec.pullSecret['data']),
      labels: document.labels,
      conditions: status.conditions,
      /** `status.adapters` of the requirement: `available` by adapter name. */
      adapters: status.adapters,
      createdTime: document.created_time,
      updatedTime: document.updated_time,
      ownerReferences: document.owner_references,
      /** Fields that may name the tenant: `created_by` and `tenancy.KEY`, which the API sets, and `labels.KEY`. */
      tenantFields: Object.fromEntries([
        ...(document.created_by === undefined ? [] : [['created_by', document.created_by] as const]),
        ...prefixed('tenancy', document.tenancy),
        ...prefixed('labels', document.labels),
      ]),
    };
  });

export type HyperfleetCluster = Readonly<z.output<typeof clusterDocument>>;

function prefixed(prefix: string, values: Readonly<Record<string, string>>) {
  return Object.entries(values).map(([key, value]) => [`${prefix}.${key}`, value] as const);
}

function pullSecretOf(data: unknown): Redacted<string> | undefined {
  if (typeof data === 'string') return data === '' ? undefined : redact(data);
  return isRecord(data) ? redact(JSON.stringify(data)) : undefined;
}
