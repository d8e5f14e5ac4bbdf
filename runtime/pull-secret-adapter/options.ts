/** Options of the adapter. `synth` validates them, so that no pod exits with a usage error. */
import { z } from 'zod';
import {
  choice,
  count,
  type Flag,
  FlagFault,
  type Flags,
  seconds,
  several,
  text,
  toggle,
} from '../cli/flags.ts';
import { UsageError } from '../core/errors.ts';
import { type Frozen, optional } from '../core/kubernetes/fields.ts';
import { readValue } from '../core/kubernetes/read-spec.ts';
import { isRecord, scalarText } from '../core/record.ts';
import { DEFAULT_IMAGE } from '../core/version.ts';

/** Environment variables of a Job that only the adapter may set: cluster, destination and tenant challenge. */
export const OWN_JOB_VARIABLES: ReadonlySet<string> = new Set([
  'ADOPT',
  'CLUSTER_GENERATION',
  'CLUSTER_ID',
  'CLUSTER_NAME',
  'DESTROY_AFTER_SECONDS',
  'GCP_PROJECT_ID',
  'GCP_SERVICE_ACCOUNT',
  'JOB_MODE',
  'KEEP_VERSIONS',
  'KMS_KEY_NAME',
  'MANAGEMENT_NAMESPACE',
  'MANAGEMENT_SECRET_NAME',
  'ON_DELETION',
  'PLACES',
  'PREVIOUS_FOR_SECONDS',
  'PULL_SECRET_DATA',
  'PULL_SECRET_FILE',
  'REPLICATION_POLICY',
  'RESULT_FILE',
  'REVOKE_PREVIOUS',
  'SECRET_LOCATION',
  'SECRET_NAME',
  'TENANT_CHALLENGE',
  'TERMINATION_LOG',
  'TRACEPARENT',
]);

/** Whole seconds, at least `least`. */
export const secondsFrom = (least: number): z.ZodInt => z.int().min(least).max(999_999_999);
const template = z.string().max(320);
const resourceName = z.string().regex(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/);
/** At least two characters, so that a lone `*` cannot allow every project. */
const project = z.string().min(2).max(200);

