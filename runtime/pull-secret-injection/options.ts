/** Cluster-wide options of injection and distribution. */

import { z } from 'zod';
import { dnsLabel, dnsName, type Frozen } from '../core/kubernetes/fields.ts';
import type { SectionProblem } from '../core/kubernetes/kind.ts';
import { DEFAULT_TRUSTED_KEYS } from './kinds/grant.ts';
import { type ProfileSecret, type ProfileSource, type ReadProfile, readProfile } from './kinds/profile.ts';
import { isExempt, type PlannedPod } from './plan/plan.ts';

/** Removals allowed without a confirmation. A change that exceeds both limits is held. */
const DEFAULT_REMOVALS = { share: 0.2, copies: 10 };

/** The section of this system in the reconciler's configuration file. */
export const optionsSchema = z.strictObject({
  /** Namespace of Pullwright's own pods, which are never injected. */
  ownNamespace: z.string().default('pullwright-system'),
  /** Further namespaces whose pods are skipped. */
  excludedNamespaces: z.array(z.string()).default([]),
  /** Restricts the system to these namespaces: Secrets, pods and ServiceAccounts elsewhere are not read. Empty: all. */
  namespaces: z.array(z.string()).default([]),
  /** With `namespaces`: the only Secret names read there, besides `sources`. Empty: any name. */
  secretNames: z.array(z.string()).default([]),
  /** With `secretNames`: further Secrets that are read, as `namespace/name`. */
  sources: z.array(z.string()).default([]),
  /** Component that mutates pods: the admission policy, the webhook, or none. Never both. */
  admission: z.enum(['policy', 'webhook', 'none']).default('policy'),
  /** Namespace label keys that grant selectors may use. */
  trustedLabelKeys: z.array(z.string()).readonly().default(DEFAULT_TRUSTED_KEYS),
  /** Reports pods that lack names of the plan. */
  audit: z.boolean().default(true),
  /** SidecarSets inject even if no matching set has a container. */
  withoutContainers: z.boolean().default(false),
  /** Copies of a profile that one change may remove without a confirmation. */
  removals: z
    .strictObject({
      /** Share of the profile's copies, between 0 and 1. */
      share: z.number().min(0).max(1).default(DEFAULT_REMOVALS.share),
      copies: z.int().min(0).default(DEFAULT_REMOVALS.copies),
    })
    .default(DEFAULT_REMOVALS),
});

export type InjectionOptions = Frozen<z.output<typeof optionsSchema>>;

export const DEFAULT_OPTIONS: InjectionOptions = optionsSchema.parse({});

/** Returns the namespaces whose pods are skipped, with our own. */
export function excludedNamespaces(options: InjectionOptions): readonly string[] {
  return [...new Set([options.ownNamespace, ...options.excludedNamespaces])].sort();
}

/** Reports whether `namespaces` is set and does not include the namespace. */
export function isOutside(name: string, { namespaces }: Pick<InjectionOptions, 'namespaces'>): boolean {
  return namespaces.length > 0 && !namespaces.includes(name);
}

/** Reports whether no profile applies to the pod. */
export function isSkipped(pod: PlannedPod, options: InjectionOptions): boolean {
  return isOutside(pod.namespace, options) || isExempt(pod, excludedNamespaces(options));
}

// The section `systems.pull-secret-injection` of a fleet, and its validation.

const certificates = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('service-ca').describe("Issued by OpenShift's service CA") }),
  z.strictObject({
    kind: z.literal('cert-manager').describe('Issued by cert-manager'),
    issuer: z
      .strictObject({
        kind: z.enum(['Issuer', 'ClusterIssuer']).describe('Its kind'),
        name: dnsName.describe('Its name'),
      })
      .describe('The issuer of cert-manager'),
  }),
  z.strictObject({
    kind: z.literal('manual').describe('Created manually'),
    caBundle: z.string().min(1).describe('CA certificates, PEM in Base64'),
  }),
]);

/** Schema of the section. */
export const schema = z.strictObject({
  admission: z
    .enum(['policy', 'webhook', 'none'])
    .exactOptional()
    .describe(
      'What injects names into pods: "policy" requires Kubernetes 1.36, "webhook" runs in the cluster',
    ),
  certificates: certificates.exactOptional().describe("Source of the webhook's certificate"),
  excludedNamespaces: z.array(dnsLabel).exactOptional().describe('Namespaces whose pods are ignored'),
  namespaces: z
    .array(dnsLabel)
    .min(1)
    .exactOptional()
    .describe(
      'The only namespaces that the system uses, sources included: access to Secrets and pods is a Role in each',
    ),
  trustedLabelKeys: z
    .array(z.string().min(1).max(317))
    .exactOptional()
    .describe('Namespace label keys that grants may select by; tenants must not be able to set them'),
  secretNames: z
    .array(dnsName)
    .min(1)
    .exactOptional()
    .describe(
      'The only names under which the reconciler may write copies. With namespaces, it may also read only these and the sources of profiles',
    ),
  audit: z.boolean().exactOptional().describe('Report pods with missing names'),
  withoutContainers: z
    .boolean()
    .exactOptional()
    .describe('SidecarSets inject even when no matching set has a container'),
  removals: z
    .strictObject({
      share: z.number().min(0).max(1).exactOptional().describe('Share of its copies; default 0.2'),
      copies: z.int().min(0).exactOptional().describe('Number of copies; default 10'),
    })
    .exactOptional()
    .describe(
      'Copies of a profile or SidecarSet that one change may remove unconfirmed; a removal above both limits is held',
    ),
  sidecarSetCrd: z
    .boolean()
    .exactOptional()
    .describe('Render the CRD of SidecarSet, for clusters without Kruise'),
  profiles: z
    .array(
      z.strictObject({
        name: dnsName.describe('Name of the profile'),
        spec: z.record(z.string(), z.unknown()).describe('Spec of the PullSecretProfile'),
      }),
    )
    .exactOptional()
    .describe('PullSecretProfiles of the cluster'),
});

