/** The section `systems.pull-secret-injection` of a fleet, and the construct for other charts. */
import type { Construct } from 'constructs';
import { GLOBAL_PULL_SECRET } from '../../runtime/core/kubernetes/hypershift.ts';
import type { SectionProblem } from '../../runtime/core/kubernetes/kind.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { labels, namespace, OWN_NAMESPACE } from '../../runtime/core/kubernetes/objects.ts';
import { defined } from '../../runtime/core/record.ts';
import { pullSecretGrantCrd } from '../../runtime/pull-secret-injection/kinds/grant.ts';
import { PROFILE, pullSecretProfileCrd } from '../../runtime/pull-secret-injection/kinds/profile.ts';
import { sidecarSetCrd } from '../../runtime/pull-secret-injection/kinds/sidecar-set.ts';
import {
  certificateProblems,
  type PullSecretInjectionInput,
  profileProblems,
  schema,
  sourcesOf,
} from '../../runtime/pull-secret-injection/options.ts';
import { ObjectGroup } from '../shared/group.ts';
import type { Alert } from '../shared/monitoring.ts';
import { RECONCILER } from '../shared/reconciler.ts';
import type { ChartSystem, ClusterContext, SystemPart } from '../shared/system.ts';
import { aggregatedRoles, injectionAccess } from './access.ts';
import {
  collisionPolicy,
  consentPolicy,
  dryRunPolicy,
  grantConsentPolicy,
  guardPolicy,
  sidecarSetConsentPolicy,
} from './consent.ts';
import { webhookObjects } from './webhook.ts';

/** Validates a section beyond its schema. */
export function sectionProblems(
  config: PullSecretInjectionInput,
  { kind }: Pick<ClusterContext, 'kind'>,
): readonly SectionProblem[] {
  return [...profileProblems(config), ...(kind === 'standalone' ? certificateProblems(config) : [])];
}

// Alerts on namespaces without their Secret, and on pods that cannot start without one.

/** Based on the reconciler's gauges. A running pod with missing imagePullSecrets does not alert. */
const ALERTS: readonly Alert[] = [
  {
    name: 'PullSecretCopiesBehind',
    expression:
      'max by (scope, profile) (pullwright_profile_namespaces{state="selected"}) - on (scope, profile) max by (scope, profile) (pullwright_profile_namespaces{state="current"}) - on (scope, profile) max by (scope, profile) (pullwright_profile_namespaces{state="blocked"}) > 0',
    for: '30m',
    summary: '{{ $value }} namespaces lack Secrets of profile {{ $labels.profile }} of {{ $labels.scope }}',
    description:
      'Existing copies stay unchanged. The conditions of the profile have the reason (kubectl get pullcreds). Namespaces whose owners must act are not counted; see kubectl get pullstatus -A.',
  },
  {
    name: 'PodsStuckWithoutPullSecret',
    expression: 'max by (scope, namespace) (pullwright_uninjected_pods{state="stuck"}) > 0',
    for: '15m',
    summary:
      '{{ $value }} pods of namespace {{ $labels.namespace }} cannot pull and lack pull secrets of their profiles',
    description:
      'They were created without injection; new pods get the secrets. List them: kubectl get pullstatus -n {{ $labels.namespace }} podlist-{{ $labels.namespace }} -o yaml.',
  },
];

export const pullSecretInjectionSystem: ChartSystem<PullSecretInjectionInput, PullSecretInjectionInput> = {
  name: 'pull-secret-injection',
  summary: 'Adds pull secrets to pods at admission, and copies the Secrets to the namespaces that need them',
  config: schema,
  kinds: ['standalone', 'hosted'],
  check: sectionProblems,
  objects: (config, cluster) => [
    // For other clusters, the reconciler's objects include the namespace.
    ...(cluster.kind === 'hosted' && config.admission === 'webhook' ? [namespace(cluster.namespace)] : []),
    ...pullSecretInjectionObjects(config, cluster, accountOf(cluster)),
  ],
  shared: sharedOptions,
  hostedAccess: (config, cluster) => part(config, cluster).access,
  alerts: ALERTS,
  reconciler: (config, cluster) => part(config, cluster),
  managementReconciler(management, hosted) {
    const own = hosted.map(({ cluster }) => cluster.namespace);
    const profiles = hosted.flatMap(({ config }) => config.profiles ?? []);
    // Writes go to the hosted clusters, where RBAC for the kubeconfig's account applies.
    return { ...part({ ...hosted[0]?.config, profiles }, management, own), access: [] };
  },
};