const optionFields = z.strictObject(
  optional({
    adapterName: resourceName.describe('Name in the list of required adapters'),
    dependencies: z.array(resourceName).min(1).max(50).describe('Adapters that must be available first'),
    managementNamespace: template.describe(
      "Namespace of HyperShift's Secret; {id} and {name} are filled in, empty for none",
    ),
    pullSecretName: resourceName.describe("Name of HyperShift's Secret"),
    gcpSecretName: template.min(1).describe('Name in Secret Manager; {id} and {name} are filled in'),
    impersonate: template.describe(
      'Service account that the Job impersonates; {project} is filled in, empty for none',
    ),
    passAs: z.enum(['file', 'env']).describe('How the Job gets the pull secret'),
    location: z
      .string()
      .regex(/^[a-z{][a-z0-9{}-]{0,62}$/, { error: 'expected a location such as europe-west3, or {region}' })
      .describe('Location of regional secrets; {region} is filled in; if unset, Google replicates secrets'),
    replication: z
      .string()
      .regex(/^(automatic|user-managed:[a-z0-9{}-]+(,[a-z0-9{}-]+)*)$/, {
        error: 'expected automatic or user-managed:LOCATION[,LOCATION]',
      })
      .describe(
        'Replication of new secrets: automatic or user-managed:LOCATION[,LOCATION]; {region} is filled in',
      ),
    kmsKey: template
      .min(1)
      .describe("Key of Cloud KMS; {project}, {region} and {location} are filled in; if unset, Google's own"),
    keepVersions: z.int().min(0).max(1000).describe('Older versions that stay enabled'),
    previousForSeconds: secondsFrom(0).describe(
      'How long a replaced version stays enabled; 0: not at all; if unset, until keepVersions is exceeded',
    ),
    destroyAfterSeconds: z
      .int()
      .min(0)
      .max(86_400_000)
      .refine((value) => value === 0 || value >= 86_400, {
        error: 'expected 0, or 86400 (24 hours) to 86400000 (1000 days)',
      })
      .describe('Delay until Google destroys a disabled version, from 24 hours to 1000 days; 0: never'),
    onDeletion: z
      .enum(['delete', 'retain'])
      .describe("What deletion does to the secret in the customer's project"),
    adopt: z.boolean().describe('Adopt secrets without an owner label'),
    challenge: z
      .enum(['none', 'project-label'])
      .describe(
        'What the owner of a project must set before the adapter stores a pull secret of this tenant there; the report has label and value',
      ),
    tenantKey: z
      .string()
      .regex(/^(created_by|(tenancy|labels)\..+)$/, {
        error: 'expected created_by, tenancy.KEY or labels.KEY',
      })
      .describe('Field with the tenant of a cluster: created_by, tenancy.KEY or labels.KEY'),
    verifyEverySeconds: secondsFrom(0).describe(
      'Interval at which the stored content is verified; 0: only when it is stored',
    ),
    deniedRetrySeconds: secondsFrom(0).describe(
      'Pause after a denied permission; 0: until the cluster changes',
    ),
    jobTtlSeconds: secondsFrom(60).describe('How long a finished Job is kept'),
    jobDeadlineSeconds: secondsFrom(60).describe('Deadline of a Job'),
    repeatSeconds: secondsFrom(0).describe(
      "Minimum age at which an event renews an unchanged report; same as Sentinel's debounce",
    ),
    sweepSeconds: secondsFrom(1).describe('Pause between two passes over all clusters'),
    leaseSeconds: secondsFrom(1).describe('Duration of the Lease'),
    concurrency: z.int().min(1).max(1000).describe('Clusters reconciled in parallel'),
    jobEnv: z
      .record(z.string().regex(/^[A-Z_][A-Z0-9_]*$/), z.string().max(4096))
      .superRefine((env, context) => {
        for (const name of Object.keys(env).filter((one) => OWN_JOB_VARIABLES.has(one)))
          context.addIssue({
            code: 'custom',
            path: [name],
            message: 'the adapter sets this variable: use the corresponding option',
          });
      })
      .describe('Additional environment variables of Jobs; no secrets, and none that the adapter sets'),
  }),
);

export const optionsSchema = optionFields
  .extend({
    tenants: z
      .record(z.string().min(1).max(320), z.array(project).max(10_000))
      .refine((tenants) => Object.keys(tenants).length > 0, { error: 'expected at least one tenant' })
      .exactOptional()
      .describe('Projects that each tenant may use'),
  })
  .refine(({ location, replication }) => location === undefined || replication === undefined, {
    path: ['replication'],
    error: 'has no effect on regional secrets: set location or replication, not both',
  });

/** Every field is optional; `pullwright adapter --help` lists the defaults. */
export type AdapterOptions = Frozen<z.input<typeof optionsSchema>>;

/** Path of the tenants file in the adapter's container. */
export const TENANTS_FILE = '/etc/pullwright/tenants/tenants.yaml';

/** Flags of `pullwright adapter` that set these options. */
export function adapterOptionArgs(options: AdapterOptions): readonly string[] {
  return [
    ...fieldArgs(Object.keys(optionFields.shape), options),
    ...(options.tenants === undefined ? [] : ['--tenants', TENANTS_FILE]),
  ];
}

// Options as flags: each field of a schema is a flag with the same name, such as `--verify-every 5s` for `verifyEverySeconds: 5`.

/** Flags with a name that differs from their field. */
const FLAG_NAMES: Readonly<Record<string, string>> = {
  dependencies: 'dependency',
  labels: 'label',
  leaseSeconds: 'lease-duration',
  messageDecision: 'messages: message_decision',
  messageData: 'messages: message_data',
};

function flagName(field: string): string {
  const words = field.replace(/Seconds$/, '').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return FLAG_NAMES[field] ?? words;
}

/** Converts the `fields` that `options` sets to flags. */
export function fieldArgs(fields: readonly string[], options: object): readonly string[] {
  const values = options as Readonly<Record<string, unknown>>;
  return fields.flatMap((field) => {
    const { [field]: value } = values;
    const flag = `--${flagName(field)}`;
    if (value === undefined || value === false) return [];
    if (value === true) return [flag];
    if (Array.isArray(value)) return value.flatMap((one) => [flag, String(one)]);
    if (isRecord(value))
      return Object.entries(value)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .flatMap(([name, one]) => [flag, `${name}=${scalarText(one)}`]);
    return [flag, `${scalarText(value)}${field.endsWith('Seconds') ? 's' : ''}`];
  });
}

type Fields = Readonly<Record<string, z.ZodType>>;

/** Declares a flag for each of `fields`. Defaults appear only in the help, so an unset flag has no value. */
export function fieldFlags(fields: Fields, defaults: object): Flags {
  const values = defaults as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    Object.entries(fields).map(([field, schema]) => {
      const { [field]: value } = values;
      const plain = Array.isArray(value) ? value.join(', ') : value;
      const [, shown = ''] = fieldArgs([field], { [field]: plain });
      return [flagName(field), { ...flagOf(field, schema), ...(shown === '' ? {} : { default: shown }) }];
    }),
  );
}

