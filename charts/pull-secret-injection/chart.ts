/** The section `systems.pull-secret-injection` of a fleet, and the construct for charts of one's own. */
import type { Construct } from 'constructs';
import { z } from 'zod';
import { readProfile } from '../../runtime/rules/injection/profile.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { dnsLabel, dnsName } from '../shared/fields.ts';
import { namespace, OWN_NAMESPACE } from '../shared/metadata.ts';
import { ObjectGroup } from '../shared/object-group.ts';
import { RECONCILER } from '../shared/reconciler.ts';
import type { ChartSystem, ClusterContext, ReconcilerPart, SectionProblem } from '../shared/system.ts';
import { injectionAccess } from './access.ts';
import { PULL_SECRET_INJECTION_ALERTS } from './alerts.ts';
import { pullSecretProfileCrd } from './crd.ts';
import { pullSecretGrantCrd } from './grant-crd.ts';
import { type CertificateSource, injectionObjects } from './objects.ts';
import { sidecarSetCrd } from './sidecar-set-crd.ts';

/** A profile of the fleet: its name, and its spec as in the kind `PullSecretProfile`. */
export interface ProfileInput {
  readonly name: string;
  readonly spec: Readonly<Record<string, unknown>>;
}

/** The section, as it is written. Every field may be left out. */
export interface PullSecretInjectionInput {
  /** Who adds names to pods: the API server (Kubernetes 1.36 and newer), our webhook, or nobody. @default {'policy'} */
  readonly admission?: 'policy' | 'webhook' | 'none';
  /** Where the webhook's certificate comes from. @default {{ kind: 'service-ca' }} */
  readonly certificates?: CertificateSource;
  /** Namespaces whose pods are left alone. @default {[]} */
  readonly excludedNamespaces?: readonly string[];
  /** Namespace label keys that grants may select by. @default only the name */
  readonly trustedLabelKeys?: readonly string[];
  /** Names under which copies may be written; narrows the reconciler's rights. @default any */
  readonly secretNames?: readonly string[];
  /** Report pods that lack names. @default {true} */
  readonly audit?: boolean;
  /** Evict pods that cannot pull, for profiles with `repair: Evict`. @default {false} */
  readonly evict?: boolean;
  /** SidecarSets inject also where no matching set brings a container. @default {false} */
  readonly withoutContainers?: boolean;
  /** A SidecarSet that pins a revision which does not exist: it injects nothing, or its current names. @default {'skip'} */
  readonly missingRevision?: 'skip' | 'current';
  /** Render the definition of SidecarSet, for clusters without Kruise. @default {false} */
  readonly sidecarSetCrd?: boolean;
  /** @default {[]} */
  readonly profiles?: readonly ProfileInput[];
}

const certificates = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('service-ca') }),
  z.strictObject({
    kind: z.literal('cert-manager'),
    issuer: z.strictObject({ kind: z.enum(['Issuer', 'ClusterIssuer']), name: dnsName() }),
  }),
  z.strictObject({ kind: z.literal('manual'), caBundle: z.string().min(1) }),
]);

