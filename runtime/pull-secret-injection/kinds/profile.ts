/**
 * `PullSecretProfile` (pullwright.dev/v1alpha1, cluster-scoped): which pods get which pull secrets, and where the secrets
 * come from. Read from raw JSON; what the CRD's schema would refuse is refused here too, because profiles are also read
 * from folders, where no API server has looked at them.
 */
import { z } from 'zod';
import { parseGoDuration } from '../../core/go/duration.ts';
import {
  CATEGORY,
  conditionsSchema,
  crd,
  droppedFieldProblems,
  labelSelectorSchema,
  NO_NULLS,
  observedGenerationSchema,
  ownObjectProblems,
  readOwnSelector,
  repeated,
  SELECTOR_SHAPE,
  type Shape,
  tooMany,
} from '../../core/kubernetes/kind.ts';
import { isLabelKey, isLabelValue, type LabelRequirement } from '../../core/kubernetes/label-selector.ts';
import {
  isNamespaceName,
  isObjectName,
  type KubeObject,
  LAST_APPLIED,
} from '../../core/kubernetes/object.ts';
import { labels } from '../../core/kubernetes/objects.ts';
import { recordOf, scalarText } from '../../core/record.ts';

// `spec.copies` of a profile: what its copies carry besides the credential, and what becomes of them when a source is deleted.

/** Read. */
export interface ProfileCopies {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** How long after a source was deleted its entries leave the copies; undefined: they stay. */
  readonly removeAfterMs: number | undefined;
}

/** What a profile without `spec.copies` says. */
export const PLAIN_COPIES: ProfileCopies = { labels: {}, annotations: {}, removeAfterMs: undefined };

export const ON_SOURCE_DELETED: readonly ['Keep', 'Remove'] = ['Keep', 'Remove'];
export const DEFAULT_REMOVE_AFTER = '24h';
/** Labels, and annotations. */
export const MAX_COPY_MARKS = 16;
export const MAX_ANNOTATION_LENGTH = 1024;
/** Ours, by which copies are found and pruned. */
export const RESERVED_PREFIX = 'pullwright.dev/';
export const RESERVED_KEYS: readonly string[] = ['app.kubernetes.io/managed-by', LAST_APPLIED];

export const COPIES_SHAPE: Shape = {
  fields: {
    labels: { map: 'string' },
    annotations: { map: 'string' },
    onSourceDeleted: 'string',
    removeAfter: 'string',
  },
};

type ProfileCopiesRaw = Readonly<Record<string, unknown>>;

/**
 * Reads `spec.copies`, whose shape was checked. Total; adds what is wrong to `problems`, each with its path.
 */
export function readCopies(value: unknown, path: string, problems: string[]): ProfileCopies {
  if (value === undefined || value === null) return PLAIN_COPIES;
  const raw = value as ProfileCopiesRaw;
  const labels = marksOf(raw['labels'], `${path}.labels`, problems);
  for (const [key, text] of Object.entries(labels))
    if (!isLabelValue(text)) problems.push(`${path}.labels: "${key}" has a value that is no label value`);
  const annotations = marksOf(raw['annotations'], `${path}.annotations`, problems);
  for (const [key, text] of Object.entries(annotations))
    if (text.length > MAX_ANNOTATION_LENGTH)
      problems.push(
        `${path}.annotations: "${key}" has ${text.length} characters, at most ${MAX_ANNOTATION_LENGTH} are allowed`,
      );
  return { labels, annotations, removeAfterMs: removeAfterOf(raw, path, problems) };
}

function marksOf(value: unknown, path: string, problems: string[]): Readonly<Record<string, string>> {
  const marks = (value ?? {}) as Readonly<Record<string, string>>;
  const keys = Object.keys(marks);
  if (keys.length > MAX_COPY_MARKS)
    problems.push(`${path}: ${keys.length} entries, at most ${MAX_COPY_MARKS} are allowed`);
  for (const key of keys) {
    if (!isLabelKey(key)) problems.push(`${path}: ${JSON.stringify(key.slice(0, 80))} is no valid key`);
    else if (key.startsWith(RESERVED_PREFIX) || RESERVED_KEYS.includes(key))
      problems.push(`${path}: "${key}" is reserved`);
  }
  return marks;
}