function flagOf(field: string, schema: z.ZodType): Flag<unknown> {
  const { type, enum: choices, description = '', minimum, maximum } = z.toJSONSchema(schema, { io: 'input' });
  const help = `${description.charAt(0).toLowerCase()}${description.slice(1)}`;
  if (choices !== undefined) return choice(choices.map(String), { help });
  if (type === 'boolean') return toggle({ help });
  if (type === 'integer') {
    const bounds = { least: minimum ?? 0, ...(maximum === undefined ? {} : { most: maximum }) };
    return (field.endsWith('Seconds') ? seconds : count)({ help, ...bounds });
  }
  if (type === 'object') return pairs(several(text({ value: 'NAME=VALUE', help })));
  const one = text({ value: help.includes('{') ? 'TEMPLATE' : 'NAME', help });
  return type === 'array' ? several(one) : one;
}

function pairs(
  flag: Flag<readonly string[] | undefined>,
): Flag<Readonly<Record<string, string>> | undefined> {
  const pair = (text: string): [string, string] => {
    const at = text.indexOf('=');
    // The text may contain a password.
    if (at < 1) throw new FlagFault('[redacted]', 'NAME=VALUE');
    return [text.slice(0, at), text.slice(at + 1)];
  };
  return {
    ...flag,
    read: (given) => (given.length === 0 ? undefined : Object.fromEntries(given.map(pair))),
  };
}

/**
 * Parses the flags of `fields`.
 *
 * @param more values from other sources, such as a file
 * @throws UsageError with the names of the flags
 */
export function fieldValues<T>(fields: Fields, schema: z.ZodType<T>, flags: object, more: object): T {
  const given = flags as Readonly<Record<string, unknown>>;
  const values = [
    ...Object.keys(fields).map((field) => [field, given[flagName(field)]] as const),
    ...Object.entries(more),
  ].filter(([, value]) => value !== undefined);
  const { value, problems } = readValue(Object.fromEntries(values), schema, '');
  if (value === undefined) {
    const flagged = problems.map((problem) =>
      problem.replace(/^\w+|\b[a-z]+[A-Z]\w*/g, (word, at) =>
        at === 0 || Object.hasOwn(fields, word) ? `--${flagName(word)}` : word,
      ),
    );
    throw new UsageError(`Cannot use the options: ${flagged.join('; ')}`);
  }
  return value;
}

/** Other adapters that must be available first, by name. */
export const DEFAULT_DEPENDENCIES: readonly string[] = ['validation', 'dns', 'placement'];

/** Settings of the Jobs that have their own fields in the fleet. */
export interface JobSettings {
  /** Namespace of Jobs and their temporary Secrets. @default {'hyperfleet-system'} */
  readonly namespace: string;
  readonly image: string;
  /** imagePullSecrets of the Jobs, in `namespace`. @default {[]} */
  readonly imagePullSecrets: readonly string[];
  readonly serviceAccount: string;
  /** Full name of a workload identity pool provider; empty: Jobs get their identity from the metadata server. */
  readonly federation: string;
  /** ConfigMap in `namespace` with certificates (`ca.crt`) that the Jobs trust in addition to those of the image; empty: none. */
  readonly jobAuthorities: string;
}

/** The options with their defaults, and the settings of the Jobs. */
export type AdapterSettings = Required<Omit<AdapterOptions, 'previousForSeconds' | 'tenants'>> &
  Pick<AdapterOptions, 'previousForSeconds' | 'tenants'> &
  JobSettings;

export const DEFAULT_SETTINGS: AdapterSettings = {
  adapterName: 'pullsecret',
  namespace: 'hyperfleet-system',
  dependencies: DEFAULT_DEPENDENCIES,
  managementNamespace: 'clusters-{id}',
  pullSecretName: 'pull-secret',
  gcpSecretName: 'hyperfleet-{id}-pull-secret',
  impersonate: 'pullsecret-manager@{project}.iam.gserviceaccount.com',
  passAs: 'file',
  image: DEFAULT_IMAGE,
  imagePullSecrets: [],
  serviceAccount: 'pullsecret-adapter-job',
  federation: '',
  jobAuthorities: '',
  location: '',
  replication: 'automatic',
  kmsKey: '',
  keepVersions: 1,
  destroyAfterSeconds: 0,
  onDeletion: 'delete',
  adopt: false,
  jobTtlSeconds: 3600,
  jobDeadlineSeconds: 310,
  verifyEverySeconds: 86_400,
  deniedRetrySeconds: 3600,
  repeatSeconds: 10,
  sweepSeconds: 60,
  leaseSeconds: 15,
  concurrency: 20,
  challenge: 'none',
  tenantKey: 'created_by',
  jobEnv: {},
};

/** Flags of `pullwright adapter` for the options. */
export const OPTION_FLAGS: Flags = fieldFlags(optionFields.shape, DEFAULT_SETTINGS);

/** The settings from the flags and the tenants file. @throws UsageError */
export function settingsOf(flags: object, tenants: unknown, jobs: JobSettings): AdapterSettings {
  const given = fieldValues(optionFields.shape, optionsSchema, flags, { tenants });
  return { ...DEFAULT_SETTINGS, ...given, ...jobs };
}
