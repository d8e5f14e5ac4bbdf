/**
 * What the chart's values may say: fields of a fleet's cluster, each with the values that it is tried with. Types, bounds and
 * descriptions are those of the fleet's schema.
 *
 * What is not in this table has no value in the chart: lists of structures (profiles, mirror sets, namespaces), whose objects only
 * a program can make, and what concerns several clusters.
 */
import { PullwrightError } from '../../runtime/rules/errors.ts';
import { fleetJsonSchema } from '../fleet-json-schema.ts';

export type ChartValue =
  | string
  | number
  | boolean
  | null
  | readonly ChartValue[]
  | { readonly [key: string]: ChartValue };
export type JsonSchema = Readonly<Record<string, unknown>>;

/** One value of the chart. */
export interface Setting {
  /** Below a cluster of the fleet, and below `.Values`. */
  readonly path: readonly string[];
  readonly schema: JsonSchema;
  /**
   * `choice`: one of `samples`. `section`: a map that may be there or not. Else anything of that type; the sample is found again
   * in what is rendered.
   */
  readonly type: 'choice' | 'section' | 'text' | 'number' | 'list';
  readonly samples: readonly ChartValue[];
  readonly required: boolean;
}

/** Paths, and for what is free a sample that stands nowhere else in what is rendered. */
const TABLE: Readonly<Record<string, ChartValue | undefined>> = {
  image: 'registry.example.com/zz-image:0.0.1',
  namespace: 'zz-namespace',
  'systems.global-pull-secret': undefined,
  'systems.pull-secret-injection': undefined,
  'systems.credential-provider': undefined,
  'systems.verify': undefined,
  delivery: undefined,
  monitoring: undefined,
  imagePullSecrets: ['zz-secret', 'zz-second'],
  'reconciler.replicas': [1, 2, 3, 4, 5],
  'reconciler.logLevel': undefined,
  'reconciler.memoryLimit': '637Mi',
  'systems.global-pull-secret.mode': undefined,
  'systems.global-pull-secret.enforce': undefined,
  'systems.global-pull-secret.createConfigNamespace': undefined,
  'systems.credential-provider.matchImages': ['zz-registry.example.com', 'zz-other.example.com'],
  'systems.credential-provider.nodeAccess': undefined,
  'systems.verify.schedule': '37 3 6 3 7',
  'systems.verify.suspend': undefined,
};

const REQUIRED: ReadonlySet<string> = new Set(['image', 'namespace']);

/** All values of the chart, a section before what stands in it. */
export function settings(): readonly Setting[] {
  const cluster = field(field(fleetJsonSchema(), 'clusters')['items'] as JsonSchema);
  return Object.entries(TABLE).map(([name, sample]) => {
    const path = name.split('.');
    return settingOf(path, path.reduce(field, cluster), sample);
  });
}

function settingOf(path: readonly string[], schema: JsonSchema, sample: ChartValue | undefined): Setting {
  const common = { path, required: REQUIRED.has(path.join('.')) };
  const type = schema['type'];
  if (schema['anyOf'] !== undefined || type === 'object')
    return { ...common, schema, type: 'section', samples: [{}] };
  if (type === 'boolean') return { ...common, schema, type: 'choice', samples: [true, false] };
  if (Array.isArray(schema['enum']) || (type === 'integer' && Array.isArray(sample)))
    return choice(common, schema, sample ?? (schema['enum'] as ChartValue));
  if (sample === undefined) throw noSample(path);
  if (type === 'array')
    return { ...common, schema: { ...schema, minItems: 1 }, type: 'list', samples: [sample] };
  return { ...common, schema, type: type === 'string' ? 'text' : 'number', samples: [sample] };
}

function choice(common: Pick<Setting, 'path' | 'required'>, schema: JsonSchema, values: ChartValue): Setting {
  const narrowed = schema['enum'] === undefined ? schema : { ...schema, enum: values };
  return { ...common, schema: narrowed, type: 'choice', samples: values as readonly ChartValue[] };
}

/** The schema of a field; for a section that may also be true or false, of the field of its map. */
function field(schema: JsonSchema, name?: string): JsonSchema {
  const options = schema['anyOf'] as readonly JsonSchema[] | undefined;
  const map = options?.find((one) => one['type'] === 'object') ?? schema;
  if (name === undefined) return map;
  const found = (map['properties'] as Readonly<Record<string, JsonSchema>> | undefined)?.[name];
  if (found === undefined) throw noSample([name]);
  return found;
}

function noSample(path: readonly string[]): PullwrightError {
  return new PullwrightError(
    `The chart cannot have the value "${path.join('.')}": it has no schema or no sample`,
    {
      code: 'ChartSetting',
    },
  );
}

/** For each setting the index of its sample, counted from 1; 0 for none. */
export type Picked = readonly number[];

/** Without what stands in a section that is not there. */
export function settled(all: readonly Setting[], given: Picked): Picked {
  const absent = all.flatMap((one, index) =>
    one.type === 'section' && given[index] === 0 ? [one.path] : [],
  );
  return given.map((sample, index) => {
    const { path = [] } = all[index] ?? {};
    return absent.some(
      (section) => section.length < path.length && section.every((part, at) => part === path[at]),
    )
      ? 0
      : sample;
  });
}

/** The cluster of a fleet that says what is given. */
export function clusterOf(all: readonly Setting[], given: Picked): Readonly<Record<string, unknown>> {
  const cluster: Record<string, unknown> = {};
  for (const [index, { path, samples }] of all.entries()) {
    const sample = given[index] ?? 0;
    if (sample > 0) put(cluster, path, structuredClone(samples[sample - 1]));
  }
  return cluster;
}

function put(map: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [first = '', ...rest] = path;
  if (rest.length === 0) map[first] = value;
  else put((map[first] ??= {}) as Record<string, unknown>, rest, value);
}