export const schema: z.ZodType<PullSecretInjectionInput, PullSecretInjectionInput> = z.strictObject({
  admission: z
    .enum(['policy', 'webhook', 'none'])
    .exactOptional()
    .describe('Who adds names to pods: "policy" needs Kubernetes 1.36, "webhook" runs in the cluster'),
  certificates: certificates.exactOptional().describe("Where the webhook's certificate comes from"),
  excludedNamespaces: z.array(dnsLabel()).exactOptional().describe('Namespaces whose pods are left alone'),
  trustedLabelKeys: z
    .array(z.string().min(1).max(317))
    .exactOptional()
    .describe('Namespace label keys that grants may select by; tenants must not be able to set them'),
  secretNames: z
    .array(dnsName())
    .min(1)
    .exactOptional()
    .describe("Names under which copies may be written; narrows the reconciler's rights"),
  audit: z.boolean().exactOptional().describe('Report pods that lack names'),
  evict: z
    .boolean()
    .exactOptional()
    .describe('Evict pods that cannot pull, for profiles with repair "Evict"'),
  withoutContainers: z
    .boolean()
    .exactOptional()
    .describe('SidecarSets inject also where no matching set brings a container'),
  missingRevision: z
    .enum(['skip', 'current'])
    .exactOptional()
    .describe('A SidecarSet that pins a revision which does not exist injects nothing, or its current names'),
  sidecarSetCrd: z
    .boolean()
    .exactOptional()
    .describe('Render the definition of SidecarSet, for clusters without Kruise'),
  profiles: z
    .array(z.strictObject({ name: dnsName(), spec: z.record(z.string(), z.unknown()) }))
    .exactOptional()
    .describe('PullSecretProfiles of the cluster'),
});

export const pullSecretInjectionSystem: ChartSystem<PullSecretInjectionInput, PullSecretInjectionInput> = {
  name: 'pull-secret-injection',
  summary: 'Adds pull secrets to pods at admission, and brings the Secrets to the namespaces that need them',
  config: schema,
  kinds: ['standalone', 'hosted'],
  check: (config) => [...(config.profiles ?? []).flatMap(profileProblems), ...contradictions(config)],
  objects: (config, cluster) => [
    // Elsewhere the reconciler's objects bring the namespace.
    ...(cluster.kind === 'hosted' && config.admission === 'webhook'
      ? [namespace(cluster.namespace, { podSecurity: 'restricted' })]
      : []),
    ...pullSecretInjectionObjects(config, { ...cluster, account: accountOf(cluster) }),
  ],
  shared: sharedOptions,
  reconciler: (config, cluster) =>
    cluster.kind === 'standalone' ? part(config, cluster.namespace) : undefined,
  managementReconciler(management, hosted) {
    const [first] = hosted;
    // The writes go to the hosted clusters, whose kubeconfigs carry their own rights.
    if (first === undefined) return undefined;
    const own = hosted.map(({ cluster }) => cluster.namespace);
    return { ...part(first.config, management.namespace, own), access: [] };
  },
};

/** Options that cannot both be meant. */
function contradictions(config: PullSecretInjectionInput): readonly SectionProblem[] {
  const { secretNames, profiles = [], evict = false, audit = true } = config;
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
    ...(evict && !audit
      ? [
          {
            path: ['evict'],
            text: 'needs audit, which finds the pods: set audit to true, or leave evict out',
          },
        ]
      : []),
  ];
}

function profileProblems({ name, spec }: ProfileInput, index: number): readonly SectionProblem[] {
  const read = readProfile({ apiVersion: '', kind: '', metadata: { name }, spec });
  return read.ok ? [] : read.problems.map((text) => ({ path: ['profiles', index], text }));
}

/** In a hosted cluster, an administrator's kubeconfig: a policy that names system:admin would bind people as well. */
function accountOf({ kind, namespace: own, account }: ClusterContext): Account | undefined {
  return kind === 'hosted' ? account : { namespace: own, name: RECONCILER };
}

type Account = NonNullable<ClusterContext['account']>;

function sharedOptions(config: PullSecretInjectionInput): Readonly<Record<string, unknown>> {
  const { admission = 'policy', audit = true, evict = false } = config;
  const { excludedNamespaces = [], trustedLabelKeys, withoutContainers, missingRevision } = config;
  return {
    admission,
    audit,
    evict,
    excludedNamespaces,
    trustedLabelKeys,
    withoutContainers,
    missingRevision,
  };
}

