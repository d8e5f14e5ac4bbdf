/** The section `systems.pull-secret-injection` of a fleet, and the construct for charts of one's own. */
import type { Construct } from 'constructs';
import { GLOBAL_PULL_SECRET } from '../../runtime/core/kubernetes/hypershift.ts';
import type { SectionProblem } from '../../runtime/core/kubernetes/kind.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { type NetworkSettings, namespace, OWN_NAMESPACE } from '../../runtime/core/kubernetes/objects.ts';
import { pullSecretGrantCrd } from '../../runtime/pull-secret-injection/kinds/grant.ts';
import { pullSecretProfileCrd, readProfile } from '../../runtime/pull-secret-injection/kinds/profile.ts';
import { sidecarSetCrd } from '../../runtime/pull-secret-injection/kinds/sidecar-set.ts';
import {
  certificateProblems,
  type ProfileInput,
  type PullSecretInjectionInput,
  profileProblems,
  rivalries,
  schema,
  sourcesOf,
} from '../../runtime/pull-secret-injection/options.ts';
import { ObjectGroup } from '../shared/group.ts';
import { RECONCILER } from '../shared/reconciler.ts';
import type { ChartSystem, ClusterContext, ReconcilerPart } from '../shared/system.ts';
import { injectionAccess } from './access.ts';
import { PULL_SECRET_INJECTION_ALERTS } from './alerts.ts';
import { injectionObjects } from './objects.ts';

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

export const pullSecretInjectionSystem: ChartSystem<PullSecretInjectionInput, PullSecretInjectionInput> = {
  name: 'pull-secret-injection',
  summary: 'Adds pull secrets to pods at admission, and brings the Secrets to the namespaces that need them',
  config: schema,
  kinds: ['standalone', 'hosted'],
  check: sectionProblems,
  objects: (config, cluster) => [
    // Elsewhere the reconciler's objects bring the namespace.
    ...(cluster.kind === 'hosted' && config.admission === 'webhook'
      ? [namespace(cluster.namespace, { podSecurity: 'restricted' })]
      : []),
    ...pullSecretInjectionObjects(config, { ...cluster, account: accountOf(cluster) }),
  ],
  shared: sharedOptions,
  hostedAccess: (config, cluster) => part(config, cluster).access,
  reconciler: (config, cluster) => (cluster.kind === 'standalone' ? part(config, cluster) : undefined),
  managementReconciler(management, hosted) {
    const [first] = hosted;
    // The writes go to the hosted clusters, whose kubeconfigs carry their own rights.
    if (first === undefined) return undefined;
    const own = hosted.map(({ cluster }) => cluster.namespace);
    const profiles = hosted.flatMap(({ config }) => config.profiles ?? []);
    return { ...part({ ...first.config, profiles }, management, own), access: [] };
  },
};

/** In a hosted cluster, an administrator's kubeconfig: a policy that names system:admin would bind people as well. */
function accountOf({ kind, namespace: own, account }: ClusterContext): Account | undefined {
  return kind === 'hosted' ? account : { namespace: own, name: RECONCILER };
}

type Account = NonNullable<ClusterContext['account']>;

function sharedOptions(config: PullSecretInjectionInput): Readonly<Record<string, unknown>> {
  const { namespaces, admission = 'policy', audit = true, excludedNamespaces = [] } = config;
  // Without namespaces they only narrow the rights in that one cluster.
  const secretNames = namespaces === undefined ? undefined : config.secretNames;
  return { namespaces, secretNames, admission, audit, excludedNamespaces, ...optional(config) };
}

/** @param alsoOwn namespaces of our pods in hosted clusters, where they differ from those of `cluster` */
function part(
  config: PullSecretInjectionInput,
  cluster: ClusterContext,
  alsoOwn: readonly string[] = [],
): ReconcilerPart {
  const { namespace: ownNamespace } = cluster;
  const { admission = 'policy', audit = true } = config;
  const more = [...(config.excludedNamespaces ?? []), ...alsoOwn].filter((one) => one !== ownNamespace);
  const excludedNamespaces =
    config.excludedNamespaces === undefined && more.length === 0 ? undefined : [...new Set(more)];
  return {
    name: 'pull-secret-injection',
    options: {
      ownNamespace,
      admission,
      audit,
      ...(excludedNamespaces === undefined ? {} : { excludedNamespaces }),
      ...placesOf(config),
      ...optional(config),
    },
    access: injectionAccess({
      ...config,
      admission,
      audit,
      sources: sourcesIn(config),
    }),
    alerts: PULL_SECRET_INJECTION_ALERTS,
  };
}

/** What is read, where the fleet says it. */
function placesOf({
  namespaces,
  secretNames,
  profiles,
}: PullSecretInjectionInput): Readonly<Record<string, unknown>> {
  if (namespaces === undefined) return {};
  if (secretNames === undefined) return { namespaces };
  const sources = sourcesIn({ profiles }).map(({ namespace, name }) => `${namespace}/${name}`);
  return { namespaces, secretNames, sources: [...new Set(sources)].sort() };
}

function sourcesIn({
  profiles = [],
}: {
  readonly profiles?: readonly ProfileInput[] | undefined;
}): ReturnType<typeof sourcesOf> {
  return profiles.flatMap(sourcesOf);
}

/** What the fleet leaves out is the reconciler's to choose. */
function optional(config: PullSecretInjectionInput): Readonly<Record<string, unknown>> {
  const { trustedLabelKeys, removals, withoutContainers } = config;
  const given = Object.entries({ trustedLabelKeys, removals, withoutContainers });
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

/** Secrets that another system of ours writes with the same account. */
const GUARD_NAMED = {
  [GLOBAL_PULL_SECRET.namespace]: [GLOBAL_PULL_SECRET.original, GLOBAL_PULL_SECRET.global],
};

function pullSecretInjectionObjects(
  config: PullSecretInjectionInput,
  cluster: {
    readonly namespace: string;
    readonly image: string;
    readonly account: Account | undefined;
    readonly network?: NetworkSettings;
  },
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
      onlyNamespaces: config.namespaces,
      ...(cluster.account === undefined ? {} : { account: cluster.account }),
      withoutContainers: config.withoutContainers ?? false,
      guardNamed: GUARD_NAMED,
      ...(cluster.network === undefined ? {} : { network: cluster.network }),
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
