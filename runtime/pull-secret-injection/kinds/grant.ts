/**
 * `PullSecretGrant` (pullwright.dev/v1alpha1, namespaced): the consent of the owner of a source Secret, as an object of its own in
 * the namespace of the Secret. It outlives the Secret, so that replacing the Secret takes nothing away.
 *
 * Source of the shape: `ReferenceGrant` of the Gateway API.
 */
import { z } from 'zod';
import {
  CATEGORY,
  conditionsSchema,
  crd,
  droppedFieldProblems,
  labelSelectorSchema,
  observedGenerationSchema,
  ownObjectProblems,
  readOwnSelector,
  repeated,
  SELECTOR_SHAPE,
  type Shape,
  tooMany,
} from '../../core/kubernetes/kind.ts';
import {
  type LabelRequirement,
  type Labels,
  NAMESPACE_NAME_LABEL,
  selectorKeys,
  selects,
} from '../../core/kubernetes/label-selector.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { labels } from '../../core/kubernetes/objects.ts';

/**
 * Label keys that selectors of grants may use unless configured otherwise: a tenant who labels its own namespace must not be able to help
 * itself, and the API server owns this one.
 */
export const DEFAULT_TRUSTED_KEYS: readonly string[] = [NAMESPACE_NAME_LABEL];

/** To which namespaces a grant gives. */
export interface Grant {
  /** Names and globs. */
  readonly patterns: readonly string[];
  readonly selectors: readonly (readonly LabelRequirement[])[];
  /** Parts that grant nothing, and why. */
  readonly problems: readonly string[];
}

/** Whether the namespace may have a copy. */
export function grants(grant: Grant, namespace: string, labels: Labels): boolean {
  if (grant.patterns.some((pattern) => matchesGlob(pattern, namespace))) return true;
  // The name counts as the label that the API server sets, whatever a manifest in a folder says.
  const seen = { ...labels, [NAMESPACE_NAME_LABEL]: namespace };
  return grant.selectors.some((requirements) => selects(requirements, seen));
}

/** `*` is any text, `?` any one character. Steps back to the last star only, so the time is bounded by the product of lengths. */
function matchesGlob(glob: string, name: string): boolean {
  let at = 0;
  let star = -1;
  let resume = 0;
  for (let index = 0; index < name.length; ) {
    if (glob[at] === '*') {
      star = at;
      at += 1;
      resume = index;
    } else if (at < glob.length && (glob[at] === '?' || glob[at] === name[index])) {
      at += 1;
      index += 1;
    } else if (star >= 0) {
      resume += 1;
      index = resume;
      at = star + 1;
    } else return false;
  }
  return /^\**$/.test(glob.slice(at));
}

export const GRANT_API_VERSION = 'pullwright.dev/v1alpha1';
export const GRANT_KIND = 'PullSecretGrant';
/** The policy of consent makes one check for each. */
export const MAX_GRANTED_SECRETS = 16;
export const MAX_GRANTED_PROFILES = 64;
export const MAX_GRANTED_NAMESPACES = 256;
/** In `spec.profiles`: whichever profile asks. */
export const ANY_PROFILE = '*';

/** A grant, read. */
export interface PullSecretGrant {
  readonly namespace: string;
  readonly name: string;
  /** Names of Secrets beside it. */
  readonly secrets: readonly string[];
  /** Names of profiles, `sidecarset/NAME`, or {@link ANY_PROFILE}. */
  readonly profiles: readonly string[];
  readonly to: Grant;
  /** Nothing that kubectl applied was dropped on the way: otherwise it is not known what its owner means. */
  readonly isWhole: boolean;
  /** What of it grants nothing, and why. With problems in its shape the whole of it grants nothing. */
  readonly problems: readonly string[];
}

/** What the definition of the kind allows. */
export const GRANT_SHAPE: Shape = {
  fields: {
    secrets: { list: { fields: { name: 'string' } } },
    profiles: { list: { fields: { name: 'string' } } },
    namespaces: { list: 'string' },
    namespaceSelector: SELECTOR_SHAPE,
  },
};

