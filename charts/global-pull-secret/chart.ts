/** The section `systems.global-pull-secret` of a fleet, and the construct for other charts. */
import type { Construct } from 'constructs';
import { GLOBAL_PULL_SECRET as NAMES } from '../../runtime/core/kubernetes/hypershift.ts';
import type { SectionProblem } from '../../runtime/core/kubernetes/kind.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { defined } from '../../runtime/core/record.ts';
import {
  additionalSecretPolicies,
  agentBounds,
  agentPodMonitor,
  syncObjects,
} from '../../runtime/global-pull-secret/daemon-set.ts';
import {
  type AgentOptions,
  type GlobalPullSecretInput,
  parseOptions,
  STANDALONE_AGENT,
  schema,
} from '../../runtime/global-pull-secret/options.ts';
import { secretSourceObjects, sourceFiles } from '../../runtime/global-pull-secret/secret-source.ts';
import { ObjectGroup } from '../shared/group.ts';
import type { Alert } from '../shared/monitoring.ts';
import {
  type ChartSystem,
  type ClusterContext,
  clusterOptions,
  configNamespace,
  type Delivery,
} from '../shared/system.ts';
import { hostedAccess, managementAccess, PLATFORM_ACCESS } from './access.ts';

const ADDITIONAL = { namespace: NAMES.namespace, name: NAMES.additional };

// Alerts on nodes without their credentials.

/** Based on the reconciler's gauges, one series per cluster. */
const ALERTS: readonly Alert[] = [
  {
    name: 'PullSecretNotOnNodes',
    expression: 'pullwright_eligible_nodes - pullwright_synced_nodes > 0',
    for: '15m',
    summary: '{{ $value }} nodes of {{ $labels.scope }} do not have the desired pull secret',
    description:
      'Their pods of DaemonSet kube-system/global-pull-secret-syncer are not ready. The log of such a pod has the reason: if the kubelet fails to restart, the agent restores its old file.',
  },
  {
    name: 'PlatformPullSecretFaulty',
    expression: 'pullwright_platform_faults > 0',
    for: '15m',
    summary: 'The platform pull secret of {{ $labels.scope }} has {{ $value }} faults',
    description:
      'Nodes keep the last good entries. For the faults, and how to confirm a held removal, see kubectl get pullstatus -n kube-system secret-original-pull-secret -o yaml.',
  },
  {
    name: 'PullSecretEntriesRejected',
    expression: 'pullwright_rejected_entries > 0',
    for: '1h',
    severity: 'info',
    summary: '{{ $value }} entries of additional-pull-secret in {{ $labels.scope }} cannot be used',
    description:
      'The other entries are used. For each verdict, see kubectl get pullstatus -n kube-system secret-additional-pull-secret -o yaml.',
  },
];

export const globalPullSecretSystem: ChartSystem<GlobalPullSecretInput, GlobalPullSecretInput> = {
  name: 'global-pull-secret',
  summary: "Merges the tenant's additional pull secret with the platform's and syncs it to the nodes",
  config: schema,
  kinds: ['standalone', 'hosted', 'management'],
  check: (config, cluster) => checkShape(config, deliveryOf(cluster)),
  objects: (config, cluster) =>
    cluster.kind === 'management' ? [] : globalPullSecretObjects(config, cluster),
  files: (config) => (config.source === undefined ? [] : sourceFiles(ADDITIONAL, config.source)),
  hostedAccess: (config, cluster) => hostedAccess('reconciler', agentAtRunTime(config, cluster)),
  alerts: ALERTS,
  reconciler: (config, cluster) => ({
    options: reconcilerOptions(config, cluster, deliveryOf(cluster)),
    access: hostedAccess(deliveryOf(cluster), agentAtRunTime(config, cluster), PLATFORM_ACCESS),
  }),
  managementReconciler: (management, hosted, own) => ({
    options: {
      ...(management.discovery ? reconcilerOptions(own ?? {}, management, 'reconciler') : {}),
      ...clusterOptions(hosted, (config, cluster) =>
        reconcilerOptions(withoutPolicies(config, cluster.delivery), cluster, 'reconciler'),
      ),
    },
    access: management.discovery
      ? managementAccess({})
      : hosted.flatMap(({ cluster }) => managementAccess(cluster)),
  }),
};

/**
 * Delivery of the objects that share names with HyperShift's. Never git for a hosted cluster: a GitOps tool cannot detect
 * HyperShift's operator and would overwrite its objects. The reconciler detects it and only observes.
 */
function deliveryOf(cluster: Pick<ClusterContext, 'kind' | 'delivery'>): Delivery {
  return cluster.kind === 'standalone' ? cluster.delivery : 'reconciler';
}

