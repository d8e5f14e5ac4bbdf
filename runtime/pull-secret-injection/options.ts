/** What the operator of a cluster decides about injection and distribution. */

import { z } from 'zod';
import { dnsLabel, dnsName, type Frozen } from '../core/kubernetes/fields.ts';
import type { SectionProblem } from '../core/kubernetes/kind.ts';
import { DEFAULT_TRUSTED_KEYS } from './kinds/grant.ts';
import { type ProfileSecret, type ProfileSource, type ReadProfile, readProfile } from './kinds/profile.ts';
import { type Exemption, exemption, type PlannedPod } from './plan/plan.ts';

/** How much may go without a confirmation. A change is held when it removes more than both. */
const DEFAULT_REMOVALS = { share: 0.2, copies: 10 };

/** Of the configuration file. */
export const optionsSchema = z.strictObject({
  /** Namespace of our own pods: never injected into. */
  ownNamespace: z.string().default('pullwright-system'),
  /** Further namespaces whose pods are left alone. */
  excludedNamespaces: z.array(z.string()).default([]),
  /** The only namespaces that this system works in: Secrets, pods and ServiceAccounts of others are not read. Empty: in all. */
  namespaces: z.array(z.string()).default([]),
  /** With `namespaces`: the only names of Secrets that are read there, beside `sources`. Empty: whatever the name. */
  secretNames: z.array(z.string()).default([]),
  /** With `secretNames`: Secrets that are read besides, `namespace/name`. */
  sources: z.array(z.string()).default([]),
  /** What changes pods: the API server by our policy, our webhook, or nothing. Never two of them. */
  admission: z.enum(['policy', 'webhook', 'none']).default('policy'),
  /** Namespace label keys that grants may select by. */
  trustedLabelKeys: z.array(z.string()).readonly().default(DEFAULT_TRUSTED_KEYS),
  /** Look at pods, and report those that lack names. */
  audit: z.boolean().default(true),
  /** SidecarSets inject even where no matching set brings a container. */
  withoutContainers: z.boolean().default(false),
  /** How many copies of a profile one change may take away without a confirmation. */
  removals: z
    .strictObject({
      /** Of the copies of a profile, between 0 and 1. */
      share: z.number().min(0).max(1).default(DEFAULT_REMOVALS.share),
      copies: z.int().min(0).default(DEFAULT_REMOVALS.copies),
    })
    .default(DEFAULT_REMOVALS),
});

export type InjectionOptions = Frozen<z.output<typeof optionsSchema>>;

export const DEFAULT_OPTIONS: InjectionOptions = optionsSchema.parse({});

/** Every namespace whose pods are left alone. */
export function excludedNamespaces(options: InjectionOptions): readonly string[] {
  return [...new Set([options.ownNamespace, ...options.excludedNamespaces])].sort();
}

/** Whether this system leaves the namespace alone because others are named. */
export function isOutside(name: string, { namespaces }: Pick<InjectionOptions, 'namespaces'>): boolean {
  return namespaces.length > 0 && !namespaces.includes(name);
}

/** Why no profile applies to a pod. */
export function exemptionOf(pod: PlannedPod, options: InjectionOptions): Exemption | undefined {
  return isOutside(pod.namespace, options)
    ? 'excluded-namespace'
    : exemption(pod, excludedNamespaces(options));
}

// What the section `systems.pull-secret-injection` of a fleet may hold, and what in it cannot be meant.

const certificates = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('service-ca').describe("OpenShift's service CA makes it") }),
  z.strictObject({
    kind: z.literal('cert-manager').describe('cert-manager makes it'),
    issuer: z
      .strictObject({
        kind: z.enum(['Issuer', 'ClusterIssuer']).describe('Its kind'),
        name: dnsName().describe('Its name'),
      })
      .describe('The issuer of cert-manager'),
  }),
  z.strictObject({
    kind: z.literal('manual').describe('A person makes it'),
    caBundle: z.string().min(1).describe('Certificates of the authority, PEM in Base64'),
  }),
]);

