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
  labelSelectorSchema,
  mustBe,
  namedList,
  noDuplicates,
  observedGenerationSchema,
  readSpec,
  refuse,
} from '../../core/kubernetes/kind.ts';
import {
  type LabelRequirement,
  type Labels,
  NAMESPACE_NAME_LABEL,
  readSelector,
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

const named = (description: string) =>
  z.strictObject({ name: z.string().min(1).max(253).describe(description) });

const spec = z
  .strictObject({
    secrets: namedList(named('Name of a Secret in the namespace of the grant'), MAX_GRANTED_SECRETS).describe(
      'What may be copied; it need not exist yet',
    ),
    profiles: namedList(
      named('Name of a PullSecretProfile, sidecarset/NAME, or * for any of them'),
      MAX_GRANTED_PROFILES,
    ).describe('Who may bring it'),
    namespaces: z
      .array(
        z
          .string()
          .min(1)
          .max(63)
          .regex(/^[a-z0-9*?-]+$/, mustBe('a namespace name or a pattern')),
      )
      .max(MAX_GRANTED_NAMESPACES)
      .superRefine(noDuplicates)
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
  .superRefine(({ namespaces = [], namespaceSelector }, context) => {
    if (namespaces.length === 0 && namespaceSelector === undefined)
      refuse(context, 'must name at least one namespace, or spec.namespaceSelector must be set', [
        'namespaces',
      ]);
  })
  .meta({
    'x-kubernetes-validations': [
      {
        rule: 'has(self.namespaceSelector) || (has(self.namespaces) && size(self.namespaces) > 0)',
        message: 'namespaces or namespaceSelector must say where to',
      },
    ],
  });

/**
 * Reads a grant. Total: what cannot be read grants nothing and is in `problems`.
 */
export function readPullSecretGrant(
  object: KubeObject,
  trustedKeys: readonly string[] = DEFAULT_TRUSTED_KEYS,
): PullSecretGrant {
  const { namespace = '', name } = object.metadata;
  const { spec: read, problems, isWhole } = readSpec(object, spec);
  const { secrets = [], profiles = [], namespaces: patterns = [] } = read ?? {};
  const selector = readSelector(read?.namespaceSelector);
  const requirements = selector.ok ? selector.requirements : [];
  const strange = selectorKeys(requirements).find((key) => !trustedKeys.includes(key));
  const mistrusted = `spec.namespaceSelector: uses the label "${strange}", which is not trusted; must use one of ${trustedKeys.join(', ')}`;
  const isSelecting = read?.namespaceSelector !== undefined && strange === undefined;
  return {
    namespace,
    name,
    secrets: secrets.map((one) => one.name),
    profiles: profiles.map((one) => one.name),
    to: { patterns, selectors: isSelecting ? [requirements] : [] },
    isWhole,
    problems: strange === undefined ? problems : [...problems, mistrusted],
  };
}

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
