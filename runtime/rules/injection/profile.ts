/**
 * `PullSecretProfile` (pullwright.dev/v1alpha1, cluster-scoped): which pods get which pull secrets, and where the secrets
 * come from. Read from raw JSON; what the CRD's schema would refuse is refused here too, because profiles are also read
 * from folders, where no API server has looked at them.
 */

import type { LabelRequirement } from '../kubernetes/label-selector.ts';
import type { KubeObject } from '../kubernetes/object.ts';
import { isNamespaceName, isObjectName } from '../kubernetes/object-names.ts';
import { SELECTOR_SHAPE, type Shape } from '../kubernetes/shape.ts';
import { recordOf } from '../record.ts';
import { droppedFieldProblems, ownObjectProblems, readOwnSelector, repeated, tooMany } from './own-kind.ts';
import { COPIES_SHAPE, type ProfileCopies, readCopies } from './profile-copies.ts';

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
 *
 * @example
 * ```ts
 * import { readProfile } from './profile.ts';
 * import assert from 'node:assert/strict';
 *
 * const object = { apiVersion: 'pullwright.dev/v1alpha1', kind: 'PullSecretProfile', metadata: { name: 'team' } };
 * const good = readProfile({ ...object, spec: { namespaceSelector: {}, selector: {}, secrets: [{ name: 'team-registry' }] } });
 * assert.ok(good.ok && good.profile.injects);
 * const bad = readProfile({ ...object, spec: { namespaceSelector: {}, selector: {}, secrets: [{ name: 'No_Name' }] } });
 * assert.deepEqual(bad, { ok: false, problems: ['spec.secrets[0].name: "No_Name" is not the name of a Secret'] });
 * ```
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