function removeAfterOf(raw: ProfileCopiesRaw, path: string, problems: string[]): number | undefined {
  const { onSourceDeleted = 'Keep', removeAfter } = raw;
  if (!(ON_SOURCE_DELETED as readonly unknown[]).includes(onSourceDeleted))
    problems.push(
      `${path}.onSourceDeleted: ${JSON.stringify(scalarText(onSourceDeleted).slice(0, 80))} is none of ${ON_SOURCE_DELETED.join(', ')}`,
    );
  const given = removeAfter ?? DEFAULT_REMOVE_AFTER;
  const text = typeof given === 'string' ? given : JSON.stringify(given);
  const nanoseconds = parseGoDuration(text);
  if (nanoseconds === undefined || nanoseconds < 0)
    problems.push(
      `${path}.removeAfter: invalid value ${JSON.stringify(text.slice(0, 80))}: must be a duration such as "30m" or "24h"`,
    );
  if (onSourceDeleted !== 'Remove') {
    if (removeAfter !== undefined && removeAfter !== null)
      problems.push(`${path}.removeAfter: has no meaning without onSourceDeleted: Remove`);
    return undefined;
  }
  return (nanoseconds ?? 0) / 1e6;
}

export const PROFILE_API_VERSION = 'pullwright.dev/v1alpha1';
export const PROFILE_KIND = 'PullSecretProfile';

export const PROFILE_MODES: readonly ['InjectAndDistribute', 'Inject', 'Distribute'] = [
  'InjectAndDistribute',
  'Inject',
  'Distribute',
];

/** Bounds of lists; the CRD states the same ones, and the consent policy makes one check per source. */
export const MAX_SECRETS = 8;
export const MAX_SOURCES = 8;
/** Over all secrets of one profile: each source costs the consent policy one of the 28 checks that its budget allows. */
export const MAX_SOURCES_IN_ALL = 16;

/** Where a Secret of type kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg is. */
export interface ProfileSource {
  readonly namespace: string;
  readonly name: string;
}

/** One secret of a profile. */
export interface ProfileSecret {
  /** Name of the Secret in the pod's namespace. */
  readonly name: string;
  /** Merged in this order, the first one wins; empty: the Secret is there already. */
  readonly sources: readonly ProfileSource[];
  /** Two sources name one registry with different credentials: the first one counts, or nothing is written. */
  readonly onCollision: 'FirstWins' | 'Fail';
}

/** A profile, read. */
export interface PullSecretProfile {
  readonly name: string;
  readonly order: number;
  /** Of pods; none: every pod of the selected namespaces. With mode `Distribute` no pod is meant, and it may be left out. */
  readonly selector: readonly LabelRequirement[];
  /** Of namespaces; none: every namespace. */
  readonly namespaceSelector: readonly LabelRequirement[];
  readonly secrets: readonly ProfileSecret[];
  readonly injects: boolean;
  readonly distributes: boolean;
  readonly suspended: boolean;
  /** The profile to which this one hands over the names that it holds. */
  readonly successor?: string;
  readonly copies: ProfileCopies;
  /** When the profile was made: who comes first has the name. Absent in folders. */
  readonly createdAt?: string;
}

/** What the definition of the kind allows. */
export const PROFILE_SHAPE: Shape = {
  fields: {
    order: 'integer',
    namespaceSelector: SELECTOR_SHAPE,
    selector: SELECTOR_SHAPE,
    mode: 'string',
    secrets: {
      list: {
        fields: {
          name: 'string',
          sources: { list: { fields: { namespace: 'string', name: 'string' } } },
          onCollision: 'string',
        },
      },
    },
    suspend: 'boolean',
    successor: 'string',
    copies: COPIES_SHAPE,
  },
};

export type ReadProfile =
  | { readonly ok: true; readonly profile: PullSecretProfile }
  | { readonly ok: false; readonly problems: readonly string[] };

type Raw = Readonly<Record<string, unknown>>;

/**
 * Reads a profile. Total; all problems at once, each with its path.
 */
