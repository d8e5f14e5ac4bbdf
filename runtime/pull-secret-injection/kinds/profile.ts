/**
 * `PullSecretProfile` (pullwright.dev/v1alpha1, cluster-scoped): which pods get which pull secrets, and their sources. Validated
 * against the CRD's schema on read, because manifests in a folder have not passed an API server.
 */
import { z } from 'zod';
import { parseGoDuration } from '../../core/go/duration.ts';
import type { Frozen } from '../../core/kubernetes/fields.ts';
import {
  defineKind,
  labelSelectorSchema,
  NO_NULLS,
  namedList,
  OWN_GROUP,
  OWN_VERSION,
  type SelectorInput,
  statusSchema,
  withRules,
} from '../../core/kubernetes/kind.ts';
import {
  isLabelKey,
  isLabelValue,
  type LabelRequirement,
  readSelector,
} from '../../core/kubernetes/label-selector.ts';
import { type KubeObject, LAST_APPLIED } from '../../core/kubernetes/object.ts';
import { atMost, mustBe, refuse } from '../../core/kubernetes/read-spec.ts';

// `spec.copies`: labels and annotations of the copies, and the policy for a deleted source.

const DEFAULT_REMOVE_AFTER = '24h';
/** Applies to labels and annotations separately. */
const MAX_COPY_MARKS = 16;
const MAX_ANNOTATION_LENGTH = 1024;
/** Reserved: the reconciler finds and prunes copies by labels with this prefix. */
const RESERVED_PREFIX = 'pullwright.dev/';
const RESERVED_KEYS: readonly string[] = ['app.kubernetes.io/managed-by', LAST_APPLIED];

export const PROFILE = { apiVersion: `${OWN_GROUP}/${OWN_VERSION}`, kind: 'PullSecretProfile' } as const;

/** Limited because the consent policy needs one authorizer check per source. */
export const MAX_SECRETS = 8;
export const MAX_SOURCES = 8;
/** Limit across all secrets of a profile: each source uses one of the 28 checks in the cost budget of the consent policy. */
export const MAX_SOURCES_IN_ALL = 16;

/** A parsed profile. */
export type PullSecretProfile = Frozen<Extract<ReadProfile, { ok: true }>['profile']>;

/** A Secret that a profile injects, distributes, or both. */
export type ProfileSecret = PullSecretProfile['secrets'][number];

/** Reference to a source Secret, of type kubernetes.io/dockerconfigjson. */
export type ProfileSource = ProfileSecret['sources'][number];

/** Sorts by `order`, then name: the sequence in which secrets are appended to a pod. */
export function compareProfiles(a: PullSecretProfile, b: PullSecretProfile): number {
  return a.order - b.order || (a.name < b.name ? -1 : 1);
}

// The kind `PullSecretProfile`: schema, rules that span fields, and columns of `kubectl get`.

function secretSchema() {
  const secretName = z
    .string()
    .min(1)
    .max(253)
    .regex(
      /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/,
      mustBe('the name of a Secret'),
    );

  const source = z.strictObject({
    namespace: z
      .string()
      .min(1)
      .max(63)
      .regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/, mustBe('the name of a namespace'))
      .describe('Namespace of the source Secret'),
    name: secretName.describe('Name of the source Secret, of type kubernetes.io/dockerconfigjson'),
  });

  return z.strictObject({
    name: secretName.describe('Name of the Secret in the namespace of the pod'),
    sources: z
      .array(source)
      .max(MAX_SOURCES)
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .describe(
        'Merged in this order; the first one wins. Each requires a PullSecretGrant in its namespace. Empty: another tool delivers the Secret',
      )
      .optional(),
    onCollision: z
      .enum(['FirstWins', 'Fail'])
      .default('FirstWins')
      .describe(
        'When two sources have different credentials for one registry: use the first, or write nothing',
      ),
  });
}