/**
 * Reads a grant. Total: what cannot be read grants nothing and is in `problems`.
 */
export function readPullSecretGrant(
  object: KubeObject,
  trustedKeys: readonly string[] = DEFAULT_TRUSTED_KEYS,
): PullSecretGrant {
  const { namespace = '', name } = object.metadata;
  const dropped = droppedFieldProblems(object, GRANT_SHAPE);
  const shape = [...ownObjectProblems(object, GRANT_SHAPE), ...dropped];
  const spec = shape.length > 0 ? {} : specOf(object);
  const missing = shape.length > 0 ? [] : missingParts(spec);
  const to = readTargets(spec, trustedKeys);
  return {
    namespace,
    name,
    secrets: namesOf(spec.secrets),
    profiles: namesOf(spec.profiles),
    to,
    isWhole: dropped.length === 0,
    problems: [...shape, ...missing, ...to.problems],
  };
}

interface Spec {
  readonly secrets?: readonly { readonly name?: string | null }[];
  readonly profiles?: readonly { readonly name?: string | null }[];
  readonly namespaces?: readonly string[];
  readonly namespaceSelector?: unknown;
}

/** A null is a field that was left out. */
function specOf({ spec }: KubeObject): Spec {
  return Object.fromEntries(Object.entries(spec ?? {}).filter(([, value]) => value !== null));
}

function missingParts({
  secrets = [],
  profiles = [],
  namespaces = [],
  namespaceSelector,
}: Spec): readonly string[] {
  return [
    ...(secrets.length === 0 ? ['spec.secrets: must name at least one Secret'] : []),
    ...tooMany(secrets.length, MAX_GRANTED_SECRETS, 'spec.secrets'),
    ...nameProblems(secrets, 'spec.secrets'),
    ...(profiles.length === 0
      ? [`spec.profiles: must name at least one profile; "${ANY_PROFILE}" is any of them`]
      : []),
    ...tooMany(profiles.length, MAX_GRANTED_PROFILES, 'spec.profiles'),
    ...nameProblems(profiles, 'spec.profiles'),
    ...(namespaces.length === 0 && (namespaceSelector === undefined || namespaceSelector === null)
      ? ['spec.namespaces: must name at least one namespace, or spec.namespaceSelector must be set']
      : []),
    ...tooMany(namespaces.length, MAX_GRANTED_NAMESPACES, 'spec.namespaces'),
    ...repeated(namespaces).map((name) => `spec.namespaces: duplicate value: ${JSON.stringify(name)}`),
  ];
}

function nameProblems(list: readonly { readonly name?: string | null }[], path: string): readonly string[] {
  const names = list.map(({ name }) => name ?? '');
  return [
    ...names.flatMap((name, at) => {
      if (name === '') return [`${path}[${at}].name: required value: must not be empty`];
      return name.length > 253 ? [`${path}[${at}].name: too long: must have at most 253 characters`] : [];
    }),
    ...repeated(names.filter((name) => name !== '')).map(
      (name) => `${path}: duplicate value: ${JSON.stringify(name)}`,
    ),
  ];
}

function readTargets({ namespaces = [], namespaceSelector }: Spec, trustedKeys: readonly string[]): Grant {
  const patterns = namespaces.filter((one) => PATTERN.test(one));
  const problems = namespaces
    .filter((one) => !PATTERN.test(one))
    .map(
      (one) =>
        `spec.namespaces: invalid value ${JSON.stringify(one.slice(0, 80))}: must be a namespace name or a pattern`,
    );
  const names = { patterns, selectors: [], problems };
  if (namespaceSelector === undefined || namespaceSelector === null) return names;
  const read = readOwnSelector(namespaceSelector, 'spec.namespaceSelector');
  if (read.problems.length > 0) return { ...names, problems: [...problems, ...read.problems] };
  const strange = selectorKeys(read.requirements).find((key) => !trustedKeys.includes(key));
  if (strange === undefined) return { ...names, selectors: [read.requirements] };
  const text = `spec.namespaceSelector: uses the label "${strange}", which is not trusted; must use one of ${trustedKeys.join(', ')}`;
  return { ...names, problems: [...problems, text] };
}

