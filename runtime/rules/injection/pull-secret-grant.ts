/**
 * `PullSecretGrant` (pullwright.dev/v1alpha1, namespaced): the consent of the owner of a source Secret, as an object of its own in
 * the namespace of the Secret. It outlives the Secret, so that replacing the Secret takes nothing away.
 *
 * Source of the shape: `ReferenceGrant` of the Gateway API.
 */
import type { Labels } from '../kubernetes/label-selector.ts';
import { selectorKeys } from '../kubernetes/label-selector.ts';
import type { KubeObject } from '../kubernetes/object.ts';
import { SELECTOR_SHAPE, type Shape } from '../kubernetes/shape.ts';
import { droppedFieldProblems, ownObjectProblems, readOwnSelector, repeated, tooMany } from './own-kind.ts';
import { DEFAULT_TRUSTED_KEYS, type Grant, grants } from './profile-grant.ts';

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
 *
 * @example
 * ```ts
 * import { grantsTo, readPullSecretGrant } from './pull-secret-grant.ts';
 * import assert from 'node:assert/strict';
 *
 * const grant = readPullSecretGrant({
 *   apiVersion: 'pullwright.dev/v1alpha1', kind: 'PullSecretGrant', metadata: { namespace: 'platform', name: 'teams' },
 *   spec: { secrets: [{ name: 'quay' }], profiles: [{ name: 'team' }], namespaces: ['team-a'] },
 * });
 * assert.equal(grantsTo(grant, { secret: 'quay', profile: 'team', namespace: 'team-a', labels: {} }), true);
 * assert.equal(grantsTo(grant, { secret: 'quay', profile: 'other', namespace: 'team-a', labels: {} }), false);
 * ```
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
  const names = { patterns, selectors: [], mistrusted: [], problems };
  if (namespaceSelector === undefined || namespaceSelector === null) return names;
  const read = readOwnSelector(namespaceSelector, 'spec.namespaceSelector');
  if (read.problems.length > 0) return { ...names, problems: [...problems, ...read.problems] };
  const strange = selectorKeys(read.requirements).find((key) => !trustedKeys.includes(key));
  if (strange === undefined) return { ...names, selectors: [read.requirements] };
  const text = `spec.namespaceSelector: uses the label "${strange}", which is not trusted; must use one of ${trustedKeys.join(', ')}`;
  return { ...names, mistrusted: [read.requirements], problems: [...problems, text] };
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