/** @param alsoOwn namespaces of our pods in hosted clusters, where they differ from `ownNamespace` */
function part(
  config: PullSecretInjectionInput,
  ownNamespace: string,
  alsoOwn: readonly string[] = [],
): ReconcilerPart {
  const { admission = 'policy', audit = true, evict = false } = config;
  const { trustedLabelKeys, secretNames } = config;
  const more = [...(config.excludedNamespaces ?? []), ...alsoOwn].filter((one) => one !== ownNamespace);
  const excludedNamespaces =
    config.excludedNamespaces === undefined && more.length === 0 ? undefined : [...new Set(more)];
  return {
    name: 'pull-secret-injection',
    options: {
      ownNamespace,
      admission,
      audit,
      evict,
      ...(excludedNamespaces === undefined ? {} : { excludedNamespaces }),
      ...(trustedLabelKeys === undefined ? {} : { trustedLabelKeys }),
      ...sidecarSetOptions(config),
    },
    access: [
      {
        rules: injectionAccess({
          admission,
          audit,
          evict,
          ...(secretNames === undefined ? {} : { secretNames }),
        }),
      },
    ],
    alerts: PULL_SECRET_INJECTION_ALERTS,
  };
}

function sidecarSetOptions({
  withoutContainers,
  missingRevision,
}: PullSecretInjectionInput): Readonly<Record<string, unknown>> {
  return {
    ...(withoutContainers === undefined ? {} : { withoutContainers }),
    ...(missingRevision === undefined ? {} : { missingRevision }),
  };
}

/** Namespaces in which other systems of ours write Secrets with the same account. */
const GUARD_EXEMPT = ['kube-system', 'openshift-config'];

function pullSecretInjectionObjects(
  config: PullSecretInjectionInput,
  cluster: { readonly namespace: string; readonly image: string; readonly account: Account | undefined },
): readonly KubeObject[] {
  return [
    pullSecretProfileCrd(),
    pullSecretGrantCrd(),
    ...(config.sidecarSetCrd === true ? [sidecarSetCrd()] : []),
    ...injectionObjects({
      namespace: cluster.namespace,
      image: cluster.image,
      admission: config.admission ?? 'policy',
      certificates: config.certificates ?? { kind: 'service-ca' },
      excludedNamespaces: config.excludedNamespaces ?? [],
      ...(cluster.account === undefined ? {} : { account: cluster.account }),
      evict: config.evict ?? false,
      withoutContainers: config.withoutContainers ?? false,
      missingRevision: config.missingRevision ?? 'skip',
      guardExempt: [...GUARD_EXEMPT, cluster.namespace],
      profiles: config.profiles ?? [],
    }),
  ];
}

/** Properties of {@link PullSecretInjection}. */
export interface PullSecretInjectionProps extends PullSecretInjectionInput {
  /** Image of the webhook. */
  readonly image: string;
  /** Namespace of our own pods. @default {'pullwright-system'} */
  readonly namespace?: string;
}

/**
 * Definitions, consent and guard policies, profiles, and the webhook where it is asked for. The reconciler is a construct of
 * its own.
 *
 * @example
 * ```ts
 * import { PullSecretInjection } from './chart.ts';
 * import { Testing } from 'cdk8s';
 * import assert from 'node:assert/strict';
 *
 * const chart = Testing.chart();
 * new PullSecretInjection(chart, 'injection', {
 *   image: 'registry.example.com/pullwright:0.1.0',
 *   profiles: [{ name: 'team', spec: { namespaceSelector: {}, selector: {}, secrets: [{ name: 'team-registry' }] } }],
 * });
 * const kinds = new Set(Testing.synth(chart).map((object) => object.kind));
 * assert.ok(kinds.has('PullSecretProfile') && !kinds.has('Deployment'));
 * ```
 */
export class PullSecretInjection extends ObjectGroup {
  constructor(scope: Construct, id: string, props: PullSecretInjectionProps) {
    const { image, namespace: own = OWN_NAMESPACE, ...config } = props;
    const account = { namespace: own, name: RECONCILER };
    super(scope, id, pullSecretInjectionObjects(config, { image, namespace: own, account }));
  }
}