function checkShape(
  { agent: options }: GlobalPullSecretInput,
  delivery: Delivery,
): readonly SectionProblem[] {
  if (options?.shape !== 'upstream') return [];
  const inGit = {
    path: ['agent', 'shape'],
    text: 'shape "upstream" has a hash of the credentials, which git does not know: expected delivery "reconciler"',
  };
  const noImage = {
    path: ['agent', 'image'],
    text: 'shape "upstream" starts control-plane-operator, which our image does not have: expected the image of HyperShift',
  };
  if (delivery === 'gitops') return [inGit];
  return options.image === undefined ? [noImage] : [];
}

/** With GitOps delivery of the policies, the reconciler does not apply them. */
function withoutPolicies(config: GlobalPullSecretInput, delivery: Delivery): GlobalPullSecretInput {
  return delivery === 'gitops' ? { ...config, enforce: 'off' } : config;
}

/** Options of the reconciler from the section, in the format of `reconcile --config`. */
function reconcilerOptions(
  config: GlobalPullSecretInput,
  { image, imagePullSecrets }: Pick<ClusterContext, 'image' | 'imagePullSecrets'>,
  delivery: Delivery,
): Readonly<Record<string, unknown>> {
  const { agent, source: _source, createConfigNamespace: _created, ...options } = config;
  if (delivery === 'gitops') return { delivery, ...options };
  return { delivery, ...options, agent: { image, ...defined({ imagePullSecrets }), ...agent } };
}

/** The agent options as the reconciler parses them; the admission bounds compare each rendered field. */
function agentAtRunTime(config: GlobalPullSecretInput, cluster: ClusterContext): AgentOptions {
  const optionsIn = parseOptions(reconcilerOptions(config, cluster, 'reconciler'));
  return optionsIn(cluster.kind === 'standalone' ? 'local' : 'hosted').agent;
}

/** Properties of {@link GlobalPullSecret}. */
export interface GlobalPullSecretProps extends GlobalPullSecretInput {
  /** Image of the DaemonSet. */
  readonly image: string;
}

type Place = Pick<ClusterContext, 'image' | 'kind' | 'delivery' | 'account'>;

function globalPullSecretObjects(config: GlobalPullSecretInput, cluster: Place): readonly KubeObject[] {
  const source = config.source === undefined ? [] : secretSourceObjects(ADDITIONAL, config.source);
  return [...configNamespace(config), ...syncObjectsIn(config, cluster), ...monitor(config), ...source];
}

function syncObjectsIn(config: GlobalPullSecretInput, cluster: Place): readonly KubeObject[] {
  const isBound = cluster.kind === 'standalone' || cluster.account !== undefined;
  if (config.mode === 'observe' || (cluster.delivery === 'reconciler' && !isBound)) return [];
  const enforce = config.enforce ?? 'warn';
  const { agent: given, removals } = config;
  const agent = { ...given, image: given?.image ?? cluster.image, ...defined({ removals }) };
  // These policies bind the reconciler's account too, so it must not deliver them. No other component uses their names.
  if (deliveryOf(cluster) === 'reconciler')
    return [...agentBounds(agent), ...additionalSecretPolicies(enforce)];
  return syncObjects({ ...STANDALONE_AGENT, ...agent }, enforce);
}

/** Rendered into git whenever the agent is ours, because not every cluster serves the kind. */
function monitor({ agent, mode }: GlobalPullSecretInput): readonly KubeObject[] {
  if (agent?.metrics === undefined || agent.shape === 'upstream' || mode === 'observe') return [];
  return [agentPodMonitor(agent.metrics)];
}

/**
 * All objects in a cluster with the global pull secret: ServiceAccount, Roles, RoleBindings, DaemonSet, admission policy,
 * and the source of `additional-pull-secret`. The reconciler is a separate construct.
 *
 * @example
 * ```ts
 * import { GlobalPullSecret } from './chart.ts';
 * import { Testing } from 'cdk8s';
 * import assert from 'node:assert/strict';
 *
 * const chart = Testing.chart();
 * new GlobalPullSecret(chart, 'sync', { image: 'registry.example.com/pullwright:0.1.0', enforce: 'off' });
 * const kinds = Testing.synth(chart).map((object) => object.kind);
 * assert.deepEqual(kinds.slice(0, 6), ['ServiceAccount', 'Role', 'RoleBinding', 'Role', 'RoleBinding', 'Lease']);
 * assert.equal(kinds.at(-1), 'DaemonSet');
 * ```
 */
export class GlobalPullSecret extends ObjectGroup {
  constructor(scope: Construct, id: string, props: GlobalPullSecretProps) {
    const cluster = { image: props.image, kind: 'standalone', delivery: 'gitops' } as const;
    super(scope, id, globalPullSecretObjects(props, cluster));
  }
}
