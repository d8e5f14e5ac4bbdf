/** What the section `systems.pull-secret-injection` of a fleet may hold, and what in it cannot be meant. */
import { z } from 'zod';
import { type ProfileSource, readProfile } from '../../runtime/rules/injection/profile.ts';
import { dnsLabel, dnsName } from '../shared/fields.ts';
import type { ClusterContext, SectionProblem } from '../shared/system.ts';
import { rivalries } from './rivals.ts';
import type { CertificateSource } from './webhook.ts';

/** A profile of the fleet: its name, and its spec as in the kind `PullSecretProfile`. */
export interface ProfileInput {
  readonly name: string;
  readonly spec: Readonly<Record<string, unknown>>;
}

/** The section, as it is written. Every field may be left out. */
export interface PullSecretInjectionInput {
  /** Who adds names to pods: the API server (Kubernetes 1.36 and newer), our webhook, or nobody. @default {'policy'} */
  readonly admission?: 'policy' | 'webhook' | 'none';
  /**
   * Where the webhook's certificate comes from. Wanted with `admission: webhook` in a stand-alone cluster, which may be no OpenShift.
   * @default in a hosted cluster {{ kind: 'service-ca' }}
   */
  readonly certificates?: CertificateSource;
  /** Namespaces whose pods are left alone. @default {[]} */
  readonly excludedNamespaces?: readonly string[];
  /**
   * The only namespaces that the system works in: Secrets are read, brought and taken from these alone, by a Role in each, and only their
   * pods get names. Every source has to lie in one of them. @default all, by a ClusterRole
   */
  readonly namespaces?: readonly string[];
  /** Namespace label keys that grants may select by. @default only the name */
  readonly trustedLabelKeys?: readonly string[];
  /**
   * Names under which copies may be written; narrows the reconciler's rights. With `namespaces` also what may be read, beside the sources
   * of `profiles`. @default any
   */
  readonly secretNames?: readonly string[];
  /** Report pods that lack names. @default {true} */
  readonly audit?: boolean;
  /** SidecarSets inject also where no matching set brings a container. @default {false} */
  readonly withoutContainers?: boolean;
  /** A SidecarSet that pins a revision which does not exist: it injects nothing, or its current names. @default {'skip'} */
  readonly missingRevision?: 'skip' | 'current';
  /** How many copies of a profile or SidecarSet one change may take away without a confirmation: it is held when it takes more than both. */
  readonly removals?: {
    /** @default {0.2} */
    readonly share?: number;
    /** @default {10} */
    readonly copies?: number;
  };
  /** Render the definition of SidecarSet, for clusters without Kruise. @default {false} */
  readonly sidecarSetCrd?: boolean;
  /** @default {[]} */
  readonly profiles?: readonly ProfileInput[];
}

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
export const schema: z.ZodType<PullSecretInjectionInput, PullSecretInjectionInput> = z.strictObject({
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
  missingRevision: z
    .enum(['skip', 'current'])
    .exactOptional()
    .describe('A SidecarSet that pins a revision which does not exist injects nothing, or its current names'),
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

/** What is wrong with a section that has the right shape. */
export function sectionProblems(
  config: PullSecretInjectionInput,
  { kind }: Pick<ClusterContext, 'kind'>,
): readonly SectionProblem[] {
  return [
    ...(config.profiles ?? []).flatMap(profileProblems),
    ...contradictions(config),
    ...(kind === 'standalone' ? certificateProblems(config) : []),
  ];
}

/** Service CA is OpenShift's. In any other cluster nobody would make the certificate, and the webhook would never start. */
function certificateProblems({
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

/** Options that cannot both be meant. */
function contradictions(config: PullSecretInjectionInput): readonly SectionProblem[] {
  const { secretNames, profiles = [] } = config;
  const written = profiles.flatMap((profile, index) => {
    const read = readProfile({
      apiVersion: '',
      kind: '',
      metadata: { name: profile.name },
      spec: profile.spec,
    });
    const secrets = read.ok && read.profile.distributes ? read.profile.secrets : [];
    return secrets.flatMap(({ name, sources }) => (sources.length > 0 ? [{ name, index }] : []));
  });
  const unnamed = written.filter(({ name }) => secretNames !== undefined && !secretNames.includes(name));
  return [
    ...unnamed.map(({ name, index }) => ({
      path: ['profiles', index],
      text: `brings Secret "${name}", which secretNames does not let the reconciler write: add it there`,
    })),
    ...rivalries(profiles).map(({ index, other, secret }) => ({
      path: ['profiles', index],
      text: `brings another Secret "${secret}" than profile "${other}" to the same namespaces, which the API server refuses: use another name, or say in one of them that the other is its successor`,
    })),
    ...outsideSources(config),
  ];
}

/** Sources of the fleet's own profiles that the rights of the same fleet do not reach. */
function outsideSources({ profiles = [], namespaces }: PullSecretInjectionInput): readonly SectionProblem[] {
  if (namespaces === undefined) return [];
  return profiles.flatMap(({ name, spec }, index) =>
    [...new Set(sourcesOf({ name, spec }).map((source) => source.namespace))]
      .filter((namespace) => !namespaces.includes(namespace))
      .map((namespace) => ({
        path: ['profiles', index],
        text: `has a source in namespace "${namespace}", which namespaces does not name: add it there`,
      })),
  );
}

/** What a profile of the fleet brings Secrets from. */
export function sourcesOf({ name, spec }: ProfileInput): readonly ProfileSource[] {
  const read = readProfile({ apiVersion: '', kind: '', metadata: { name }, spec });
  return read.ok && read.profile.distributes ? read.profile.secrets.flatMap(({ sources }) => sources) : [];
}

function profileProblems({ name, spec }: ProfileInput, index: number): readonly SectionProblem[] {
  const read = readProfile({ apiVersion: '', kind: '', metadata: { name }, spec });
  return read.ok ? [] : read.problems.map((text) => ({ path: ['profiles', index], text }));
}