export function readProfile(object: KubeObject): ReadProfile {
  const problems: string[] = [
    ...ownObjectProblems(object, PROFILE_SHAPE),
    ...droppedFieldProblems(object, PROFILE_SHAPE),
  ];
  // What has the wrong shape would be told twice, and a wrong type must not look like a field that was left out.
  if (problems.length > 0) return { ok: false, problems };
  const spec = recordOf(object.spec);
  const mode = choice(spec['mode'], PROFILE_MODES, 'spec.mode', problems);
  const profile: PullSecretProfile = {
    name: object.metadata.name,
    order: orderOf(spec['order'], problems),
    selector: selectorOf(spec['selector'], mode, problems),
    namespaceSelector: requirementsOf(
      spec['namespaceSelector'],
      { path: 'spec.namespaceSelector', all: 'namespaces' },
      problems,
    ),
    secrets: secretsOf(spec['secrets'], problems),
    injects: mode !== 'Distribute',
    distributes: mode !== 'Inject',
    suspended: spec['suspend'] === true,
    copies: readCopies(spec['copies'], 'spec.copies', problems),
    ...successorOf(spec['successor'], problems),
    ...(object.metadata.creationTimestamp === undefined
      ? {}
      : { createdAt: object.metadata.creationTimestamp }),
  };
  distributeProblems(profile, mode, problems);
  return problems.length === 0 ? { ok: true, profile } : { ok: false, problems };
}

function successorOf(value: unknown, problems: string[]): { readonly successor?: string } {
  if (typeof value !== 'string') return {};
  if (value.length > 0 && value.length <= 253) return { successor: value };
  problems.push(`spec.successor: ${shown(value)} is not the name of a profile`);
  return {};
}

function distributeProblems(
  profile: PullSecretProfile,
  mode: (typeof PROFILE_MODES)[number],
  problems: string[],
): void {
  if (mode !== 'Distribute') return;
  for (const [at, { sources }] of profile.secrets.entries())
    if (sources.length === 0)
      problems.push(`spec.secrets[${at}].sources: must name a source: spec.mode is Distribute`);
}

/** By order, then name: the order in which secrets are appended to a pod. */
export function compareProfiles(
  a: Pick<PullSecretProfile, 'order' | 'name'>,
  b: Pick<PullSecretProfile, 'order' | 'name'>,
): number {
  return a.order - b.order || (a.name < b.name ? -1 : 1);
}

function orderOf(value: unknown, problems: string[]): number {
  if (value === undefined || value === null) return 0;
  if (Number.isInteger(value) && Math.abs(value as number) <= 1_000_000) return value as number;
  problems.push('spec.order: must be a whole number from -1000000 to 1000000');
  return 0;
}

/** A profile that only distributes concerns no pod. */
function selectorOf(
  value: unknown,
  mode: (typeof PROFILE_MODES)[number],
  problems: string[],
): readonly LabelRequirement[] {
  const isAbsent = value === undefined || value === null;
  if (isAbsent && mode === 'Distribute') return [];
  return requirementsOf(value, { path: 'spec.selector', all: 'pods of these namespaces' }, problems);
}

/** What is left out or misspelt must never mean everything. */
function requirementsOf(
  value: unknown,
  { path, all }: { readonly path: string; readonly all: string },
  problems: string[],
): readonly LabelRequirement[] {
  if (value === undefined || value === null) {
    problems.push(`${path}: required value: must be a label selector; {} selects all ${all}`);
    return [];
  }
  const read = readOwnSelector(value, path);
  problems.push(...read.problems);
  return read.requirements;
}

function secretsOf(value: unknown, problems: string[]): readonly ProfileSecret[] {
  const entries = listOf(value, 'spec.secrets', MAX_SECRETS, problems);
  if (entries.length === 0) problems.push('spec.secrets: must be at least one');
  const secrets = entries.map((entry, at) => secretOf(recordOf(entry), `spec.secrets[${at}]`, problems));
  for (const name of repeated(secrets.map((secret) => secret.name).filter((one) => one !== '')))
    problems.push(`spec.secrets: "${name}" is there twice`);
  const sources = secrets.reduce((sum, secret) => sum + secret.sources.length, 0);
  if (sources > MAX_SOURCES_IN_ALL)
    problems.push(`spec.secrets: ${sources} sources in all, at most ${MAX_SOURCES_IN_ALL} are allowed`);
  return secrets;
}