const marks = (max: number, isValue: (text: string) => boolean): z.ZodRecord<z.ZodString, z.ZodString> =>
  withRules(
    z
      .record(z.string(), z.string().max(max).meta({ nullable: true }))
      .superRefine(atMost(MAX_COPY_MARKS))
      .superRefine((map, context) => {
        for (const [key, text] of Object.entries(map))
          if (!isLabelKey(key)) refuse(context, `${JSON.stringify(key.slice(0, 80))} is not a valid key`);
          else if (!isValue(text)) refuse(context, `"${key}" has an invalid label value`);
      }),
    [
      NO_NULLS,
      {
        cel: `self.all(k, !k.startsWith('${RESERVED_PREFIX}') && !(k in [${RESERVED_KEYS.map((key) => `'${key}'`).join(', ')}]))`,
        message: `keys of ${RESERVED_PREFIX}, ${RESERVED_KEYS.join(' and ')} are reserved`,
        text: 'is reserved',
        faults: (map: object) =>
          Object.keys(map)
            .filter((key) => key.startsWith(RESERVED_PREFIX) || RESERVED_KEYS.includes(key))
            .map((key) => [key]),
      },
    ],
  ).meta({ maxProperties: MAX_COPY_MARKS });

function copiesSchema() {
  return withRules(
    z.strictObject({
      labels: marks(63, isLabelValue).describe('Labels of the copies').optional(),
      annotations: marks(MAX_ANNOTATION_LENGTH, () => true)
        .describe('Annotations of the copies')
        .optional(),
      onSourceDeleted: z
        .enum(['Keep', 'Remove'])
        .default('Keep')
        .describe('When a source is deleted: keep the copies, or remove its entries'),
      removeAfter: z
        .string()
        .max(32)
        .regex(/^(0|(\d+(ms|s|m|h))+)$/, mustBe('a duration such as "30m" or "24h"'))
        .describe(`Delay after the deletion, such as 30m; default ${DEFAULT_REMOVE_AFTER}`)
        .optional(),
    }),
    [
      {
        cel: "!has(self.removeAfter) || (has(self.onSourceDeleted) && self.onSourceDeleted == 'Remove')",
        message: 'removeAfter requires onSourceDeleted: Remove',
        text: 'requires onSourceDeleted: Remove',
        faults: ({ onSourceDeleted, removeAfter }) =>
          removeAfter === undefined || onSourceDeleted === 'Remove' ? [] : [['removeAfter']],
      },
    ],
  );
}

function specSchema() {
  return withRules(
    z.strictObject({
      order: z
        .int()
        .min(-1_000_000)
        .max(1_000_000)
        .default(0)
        .meta({ format: 'int32' })
        .describe('Lower values are appended to a pod first; ties are ordered by name'),
      namespaceSelector: labelSelectorSchema('namespaces').describe('Target namespaces; {} selects all'),
      selector: labelSelectorSchema()
        .describe('Pods to inject; {} selects all. Optional only with mode Distribute')
        .optional(),
      mode: z
        .enum(['InjectAndDistribute', 'Inject', 'Distribute'])
        .default('InjectAndDistribute')
        .describe('Whether to inject names into pods, copy Secrets to namespaces, or both'),
      secrets: namedList(secretSchema(), MAX_SECRETS).describe(
        'In the order in which they are appended to a pod',
      ),
      copies: copiesSchema()
        .describe('Metadata of the copies, and what happens to them when a source is deleted')
        .optional(),
      suspend: z
        .boolean()
        .describe('Suspends everything except revocation; copies stay unchanged')
        .optional(),
      successor: z
        .string()
        .min(1)
        .max(253)
        .describe('Name of the profile that takes over the Secret names of this one')
        .optional(),
    }),
    [
      {
        cel: `self.secrets.map(s, has(s.sources) ? size(s.sources) : 0).sum() <= ${MAX_SOURCES_IN_ALL}`,
        message: `at most ${MAX_SOURCES_IN_ALL} sources in total; split the profile`,
        faults: ({ secrets }) =>
          secrets.flatMap(({ sources = [] }) => sources).length > MAX_SOURCES_IN_ALL ? [['secrets']] : [],
      },
      {
        cel: "!has(self.mode) || self.mode != 'Distribute' || self.secrets.all(s, has(s.sources) && size(s.sources) > 0)",
        message: 'mode Distribute requires sources for every secret',
        text: 'must name a source: spec.mode is Distribute',
        faults: ({ mode, secrets }) =>
          secrets.flatMap(({ sources = [] }, at) =>
            mode === 'Distribute' && sources.length === 0 ? [['secrets', at, 'sources']] : [],
          ),
      },
      {
        cel: "has(self.selector) || (has(self.mode) && self.mode == 'Distribute')",
        message: 'spec.selector is required: {} selects all pods of these namespaces',
        text: 'required value: must be a label selector; {} selects all pods of these namespaces',
        faults: ({ selector, mode }) =>
          selector !== undefined || mode === 'Distribute' ? [] : [['selector']],
      },
    ],
  );
}

