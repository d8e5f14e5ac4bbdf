/**
 * `PullSecretGrant` (pullwright.dev/v1alpha1, namespaced): the consent of a source Secret's owner, as a separate object in the
 * Secret's namespace. It outlives the Secret, so replacing the Secret does not withdraw consent.
 *
 * Source of the shape: `ReferenceGrant` of the Gateway API.
 */
import { z } from 'zod';
import { matchesGlob } from '../../core/docker-config/match-images.ts';
import {
  defineKind,
  labelSelectorSchema,
  namedList,
  OWN_GROUP,
  OWN_VERSION,
  statusSchema,
  withRules,
} from '../../core/kubernetes/kind.ts';
import {
  type Labels,
  NAMESPACE_NAME_LABEL,
  readSelector,
  selectorKeys,
  selects,
} from '../../core/kubernetes/label-selector.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { mustBe, noDuplicates } from '../../core/kubernetes/read-spec.ts';

/**
 * Namespace label keys that grant selectors may use by default. The API server sets the name label, so a tenant cannot gain
 * access by labelling its own namespace.
 */
export const DEFAULT_TRUSTED_KEYS: readonly string[] = [NAMESPACE_NAME_LABEL];

export const GRANT = { apiVersion: `${OWN_GROUP}/${OWN_VERSION}`, kind: 'PullSecretGrant' } as const;
/** Limited because the consent policy needs one authorizer check per Secret. */
export const MAX_GRANTED_SECRETS = 16;
/** Matches any profile in `spec.profiles`. */
export const ANY_PROFILE = '*';

/** A parsed grant. */
export type PullSecretGrant = Readonly<ReturnType<typeof readPullSecretGrant>>;

/** A profile's request to deliver a Secret to a namespace. */
export interface GrantRequest {
  readonly secret: string;
  readonly profile: string;
  readonly namespace: string;
  readonly labels: Labels;
}

/** Reports whether the grant covers the request. */
export function grantsTo(
  { profiles, secrets, patterns, selector }: PullSecretGrant,
  { secret, profile, namespace, labels }: GrantRequest,
): boolean {
  if (!secrets.includes(secret) || ![profile, ANY_PROFILE].some((name) => profiles.includes(name)))
    return false;
  const isNamed = patterns.some((pattern) => matchesGlob(pattern, namespace));
  // The API server sets the name label, so a different value in a manifest is ignored.
  return (
    isNamed || (selector !== undefined && selects(selector, { ...labels, [NAMESPACE_NAME_LABEL]: namespace }))
  );
}

function specSchema() {
  const named = (description: string) =>
    z.strictObject({ name: z.string().min(1).max(253).describe(description) });

  return withRules(
    z.strictObject({
      secrets: namedList(
        named('Name of a Secret in the namespace of the grant'),
        MAX_GRANTED_SECRETS,
      ).describe('Secrets that may be copied; they need not exist yet'),
      profiles: namedList(
        named('Name of a PullSecretProfile, sidecarset/NAME, or * for any of them'),
        64,
      ).describe('Profiles that may copy them'),
      namespaces: z
        .array(
          z
            .string()
            .min(1)
            .max(63)
            .regex(/^[a-z0-9*?-]+$/, mustBe('a namespace name or a pattern')),
        )
        .max(256)
        .superRefine(noDuplicates)
        .meta({ 'x-kubernetes-list-type': 'set' })
        .describe(
          'Target namespaces: names, or patterns with * and ?. Avoid patterns where users choose namespace names',
        )
        .optional(),
      namespaceSelector: labelSelectorSchema()
        .describe('Target namespaces by labels that the cluster operator trusts; {} selects all')
        .optional(),
    }),
    [
      {
        cel: 'has(self.namespaceSelector) || (has(self.namespaces) && size(self.namespaces) > 0)',
        message: 'namespaces or namespaceSelector is required',
        faults: ({ namespaces = [], namespaceSelector }) =>
          namespaces.length > 0 || namespaceSelector !== undefined ? [] : [['namespaces']],
      },
    ],
  );
}

const kind = defineKind({
  kind: GRANT.kind,
  shortName: 'pgrant',
  scope: 'Namespaced',
  description:
    'Consent of the owner of Secrets: which Secrets of its namespace may be copied, by which profiles, to which namespaces. It outlives the Secrets; deleting it removes the copies.',
  columns: [],
  spec: specSchema,
  status: statusSchema,
});

/** The CustomResourceDefinition of `PullSecretGrant`. */
export const pullSecretGrantCrd = kind.crd;

/** Reads a grant. Never throws: invalid parts grant nothing and are listed in `problems`. */
export function readPullSecretGrant(
  object: KubeObject,
  trustedKeys: readonly string[] = DEFAULT_TRUSTED_KEYS,
) {
  const { namespace = '', name } = object.metadata;
  const { spec: read, problems, isWhole } = kind.read(object);
  const { secrets = [], profiles = [], namespaces: patterns = [] } = read ?? {};
  const selector = readSelector(read?.namespaceSelector);
  const requirements = selector.ok ? selector.requirements : undefined;
  const strange = selectorKeys(requirements ?? []).find((key) => !trustedKeys.includes(key));
  const mistrusted = `spec.namespaceSelector: uses the label "${strange}", which is not trusted; must use one of ${trustedKeys.join(', ')}`;
  return {
    namespace,
    name,
    /** Names of Secrets in the grant's namespace. */
    secrets: secrets.map((one) => one.name),
    /** Names of profiles, `sidecarset/NAME`, or {@link ANY_PROFILE}. */
    profiles: profiles.map((one) => one.name),
    /** Target namespaces: names and globs. */
    patterns,
    /** Further target namespaces, by label; undefined: none. */
    selector: strange === undefined ? requirements : undefined,
    /** False if the API server dropped fields that kubectl applied: the owner's intent is then unknown. */
    isWhole,
    /** Invalid parts, which grant nothing. A schema violation voids the whole grant. */
    problems: strange === undefined ? problems : [...problems, mistrusted],
  };
}