const PATTERN = /^[a-z0-9*?-]{1,63}$/;

function namesOf(list: readonly { readonly name?: string | null }[] = []): readonly string[] {
  return list.flatMap(({ name }) => name ?? []);
}

/** Who asks for what, and for which namespace. */
export interface GrantRequest {
  readonly secret: string;
  readonly profile: string;
  readonly namespace: string;
  readonly labels: Labels;
}

/** Whether the grant gives the Secret to the profile, to whatever namespace. */
export function isGrantedTo(
  { profiles, secrets }: PullSecretGrant,
  { secret, profile }: Pick<GrantRequest, 'secret' | 'profile'>,
): boolean {
  return (profiles.includes(profile) || profiles.includes(ANY_PROFILE)) && secrets.includes(secret);
}

/** Whether the grant covers the request. */
export function grantsTo(grant: PullSecretGrant, request: GrantRequest): boolean {
  return isGrantedTo(grant, request) && grants(grant.to, request.namespace, request.labels);
}

// The kind `PullSecretGrant`: schema, rules that span fields, and columns of `kubectl get`.

const named = (description: string): z.ZodType =>
  z.strictObject({ name: z.string().min(1).max(253).describe(description) });

const listed = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] };

const spec = z
  .strictObject({
    secrets: z
      .array(named('Name of a Secret in the namespace of the grant'))
      .min(1)
      .max(MAX_GRANTED_SECRETS)
      .meta(listed)
      .describe('What may be copied; it need not exist yet'),
    profiles: z
      .array(named('Name of a PullSecretProfile, sidecarset/NAME, or * for any of them'))
      .min(1)
      .max(MAX_GRANTED_PROFILES)
      .meta(listed)
      .describe('Who may bring it'),
    namespaces: z
      .array(
        z
          .string()
          .min(1)
          .max(63)
          .regex(/^[a-z0-9*?-]+$/),
      )
      .max(MAX_GRANTED_NAMESPACES)
      .meta({ 'x-kubernetes-list-type': 'set' })
      .describe(
        'Where to: names, or patterns with * and ?. A pattern is no consent where users choose the names of namespaces',
      )
      .optional(),
    namespaceSelector: labelSelectorSchema()
      .describe(
        'Where to, by labels of the namespace that the operator of the cluster trusts; {} is everywhere',
      )
      .optional(),
  })
  .meta({
    'x-kubernetes-validations': [
      {
        rule: 'has(self.namespaceSelector) || (has(self.namespaces) && size(self.namespaces) > 0)',
        message: 'namespaces or namespaceSelector must say where to',
      },
    ],
  });

const status = z
  .strictObject({
    observedGeneration: observedGenerationSchema(-1),
    conditions: conditionsSchema().optional(),
  })
  .meta({ default: { observedGeneration: -1 } })
  .optional();

/** The CustomResourceDefinition of `PullSecretGrant`. */
export function pullSecretGrantCrd(): KubeObject {
  const [group = '', version = ''] = GRANT_API_VERSION.split('/');
  const condition = (field: string): string => `.status.conditions[?(@.type=="Ready")].${field}`;
  return crd({
    group,
    kind: GRANT_KIND,
    shortNames: ['pgrant'],
    categories: [CATEGORY],
    scope: 'Namespaced',
    labels: labels({ name: 'pullsecretgrant', component: 'crd' }),
    versions: [
      {
        name: version,
        schema: z.strictObject({ spec, status }).meta({
          description:
            'The consent of the owner of Secrets: which of the Secrets beside it may be brought, by which profiles, to which namespaces. It outlives the Secrets; deleting it takes the copies away.',
        }),
        printerColumns: [
          { name: 'Ready', type: 'string', jsonPath: condition('status') },
          { name: 'Reason', type: 'string', jsonPath: condition('reason') },
          { name: 'Message', type: 'string', jsonPath: condition('message'), priority: 1 },
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
        ],
      },
    ],
  });
}
