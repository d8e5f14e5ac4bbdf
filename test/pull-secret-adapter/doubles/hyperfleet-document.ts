/**
 * Calls of adapter and Sentinel in the published OpenAPI documents of the HyperFleet API: version 1.0.2 ("old") and
 * 1.0.25 ("current"). Facts only, as tables. Two things are stricter than the documents, which allow any further field: objects are
 * closed, so that neither the client nor the double can invent a field.
 */
import { z } from 'zod';

export type ApiGeneration = 'old' | 'current';

const time = z.iso.datetime({ offset: true });
const int32 = z.int32();
const free = z.record(z.string(), z.unknown());
const triState = z.enum(['True', 'False', 'Unknown']);
const reasons = { reason: z.string().optional(), message: z.string().optional() };

const metadata = z
  .strictObject({
    job_name: z.string(),
    job_namespace: z.string(),
    attempt: int32,
    started_time: time,
    completed_time: time,
    duration: z.string(),
  })
  .partial();

const statusRequest = z.strictObject({
  adapter: z.string(),
  observed_generation: int32,
  observed_time: time,
  conditions: z.array(z.strictObject({ type: z.string(), status: triState, ...reasons })),
  data: free.optional(),
  metadata: metadata.optional(),
});

const adapterStatus = z.strictObject({
  adapter: z.string(),
  observed_generation: int32,
  conditions: z.array(
    z.strictObject({ type: z.string(), status: triState, last_transition_time: time, ...reasons }),
  ),
  created_time: time,
  last_report_time: time,
  data: free.optional(),
  metadata: metadata.optional(),
});

/** `ResourceCondition`: three states up to 1.0.2, two since. */
function resourceCondition(generation: ApiGeneration): z.ZodType {
  return z.strictObject({
    type: z.string(),
    status: generation === 'old' ? triState : z.enum(['True', 'False']),
    last_transition_time: time,
    observed_generation: int32,
    created_time: time,
    last_updated_time: time,
    ...reasons,
  });
}

const clusterStatus: Readonly<Record<ApiGeneration, z.ZodType>> = {
  old: z.strictObject({
    phase: z.enum(['NotReady', 'Ready', 'Failed']),
    last_transition_time: time,
    observed_generation: int32,
    last_updated_time: time,
    conditions: z.array(resourceCondition('old')),
  }),
  current: z.strictObject({ conditions: z.array(resourceCondition('current')).min(2) }),
};

function cluster(generation: ApiGeneration): z.ZodType {
  const old = generation === 'old';
  const name = z
    .string()
    .min(3)
    .max(old ? 63 : 53)
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/);
  const by = old ? z.email() : z.string();
  return z.strictObject({
    id: z.string().optional(),
    kind: old ? z.string().optional() : z.string(),
    href: z.string().optional(),
    labels: z.record(z.string(), z.string()).optional(),
    name,
    spec: free,
    generation: int32.min(1),
    created_time: time,
    updated_time: time,
    created_by: by,
    updated_by: by,
    ...(old ? {} : { deleted_time: time.optional(), deleted_by: z.string().optional() }),
    status: clusterStatus[generation],
  });
}

function list(generation: ApiGeneration, item: z.ZodType): z.ZodType {
  const page = { page: int32, size: int32, total: int32, items: z.array(item) };
  return z.strictObject(generation === 'old' ? { kind: z.string(), ...page } : page);
}

const problem = z.strictObject({
  type: z.url(),
  title: z.string(),
  status: z.int(),
  detail: z.string().optional(),
  instance: z.string().optional(),
  code: z.string().optional(),
  timestamp: time.optional(),
  trace_id: z.string().optional(),
  errors: z.array(z.object({ field: z.string(), message: z.string() })).optional(),
});

const oldError = z
  .strictObject({
    id: z.string(),
    kind: z.string(),
    href: z.string(),
    code: z.string(),
    reason: z.string(),
    operation_id: z.string(),
    details: z.array(z.object({ field: z.string(), error: z.string() })),
  })
  .partial();

/** One operation: the queries it declares, its request body, and its answers by status. */
export interface Operation {
  readonly query: z.ZodType;
  readonly request?: z.ZodType;
  readonly answers: Readonly<Record<number, z.ZodType>>;
  /** Every other status. */
  readonly otherwise: z.ZodType;
}

/** Empty body. */
const nothing = z.undefined();

/** The paging names of the other generation are sent as well, and ignored. */
function query(generation: ApiGeneration): z.ZodType {
  const number = z.string().regex(/^[1-9]\d*$/);
  const own = generation === 'old' ? ['pageSize', 'orderBy'] : ['size'];
  const names = ['search', 'order', ...own];
  return z.strictObject({
    ...Object.fromEntries(names.map((name) => [name, z.string().optional()])),
    page: number.optional(),
    [generation === 'old' ? 'size' : 'pageSize']: number.optional(),
  });
}

/** The operations that the product uses, by `METHOD path`. */
export function operations(generation: ApiGeneration): ReadonlyMap<string, Operation> {
  const otherwise = generation === 'old' ? oldError : problem;
  const search = z.strictObject({ search: z.string().optional() });
  const report = generation === 'old' ? 'POST' : 'PUT';
  const get = (answer: z.ZodType, of = search as z.ZodType): Operation => ({
    query: of,
    answers: { 200: answer },
    otherwise,
  });
  return new Map<string, Operation>([
    ['GET /clusters', get(list(generation, cluster(generation)), query(generation))],
    ['GET /clusters/{id}', get(cluster(generation))],
    ['GET /clusters/{id}/statuses', get(list(generation, adapterStatus), query(generation))],
    [
      `${report} /clusters/{id}/statuses`,
      {
        query: z.strictObject({}),
        request: statusRequest,
        // 204 is not documented: the API returns it for a report that it discards.
        answers: { 201: adapterStatus, 204: nothing },
        otherwise,
      },
    ],
  ]);
}

/** Violations of the document in a value; undefined when it conforms. Shows paths, never values. */
export function misfit(schema: z.ZodType, value: unknown): string | undefined {
  const checked = schema.safeParse(value);
  if (checked.success) return undefined;
  return checked.error.issues
    .map((issue) => {
      const keys = issue.code === 'unrecognized_keys' ? ` ${issue.keys.join(', ')}` : '';
      return `${issue.path.join('.')}: ${issue.code}${keys}`;
    })
    .join('; ');
}