/** Its shape. */
export const schema = z.strictObject({
  admission: z
    .enum(['policy', 'webhook', 'none'])
    .exactOptional()
    .describe('Who adds names to pods: "policy" needs Kubernetes 1.36, "webhook" runs in the cluster'),
  certificates: certificates.exactOptional().describe("Where the webhook's certificate comes from"),
  excludedNamespaces: z.array(dnsLabel()).exactOptional().describe('Namespaces whose pods are left alone'),
  namespaces: z
    .array(dnsLabel())
    .min(1)
    .exactOptional()
    .describe(
      'The only namespaces that the system works in, sources included: rights to Secrets and pods are a Role in each of them',
    ),
  trustedLabelKeys: z
    .array(z.string().min(1).max(317))
    .exactOptional()
    .describe('Namespace label keys that grants may select by; tenants must not be able to set them'),
  secretNames: z
    .array(dnsName())
    .min(1)
    .exactOptional()
    .describe(
      "Names under which copies may be written; narrows the reconciler's rights. With namespaces also what it may read, beside the sources of profiles",
    ),
  audit: z.boolean().exactOptional().describe('Report pods that lack names'),
  withoutContainers: z
    .boolean()
    .exactOptional()
    .describe('SidecarSets inject also where no matching set brings a container'),
  removals: z
    .strictObject({
      share: z.number().min(0).max(1).exactOptional().describe('Share of its copies; default 0.2'),
      copies: z.int().min(0).exactOptional().describe('Number of copies; default 10'),
    })
    .exactOptional()
    .describe(
      'What one change may take of the copies of a profile or SidecarSet without a confirmation; more than both is held',
    ),
  sidecarSetCrd: z
    .boolean()
    .exactOptional()
    .describe('Render the definition of SidecarSet, for clusters without Kruise'),
  profiles: z
    .array(
      z.strictObject({
        name: dnsName().describe('Name of the profile'),
        spec: z.record(z.string(), z.unknown()).describe('As in the kind PullSecretProfile'),
      }),
    )
    .exactOptional()
    .describe('PullSecretProfiles of the cluster'),
});

/** The section, as it is written. Every field is optional. */
export type PullSecretInjectionInput = Frozen<z.input<typeof schema>>;

/** A profile of the fleet: its name, and its spec as in the kind `PullSecretProfile`. */
type ProfileInput = NonNullable<PullSecretInjectionInput['profiles']>[number];

/** Who makes the serving certificate and tells the API server whom to trust. */
export type CertificateSource = Frozen<z.input<typeof certificates>>;

/** Service CA is OpenShift's. In any other cluster the certificate would never be issued, and the webhook would not start. */
export function certificateProblems({
  admission,
  certificates: source,
}: PullSecretInjectionInput): readonly SectionProblem[] {
  if (admission !== 'webhook' || source !== undefined) return [];
  return [
    {
      path: ['certificates'],
      text: 'missing, expected {kind: service-ca} on OpenShift, elsewhere {kind: cert-manager, issuer: {kind, name}} or {kind: manual, caBundle}',
    },
  ];
}

/** The Secrets that a profile of the fleet brings, each with sources; none of an invalid one. */
function broughtBy(input: ProfileInput): readonly ProfileSecret[] {
  const read = readInput(input);
  if (!read.ok || !read.profile.distributes) return [];
  return read.profile.secrets.filter(({ sources }) => sources.length > 0);
}

function readInput({ name, spec }: ProfileInput): ReadProfile {
  return readProfile({ apiVersion: '', kind: '', metadata: { name }, spec });
}

/** What a profile of the fleet brings Secrets from. */
export function sourcesOf(input: ProfileInput): readonly ProfileSource[] {
  return broughtBy(input).flatMap(({ sources }) => sources);
}

/** What is wrong with the profiles, by themselves, with each other, and with what the fleet lets the reconciler do. */
export function profileProblems({
  profiles = [],
  secretNames,
  namespaces,
}: PullSecretInjectionInput): readonly SectionProblem[] {
  return profiles.flatMap((input, index) => {
    const read = readInput(input);
    const homes = new Set(sourcesOf(input).map(({ namespace }) => namespace));
    const texts = [
      ...(read.ok ? [] : read.problems),
      ...broughtBy(input)
        .filter(({ name }) => secretNames?.includes(name) === false)
        .map(
          ({ name }) =>
            `brings Secret "${name}", which secretNames does not let the reconciler write: add it there`,
        ),
      ...profiles.slice(0, index).flatMap((earlier) => rivalry(input, earlier)),
      ...[...homes]
        .filter((home) => namespaces?.includes(home) === false)
        .map((home) => `has a source in namespace "${home}", which namespaces does not name: add it there`),
    ];
    return texts.map((text) => ({ path: ['profiles', index], text }));
  });
}

/**
 * Two profiles that deliver different Secrets under one name to the same namespaces. Whether their selectors overlap is decided as the
 * admission policy of collisions decides it: when one requires no more than the other.
 */
function rivalry(later: ProfileInput, earlier: ProfileInput): readonly string[] {
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
    `brings another Secret "${found.name}" than profile "${earlier.name}" to the same namespaces, which collide: use another name, or say in one of them that the other is its successor`,
  ];
}

/** Folder, field manager, metric label and owner label. */
export const RECONCILER_NAME = 'pull-secret-injection';
