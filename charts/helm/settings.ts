/**
 * What the chart's values may say: fields of a fleet's cluster, each with the values that it is tried with. Types, bounds and
 * descriptions are those of the fleet's schema.
 *
 * What is not in this table has no value in the chart: lists of structures (profiles, mirror sets, namespaces), whose objects only
 * a program can make, and what concerns several clusters.
 */
import { PullwrightError } from '../../runtime/rules/errors.ts';
import { fleetJsonSchema } from '../fleet-json-schema.ts';
import { ADAPTER_NAMESPACE } from '../pull-secret-adapter/chart.ts';

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
  /** What a template takes where nothing is said: names of objects are never decided, so that there is one template of each. */
  readonly otherwise?: string;
}

type Samples = Readonly<Record<string, ChartValue | undefined>>;

const ADAPTER: Samples = {
  api: 'https://zz-api.example.com',
  broker: undefined,
  brokerSecret: 'zz-broker',
  apiTokenSecret: 'zz-token',
  apiTokenAudience: 'zz-audience',
  caConfigMap: 'zz-authorities',
  statusMethod: undefined,
  gcpProject: 'zz-project',
  topic: 'zz-topic',
  subscription: 'zz-subscription',
  exchange: 'zz-exchange',
  exchangeType: undefined,
  routingKey: 'zz-routing',
  createTopics: undefined,
  namespace: 'zz-hyperfleet',
  replicas: numbersTo(10),
  jobGoogleServiceAccount: 'zz-job@zz.iam.gserviceaccount.com',
  jobFederation: 'projects/730517/locations/global/workloadIdentityPools/zz-pool/providers/zz-provider',
  googleServiceAccount: 'zz-adapter@zz.iam.gserviceaccount.com',
  sentinel: undefined,
  alerts: undefined,
  args: ['--zz-first', '--zz-second'],
};
const SENTINEL: Samples = {
  rule: undefined,
  dependencies: ['zz-before-events', 'zz-also-before-events'],
  eventType: 'zz.event.type',
  pollSeconds: 730519,
  repeatLimitSeconds: 730523,
};
const ADAPTER_OPTIONS: Samples = {
  adapterName: 'zz-adapter-name',
  dependencies: ['zz-before', 'zz-also-before'],
  managementNamespace: 'zz-management',
  pullSecretName: 'zz-pull-secret',
  gcpSecretName: 'zz-gcp-secret',
  impersonate: 'zz-impersonate',
  passAs: undefined,
  location: 'zz-location',
  replication: 'user-managed:zz-replication',
  kmsKey: 'zz-kms',
  keepVersions: 613,
  previousForSeconds: 730531,
  onDeletion: undefined,
  adopt: undefined,
  challenge: undefined,
  tenantKey: 'labels.zz-tenant',
  verifyEverySeconds: 730537,
  deniedRetrySeconds: 730547,
  jobTtlSeconds: 730553,
  jobDeadlineSeconds: 730559,
  repeatSeconds: 730567,
  sweepSeconds: 730573,
  leaseSeconds: 730591,
  concurrency: 617,
};

/** Paths, and for what is free a sample that stands nowhere else in what is rendered. */
const TABLE: Samples = {
  image: 'registry.example.com/zz-image:0.0.1',
  namespace: 'zz-namespace',
  kind: ['standalone', 'management'],
  discovery: undefined,
  'systems.global-pull-secret': undefined,
  'systems.pull-secret-injection': undefined,
  'systems.credential-provider': undefined,
  'systems.registry-overrides': undefined,
  'systems.pull-secret-adapter': undefined,
  'systems.verify': undefined,
  delivery: undefined,
  monitoring: undefined,
  dashboards: undefined,
  imagePullSecrets: ['zz-secret', 'zz-second'],
  'reconciler.replicas': numbersTo(5),
  'reconciler.logLevel': undefined,
  'reconciler.memoryLimit': '637Mi',
  'reconciler.kubeconfigSecret': 'zz-kubeconfig',
  'systems.global-pull-secret.mode': undefined,
  'systems.global-pull-secret.enforce': undefined,
  'systems.global-pull-secret.createConfigNamespace': undefined,
  'systems.credential-provider.matchImages': ['zz-registry.example.com', 'zz-other.example.com'],
  'systems.credential-provider.nodeAccess': undefined,
  'systems.registry-overrides.mode': undefined,
  'systems.registry-overrides.catalogs': undefined,
  'systems.registry-overrides.tagMirrors': undefined,
  'systems.registry-overrides.askRegistries': undefined,
  ...below('systems.pull-secret-adapter', ADAPTER),
  ...below('systems.pull-secret-adapter.sentinelOptions', SENTINEL),
  ...below('systems.pull-secret-adapter.adapterOptions', ADAPTER_OPTIONS),
  'systems.verify.schedule': '37 3 6 3 7',
  'systems.verify.suspend': undefined,
};

/** Narrower than in a fleet: a port of its own would have to be opened in NetworkPolicies, which a template cannot work out. */
const NARROWED: Readonly<Record<string, JsonSchema>> = {
  'systems.pull-secret-adapter.api': { pattern: '^https://[^/:@?#]+(:(443|6443))?([/?#].*)?$' },
};

const OTHERWISE: Readonly<Record<string, string>> = {
  'systems.pull-secret-adapter.namespace': ADAPTER_NAMESPACE,
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

function below(path: string, samples: Samples): Samples {
  return Object.fromEntries(Object.entries(samples).map(([name, sample]) => [`${path}.${name}`, sample]));
}

function numbersTo(most: number): readonly number[] {
  return Array.from({ length: most }, (_, index) => index + 1);
}

function settingOf(path: readonly string[], declared: JsonSchema, sample: ChartValue | undefined): Setting {
  const name = path.join('.');
  const schema = { ...declared, ...NARROWED[name] };
  const otherwise = OTHERWISE[name];
  const common = { path, required: REQUIRED.has(name), ...(otherwise === undefined ? {} : { otherwise }) };
  const type = schema['type'];
  if (schema['anyOf'] !== undefined || type === 'object')
    return { ...common, schema, type: 'section', samples: [{}] };
  if (type === 'boolean') return { ...common, schema, type: 'choice', samples: [true, false] };
  if (Array.isArray(schema['enum']) || (type === 'integer' && Array.isArray(sample)))
    return choice(common, schema, sample ?? (schema['enum'] as ChartValue));
  if (sample === undefined) throw noSample(path);
  if (type === 'array')
    return { ...common, schema: { ...schema, minItems: 1 }, type: 'list', samples: [sample] };
  if (type !== 'string') return { ...common, schema, type: 'number', samples: [sample] };
  // An empty text is none: a template cannot tell them apart.
  return { ...common, schema: { minLength: 1, ...schema }, type: 'text', samples: [sample] };
}

function choice(
  common: Pick<Setting, 'path' | 'required' | 'otherwise'>,
  schema: JsonSchema,
  values: ChartValue,
): Setting {
  return {
    ...common,
    schema: { ...schema, enum: values },
    type: 'choice',
    samples: values as readonly ChartValue[],
  };
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

/** Whether a template always has the value, once its section is there. */
export function isAlways({ required, otherwise }: Setting): boolean {
  return required || otherwise !== undefined;
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