/** The section as users write it. Every field is optional. */
export type PullSecretInjectionInput = Frozen<z.input<typeof schema>>;

/** A profile of the fleet: its name, and its spec as in the kind `PullSecretProfile`. */
type ProfileInput = NonNullable<PullSecretInjectionInput['profiles']>[number];

/** The issuer of the serving certificate, and of the CA bundle for the API server. */
export type CertificateSource = Frozen<z.input<typeof certificates>>;

/** Requires `certificates` for the webhook: the default, the service CA, issues certificates on OpenShift only. */
export function certificateProblems(section: PullSecretInjectionInput): readonly SectionProblem[] {
  if (section.admission !== 'webhook' || section.certificates !== undefined) return [];
  return [
    {
      path: ['certificates'],
      text: 'missing, expected {kind: service-ca} on OpenShift, elsewhere {kind: cert-manager, issuer: {kind, name}} or {kind: manual, caBundle}',
    },
  ];
}

/** Secrets with sources that a profile of the fleet distributes; none if the profile is invalid. */
function broughtBy(input: ProfileInput): readonly ProfileSecret[] {
  const read = readInput(input);
  if (!read.ok || !read.profile.distributes) return [];
  return read.profile.secrets.filter(({ sources }) => sources.length > 0);
}

function readInput({ name, spec }: ProfileInput): ReadProfile {
  return readProfile({ apiVersion: '', kind: '', metadata: { name }, spec });
}

/** All sources of a profile of the fleet. */
export function sourcesOf(input: ProfileInput): readonly ProfileSource[] {
  return broughtBy(input).flatMap(({ sources }) => sources);
}

/** Validates each profile, collisions between profiles, and the reconciler's rights (`secretNames`, `namespaces`). */
export function profileProblems(section: PullSecretInjectionInput): readonly SectionProblem[] {
  const { profiles = [], secretNames, namespaces } = section;
  return profiles.flatMap((input, index) => {
    const read = readInput(input);
    const homes = new Set(sourcesOf(input).map(({ namespace }) => namespace));
    const texts = [
      ...(read.ok ? [] : read.problems),
      ...broughtBy(input)
        .filter(({ name }) => secretNames?.includes(name) === false)
        .map(({ name }) => `delivers Secret "${name}", which is not in secretNames: add it there`),
      ...profiles.slice(0, index).flatMap((earlier) => nameConflicts(input, earlier)),
      ...[...homes]
        .filter((home) => namespaces?.includes(home) === false)
        .map((home) => `has a source in namespace "${home}", which is not in namespaces: add it there`),
    ];
    return texts.map((text) => ({ path: ['profiles', index], text }));
  });
}

/**
 * Reports two profiles that deliver different Secrets under one name to the same namespaces. Selectors overlap if the
 * requirements of one are a subset of the other's, as in the collision policy.
 */
function nameConflicts(later: ProfileInput, earlier: ProfileInput): readonly string[] {
  const [a, b] = [readInput(later), readInput(earlier)];
  if (!a.ok || !b.ok || a.profile.successor === earlier.name || b.profile.successor === later.name) return [];
  const [mine, theirs] = [a.profile.namespaceSelector, b.profile.namespaceSelector].map(
    (requirements) => new Set(requirements.map((one) => JSON.stringify(one))),
  );
  if (mine === undefined || theirs === undefined) return [];
  if (!mine.isSubsetOf(theirs) && !theirs.isSubsetOf(mine)) return [];
  const found = broughtBy(later).find(({ name, sources }) =>
    broughtBy(earlier).some(
      (other) => other.name === name && JSON.stringify(other.sources) !== JSON.stringify(sources),
    ),
  );
  if (found === undefined) return [];
  return [
    `delivers a different Secret "${found.name}" to the same namespaces as profile "${earlier.name}": use another name, or set spec.successor in one of them`,
  ];
}

/** Name of the folder, metric label and owner label, and suffix of the field manager. */
export const RECONCILER_NAME = 'pull-secret-injection';