function secretOf(entry: Raw, path: string, problems: string[]): ProfileSecret {
  const sources = listOf(entry['sources'], `${path}.sources`, MAX_SOURCES, problems).map((source, at) =>
    sourceOf(recordOf(source), `${path}.sources[${at}]`, problems),
  );
  return {
    name: nameOf(entry['name'], `${path}.name`, problems),
    sources,
    onCollision: choice(entry['onCollision'], ['FirstWins', 'Fail'], `${path}.onCollision`, problems),
  };
}

function sourceOf(source: Raw, path: string, problems: string[]): ProfileSource {
  const namespace = source['namespace'];
  const valid = isNamespaceName(namespace);
  if (!valid) problems.push(`${path}.namespace: ${shown(namespace)} is not the name of a namespace`);
  return {
    namespace: valid ? namespace : '',
    name: nameOf(source['name'], `${path}.name`, problems),
  };
}

function nameOf(value: unknown, path: string, problems: string[]): string {
  if (isObjectName(value)) return value;
  problems.push(`${path}: ${shown(value)} is not the name of a Secret`);
  return '';
}

function listOf(value: unknown, path: string, max: number, problems: string[]): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) {
    problems.push(`${path}: must be a list`);
    return [];
  }
  problems.push(...tooMany(value.length, max, path));
  return value as readonly unknown[];
}

function choice<T extends string>(
  value: unknown,
  allowed: readonly [T, ...T[]],
  path: string,
  problems: string[],
): T {
  if (value === undefined || value === null) return allowed[0];
  const found = allowed.find((one) => one === value);
  if (found === undefined) problems.push(`${path}: ${shown(value)} is none of ${allowed.join(', ')}`);
  return found ?? allowed[0];
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 80)) : `a value of type ${typeof value}`;
}

// The kind `PullSecretProfile`: schema, rules that span fields, and columns of `kubectl get`.

const secretName = z
  .string()
  .min(1)
  .max(253)
  .regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/);

const source = z.strictObject({
  namespace: z
    .string()
    .min(1)
    .max(63)
    .regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/)
    .describe('Namespace of the source Secret'),
  name: secretName.describe('Name of the source Secret, of type kubernetes.io/dockerconfigjson'),
});

const secret = z.strictObject({
  name: secretName.describe('Name of the Secret in the namespace of the pod'),
  sources: z
    .array(source)
    .max(MAX_SOURCES)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .describe(
      'Merged in this order, the first one wins. Each must be granted by a PullSecretGrant beside it. Empty: the Secret is brought by somebody else',
    )
    .optional(),
  onCollision: z
    .enum(['FirstWins', 'Fail'])
    .meta({ default: 'FirstWins' })
    .describe(
      'Two sources name one registry with different credentials: the first one counts, or nothing is written',
    )
    .optional(),
});

const marks = (max: number): z.ZodType =>
  z.record(z.string(), z.string().max(max).meta({ nullable: true })).meta({
    maxProperties: MAX_COPY_MARKS,
    'x-kubernetes-validations': [
      NO_NULLS,
      {
        rule: `self.all(k, !k.startsWith('${RESERVED_PREFIX}') && !(k in [${RESERVED_KEYS.map((key) => `'${key}'`).join(', ')}]))`,
        message: `keys of ${RESERVED_PREFIX}, ${RESERVED_KEYS.join(' and ')} are reserved`,
      },
    ],
  });

const copies = z
  .strictObject({
    labels: marks(63).describe('Labels of the copies').optional(),
    annotations: marks(MAX_ANNOTATION_LENGTH).describe('Annotations of the copies').optional(),
    onSourceDeleted: z
      .enum(ON_SOURCE_DELETED)
      .meta({ default: 'Keep' })
      .describe('What becomes of the copies when a source is deleted: they stay, or its entries are removed')
      .optional(),
    removeAfter: z
      .string()
      .max(32)
      .regex(/^(0|(\d+(ms|s|m|h))+)$/)
      .describe(`How long after the deletion, such as 30m; by default ${DEFAULT_REMOVE_AFTER}`)
      .optional(),
  })
  .meta({
    'x-kubernetes-validations': [
      {
        rule: "!has(self.removeAfter) || (has(self.onSourceDeleted) && self.onSourceDeleted == 'Remove')",
        message: 'removeAfter has no meaning without onSourceDeleted: Remove',
      },
    ],
  });