/** Undefined for an administrator's kubeconfig: a guard policy for system:admin would restrict people as well. */
function accountOf({ kind, namespace: own, account }: ClusterContext): Account | undefined {
  return kind === 'hosted' ? account : { namespace: own, name: RECONCILER };
}

type Account = NonNullable<ClusterContext['account']>;

function sharedOptions(config: PullSecretInjectionInput): Readonly<Record<string, unknown>> {
  const { namespaces, admission = 'policy', audit = true, excludedNamespaces = [] } = config;
  // Without `namespaces`, `secretNames` only restricts the RBAC of one cluster, so clusters may differ.
  const secretNames = namespaces === undefined ? undefined : config.secretNames;
  return { namespaces, secretNames, admission, audit, excludedNamespaces, ...optional(config) };
}

/** @param alsoOwn namespaces of Pullwright's pods in hosted clusters, if different */
function part(
  config: PullSecretInjectionInput,
  { namespace: ownNamespace }: ClusterContext,
  alsoOwn: readonly string[] = [],
): SystemPart {
  const { admission = 'policy', audit = true, excludedNamespaces, namespaces, secretNames } = config;
  const more = [...(excludedNamespaces ?? []), ...alsoOwn].filter((one) => one !== ownNamespace);
  const sources = (config.profiles ?? []).flatMap(sourcesOf);
  const names = sources.map(({ namespace, name }) => `${namespace}/${name}`);
  const excludes = excludedNamespaces !== undefined || more.length > 0;
  return {
    options: defined({
      ownNamespace,
      admission,
      audit,
      excludedNamespaces: excludes ? [...new Set(more)] : undefined,
      namespaces,
      secretNames: namespaces && secretNames,
      sources: namespaces && secretNames && [...new Set(names)].sort(),
      ...optional(config),
    }),
    access: injectionAccess({ ...config, admission, audit, sources }),
  };
}

/** Options without a value in the fleet keep the reconciler's defaults. */
function optional(config: PullSecretInjectionInput): Readonly<Record<string, unknown>> {
  const { trustedLabelKeys, removals, withoutContainers } = config;
  return defined({ trustedLabelKeys, removals, withoutContainers });
}

/** Secrets that another Pullwright system writes with the same account. */
const GUARD_NAMED = {
  [GLOBAL_PULL_SECRET.namespace]: [GLOBAL_PULL_SECRET.original, GLOBAL_PULL_SECRET.global],
};

/**
 * CRDs, consent, collision and guard policies, the webhook if enabled, and the profiles of the fleet.
 *
 * @param account of the reconciler; without it, no guard policies are rendered. A policy for a nonexistent account would protect
 * nothing
 */
function pullSecretInjectionObjects(
  config: PullSecretInjectionInput,
  cluster: Pick<ClusterContext, 'namespace' | 'image' | 'network'>,
  account: Account | undefined,
): readonly KubeObject[] {
  const { admission = 'policy', profiles = [] } = config;
  return [
    pullSecretProfileCrd(),
    pullSecretGrantCrd(),
    ...(config.sidecarSetCrd === true ? [sidecarSetCrd()] : []),
    ...aggregatedRoles(),
    ...consentPolicy(),
    ...grantConsentPolicy(),
    ...collisionPolicy(),
    ...sidecarSetConsentPolicy(),
    ...(account === undefined ? [] : guardPolicy(account, GUARD_NAMED)),
    ...(account === undefined || admission === 'none' ? [] : dryRunPolicy(account)),
    ...(admission === 'webhook' ? webhookObjects(config, cluster) : []),
    ...profiles.map(({ name, spec }) => ({
      ...PROFILE,
      metadata: { name, labels: labels({ name, component: 'pull-secret-injection' }) },
      spec,
    })),
  ];
}

/** Properties of {@link PullSecretInjection}. */
export interface PullSecretInjectionProps extends PullSecretInjectionInput {
  /** Image of the webhook. */
  readonly image: string;
  /** Namespace of Pullwright's own pods. @default {'pullwright-system'} */
  readonly namespace?: string;
}

/**
 * CRDs, consent and guard policies, profiles, and the webhook if enabled. The reconciler is a separate construct.
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
    super(scope, id, pullSecretInjectionObjects(config, { image, namespace: own }, account));
  }
}