export type ReadProfile = ReturnType<typeof readProfile>;

/** Reads a profile. Never throws; returns all problems at once, each with its path. */
export function readProfile(object: KubeObject) {
  const { spec: read, problems } = kind.read(object);
  if (read === undefined) return { ok: false, problems } as const;
  const { order, mode, secrets, suspend, successor } = read;
  const { name, creationTimestamp } = object.metadata;
  const profile = {
    name,
    order,
    /** Pod selector; empty: every pod of the selected namespaces. Optional and without effect in mode `Distribute`. */
    selector: requirementsOf(read.selector),
    /** Namespace selector; empty: every namespace. */
    namespaceSelector: requirementsOf(read.namespaceSelector),
    /** Without sources, another tool delivers the Secret. */
    secrets: secrets.map(({ sources = [], ...one }) => ({ ...one, sources })),
    injects: mode !== 'Distribute',
    distributes: mode !== 'Inject',
    suspended: suspend === true,
    copies: copiesOf(read.copies),
    /** Name of the profile that takes over this profile's Secret names. */
    successor,
    /** On a collision, the oldest profile gets the name. Absent in folders. */
    createdAt: creationTimestamp,
  };
  return { ok: true, profile } as const;
}

function requirementsOf(selector: SelectorInput | undefined): readonly LabelRequirement[] {
  const read = readSelector(selector);
  return read.ok ? read.requirements : [];
}

/** Parsed `spec.copies`. */
export function copiesOf(value: z.input<ReturnType<typeof copiesSchema>> = {}) {
  const { labels = {}, annotations = {}, onSourceDeleted, removeAfter = DEFAULT_REMOVE_AFTER } = value;
  const nanoseconds = parseGoDuration(removeAfter) ?? 0;
  /** Delay between deletion of a source and removal of its entries from the copies; undefined: entries stay. */
  const removeAfterMs = onSourceDeleted === 'Remove' ? nanoseconds / 1e6 : undefined;
  return { labels, annotations, removeAfterMs };
}

function profileStatus() {
  const count = z.int().min(0).max(2_147_483_647).meta({ format: 'int32' });

  return statusSchema({
    namespaces: z
      .strictObject({
        selected: count.describe('Namespaces that the profile selects'),
        current: count.describe('Of these, namespaces where every Secret is current'),
        blocked: count.describe('Of these, namespaces whose owners must act').optional(),
      })
      .describe('Numbers of target namespaces')
      .optional(),
    copies: z.string().max(32).describe('current/selected').optional(),
    heldRemoval: z
      .string()
      .max(64)
      .describe('Value of the annotation pullwright.dev/confirm-removal that confirms a held removal')
      .optional(),
    missingSources: z
      .array(
        z.strictObject({
          source: z.string().max(320).describe('namespace/name of a source that was deleted'),
          since: z.string().max(32).describe('When the deletion was detected'),
        }),
      )
      .max(MAX_SOURCES_IN_ALL)
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .describe('Sources that existed and are deleted')
      .optional(),
  });
}

const kind = defineKind({
  kind: PROFILE.kind,
  shortName: 'pprof',
  scope: 'Cluster',
  description:
    'Declares which pods get which pull secrets, and the sources of the secrets. Only imagePullSecrets are injected, never containers.',
  columns: [
    { name: 'Mode', type: 'string', jsonPath: '.spec.mode' },
    { name: 'Copies', type: 'string', jsonPath: '.status.copies' },
  ],
  spec: specSchema,
  status: profileStatus,
});

/** The CustomResourceDefinition of `PullSecretProfile`. */
export const pullSecretProfileCrd = kind.crd;