const spec = z
  .strictObject({
    order: z
      .int()
      .min(-1_000_000)
      .max(1_000_000)
      .meta({ format: 'int32', default: 0 })
      .describe('Lower ones are appended to a pod first; equal ones go by name')
      .optional(),
    namespaceSelector: labelSelectorSchema().describe('Namespaces that are served; {} selects all'),
    selector: labelSelectorSchema()
      .describe('Pods that get the names; {} selects all. Left out only with mode Distribute')
      .optional(),
    mode: z
      .enum(PROFILE_MODES)
      .meta({ default: 'InjectAndDistribute' })
      .describe('Whether pods get the names, namespaces get the Secrets, or both')
      .optional(),
    secrets: z
      .array(secret)
      .min(1)
      .max(MAX_SECRETS)
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
      .describe('In the order in which they are appended to a pod'),
    copies: copies
      .describe('What copies carry besides the credential, and what becomes of them when a source is deleted')
      .optional(),
    suspend: z.boolean().describe('Stops everything but revocation; copies stay as they are').optional(),
    successor: z
      .string()
      .min(1)
      .max(253)
      .describe('Name of the profile that takes over the Secret names which this one holds')
      .optional(),
  })
  .meta({
    'x-kubernetes-validations': [
      {
        rule: `self.secrets.map(s, has(s.sources) ? size(s.sources) : 0).sum() <= ${MAX_SOURCES_IN_ALL}`,
        message: `at most ${MAX_SOURCES_IN_ALL} sources in all; split the profile`,
      },
      {
        rule: "!has(self.mode) || self.mode != 'Distribute' || self.secrets.all(s, has(s.sources) && size(s.sources) > 0)",
        message: 'mode Distribute needs sources for every secret',
      },
      {
        rule: "has(self.selector) || (has(self.mode) && self.mode == 'Distribute')",
        message: 'spec.selector is required: {} selects all pods of these namespaces',
      },
    ],
  });

const count = z.int().min(0).max(2_147_483_647).meta({ format: 'int32' });

const status = z
  .strictObject({
    observedGeneration: observedGenerationSchema(-1),
    namespaces: z
      .strictObject({
        selected: count.describe('Namespaces that the profile selects'),
        current: count.describe('Of these, the ones that hold every Secret as it should be'),
        blocked: count.describe('Of these, the ones whose own owners have to act').optional(),
      })
      .describe('How many namespaces are served')
      .optional(),
    copies: z.string().max(32).describe('current/selected').optional(),
    heldRemoval: z
      .string()
      .max(64)
      .describe('Value of the annotation pullwright.dev/confirm-removal that lets a removal go on')
      .optional(),
    missingSources: z
      .array(
        z.strictObject({
          source: z.string().max(320).describe('namespace/name of a source that was deleted'),
          since: z.string().max(32).describe('When that was seen'),
        }),
      )
      .max(MAX_SOURCES_IN_ALL)
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .describe('Sources that were there and are deleted')
      .optional(),
    conditions: conditionsSchema().optional(),
  })
  // A new object is in progress until somebody has looked at it.
  .meta({ default: { observedGeneration: -1 } })
  .optional();

/** The CustomResourceDefinition of `PullSecretProfile`. */
export function pullSecretProfileCrd(): KubeObject {
  const [group = '', version = ''] = PROFILE_API_VERSION.split('/');
  return crd({
    group,
    kind: PROFILE_KIND,
    shortNames: ['pprof'],
    categories: [CATEGORY],
    scope: 'Cluster',
    labels: labels({ name: 'pullsecretprofile', component: 'crd' }),
    versions: [
      {
        name: version,
        schema: z.strictObject({ spec, status }).meta({
          description:
            'Says which pods get which pull secrets, and where the secrets come from. Only imagePullSecrets are injected, never containers.',
        }),
        printerColumns: [
          { name: 'Mode', type: 'string', jsonPath: '.spec.mode' },
          { name: 'Copies', type: 'string', jsonPath: '.status.copies' },
          { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
          { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
          {
            name: 'Message',
            type: 'string',
            jsonPath: '.status.conditions[?(@.type=="Ready")].message',
            priority: 1,
          },
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
        ],
      },
    ],
  });
}
