/**
 * The reconciler's Deployment and related objects: one process per cluster for all systems with a reconciler, with the RBAC of
 * exactly these systems.
 *
 * Two replicas with leader election; in a management cluster also per shard. Non-root, read-only root, no credentials in env.
 */

import { hash } from 'node:crypto';
import { z } from 'zod';
import { accountBounds } from '../../runtime/core/kubernetes/account-bounds.ts';
import { dnsName, type Frozen, networkField, optional } from '../../runtime/core/kubernetes/fields.ts';
import type { KubeObject, ObjectMeta } from '../../runtime/core/kubernetes/object.ts';
import {
  configMap,
  deployment,
  EVENTS,
  grant,
  labels,
  may,
  namespace,
  namespaceReference,
  networkPolicy,
  type PodSpec,
  type PolicyRule,
  podDisruptionBudget,
  READ,
  secretsByName,
  selectorLabels,
  service,
  serviceAccount,
} from '../../runtime/core/kubernetes/objects.ts';
import { pullStatusName } from '../../runtime/core/kubernetes/pull-status.ts';
import { defined, distinctBy } from '../../runtime/core/record.ts';
import { reconcilerName } from '../../runtime/engine/hosted-status.ts';
import { toYaml } from '../../runtime/kube/yaml.ts';
import { type Alert, prometheusRule, serviceMonitor } from './monitoring.ts';
import { namedPorts, ownPod, PROBES } from './pod.ts';
import type { ClusterContext, ReconcilerPart } from './system.ts';

// Roles of the reconciler, bound to the account of each shard.

/** Name of the Deployment, ServiceAccount, PodDisruptionBudget, NetworkPolicy, Service and Lease. */
export const RECONCILER: string = reconcilerName();

/** Names of all reconcilers of a cluster: the one without a shard, and one per shard. */
function reconcilerNames({ shards = [] }: Pick<ClusterContext, 'shards'>): readonly string[] {
  return [RECONCILER, ...shards.map(reconcilerName)];
}

/** Grants rules to the reconciler in a namespace, or cluster-wide. */
function allow(
  name: string,
  cluster: ClusterContext,
  rules: readonly PolicyRule[],
  where?: string,
): readonly KubeObject[] {
  const { account, namespace } = cluster;
  const subjects =
    account === undefined ? reconcilerNames(cluster).map((each) => ({ name: each, namespace })) : [account];
  const metadata = { name, ...defined({ namespace: where }), labels: allLabels(name) };
  return grant(metadata, distinctBy(rules, JSON.stringify), ...subjects);
}

/** Labels of all objects of the reconciler. */
export function allLabels(name: string): Readonly<Record<string, string>> {
  return labels({ name, component: 'reconciler' });
}

const SHARD = 'expected lower-case letters, digits and "-", at most 40';

/** Settings of the reconciler's pods. */
export const reconcilerSettings = z
  .strictObject(
    optional({
      replicas: z.int().min(1).max(5).describe('Replicas, one of which is the leader; default 2'),
      shards: z
        .array(z.string().regex(/^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$/, SHARD))
        .describe(
          'Values of the label pullwright.dev/shard of HostedClusters that get a separate reconciler',
        ),
      egressPorts: z
        .array(z.int().min(1).max(65535))
        .min(1)
        .describe('TCP ports of API servers and registries; default 443 and 6443'),
      logFormat: z.enum(['json', 'logfmt']).describe('Form of the log lines; default json'),
      logLevel: z.enum(['debug', 'info', 'warn', 'error']).describe('Log level; default info'),
      memoryLimit: z
        .string()
        .regex(/^\d+(Ki|Mi|Gi)$/, 'expected a size such as "512Mi"')
        .describe('Memory limit of a replica; default 512Mi'),
      kubeconfigSecret: dnsName.describe(
        'Secret of a control plane namespace with the kubeconfig of the hosted cluster; default pullwright-kubeconfig',
      ),
      allowAddresses: z
        .array(networkField)
        .describe('Networks that may be contacted even under untrusted host names'),
    }),
  )
  .describe('Settings of the reconciler Deployment');

export type ReconcilerSettings = Frozen<z.input<typeof reconcilerSettings>>;

/** HyperShift's kubeconfig, for `system:admin`. */
export const ADMIN_KUBECONFIG = 'admin-kubeconfig';
/** Kubeconfig of our own account in the hosted cluster; administrator rights are never a default. */
export const OWN_KUBECONFIG = 'pullwright-kubeconfig';

const HEALTH_PORT = 8081;
const METRICS_PORT = 8080;
const CONFIG_FOLDER = '/etc/pullwright';
const selectorOf = (name: string): ReturnType<typeof selectorLabels> =>
  selectorLabels({ name, component: 'reconciler' });

/**
 * Returns all objects of the reconciler in `cluster`; empty when no system needs one.
 *
 * @example
 * ```ts
 * import { reconcilerObjects } from './reconciler.ts';
 * import assert from 'node:assert/strict';
 *
 * const cluster = {
 *   name: 'prod', kind: 'standalone', delivery: 'gitops', namespace: 'pullwright-system',
 *   image: 'registry.example.com/pullwright:0.1.0', hosted: [], discovery: false,
 * } as const;
 * assert.deepEqual(reconcilerObjects(cluster, [], {}), []);
 * const objects = reconcilerObjects(cluster, [{ name: 'registry-overrides', options: {}, access: [] }], {});
 * assert.ok(objects.some((object) => object.kind === 'PodDisruptionBudget'));
 * ```
 */
export function reconcilerObjects(
  cluster: ClusterContext,
  parts: readonly ReconcilerPart[],
  settings: ReconcilerSettings,
): readonly KubeObject[] {
  if (parts.length === 0) return [];
  const config = toYaml({ systems: Object.fromEntries(parts.map((part) => [part.name, part.options])) });
  const metadata = { name: RECONCILER, namespace: cluster.namespace, labels: allLabels(RECONCILER) };
  return [
    namespace(cluster.namespace),
    configMap({ ...metadata, name: `${RECONCILER}-config` }, { 'config.yaml': config }),
    ...[undefined, ...(cluster.shards ?? [])].flatMap((shard) =>
      shardObjects(cluster, settings, config, shard),
    ),
    ...parts.flatMap((part) => partAccess(part, cluster)),
    ...reconcilerNames(cluster).flatMap((name) => boundsOf(parts, { name, namespace: cluster.namespace })),
    ...(cluster.kind === 'management' ? hostedAccess(cluster, settings) : []),
  ];
}

/** Objects per shard. */
function shardObjects(
  cluster: ClusterContext,
  settings: ReconcilerSettings,
  config: string,
  shard: string | undefined,
): readonly KubeObject[] {
  const name = reconcilerName(shard);
  const own = { name, namespace: cluster.namespace, labels: allLabels(name) };
  const selector = selectorOf(name);
  return [
    serviceAccount(own),
    deployment({
      metadata: own,
      selector,
      replicas: settings.replicas ?? 2,
      // The pods read the configuration at startup, so a change must replace them.
      podAnnotations: { 'pullwright.dev/config': hash('sha256', config).slice(0, 16) },
      pod: pod(cluster, settings, shard),
    }),
    podDisruptionBudget(own, selector),
    networkPolicy({
      metadata: own,
      selector,
      ingress: [{ ports: ['metrics'], from: 'monitoring' }],
      egress: [{ ports: settings.egressPorts ?? [443, 6443], to: 'named' }],
      network: cluster.network,
    }),
    service(own, selector, [{ name: 'metrics', port: METRICS_PORT, targetPort: 'metrics' }]),
    ...allow(`${name}-lease`, { ...cluster, account: own }, leaseRules(cluster, name), cluster.namespace),
  ];
}

/** RBAC cannot restrict `create` of Leases by name. Includes the PullStatus about hosted clusters. */
function leaseRules({ kind }: ClusterContext, name: string): readonly PolicyRule[] {
  const report = [pullStatusName('Lease', name)];
  const group = 'coordination.k8s.io';
  return [
    may(['create'], group, ['leases']),
    may(['get', 'update', 'patch'], group, ['leases'], [name]),
    ...(kind === 'management'
      ? [
          may(['get', 'create', 'patch'], 'pullwright.dev', ['pullstatuses'], report),
          may(['get', 'patch'], 'pullwright.dev', ['pullstatuses/status'], report),
        ]
      : []),
  ];
}

function pod(cluster: ClusterContext, settings: ReconcilerSettings, shard: string | undefined): PodSpec {
  return ownPod(
    reconcilerName(shard),
    {
      name: 'reconciler',
      image: cluster.image,
      command: ['/usr/bin/pullwright', 'reconcile'],
      ...PROBES,
      args: [
        `--config=${CONFIG_FOLDER}/config.yaml`,
        ...(cluster.kind === 'management'
          ? ['--discover', `--kubeconfig-secret=${settings.kubeconfigSecret ?? OWN_KUBECONFIG}`]
          : []),
        ...(settings.allowAddresses ?? []).map((one) => `--allow-address=${one}`),
        `--lease-namespace=${cluster.namespace}`,
        ...(shard === undefined ? [] : [`--shard=${shard}`]),
        `--health-port=${HEALTH_PORT}`,
        `--metrics-port=${METRICS_PORT}`,
        `--log-format=${settings.logFormat ?? 'json'}`,
        ...(settings.logLevel === undefined ? [] : [`--log-level=${settings.logLevel}`]),
      ],
      ports: namedPorts({ health: HEALTH_PORT, metrics: METRICS_PORT }),
      ...(settings.memoryLimit === undefined ? {} : { memory: settings.memoryLimit }),
      volumeMounts: [{ name: 'config', mountPath: CONFIG_FOLDER, readOnly: true }],
    },
    {
      terminationGracePeriodSeconds: 30,
      volumes: [{ name: 'config', configMap: { name: `${RECONCILER}-config` } }],
    },
  );
}

type AccessPart = Pick<ReconcilerPart, 'name' | 'access'>;

/** One Role per namespace, and one ClusterRole, named after the system. */
function partAccess(part: AccessPart, cluster: ClusterContext): readonly KubeObject[] {
  const byNamespace = Map.groupBy(part.access, (access) => access.namespace);
  return [...byNamespace].flatMap(([where, access]) => {
    const rules = access.flatMap((one) => one.rules);
    return allow(`pullwright-${part.name}`, cluster, rules, where);
  });
}

/** Admission bounds of all parts, for their common account. */
function boundsOf(
  parts: readonly AccessPart[],
  account: NonNullable<ClusterContext['account']>,
): readonly KubeObject[] {
  const access = parts.flatMap((part) => part.access);
  return accountBounds(account, {
    component: 'reconciler',
    rules: access.flatMap(({ rules }) => rules),
    bounds: access.flatMap(({ bounds = [] }) => bounds),
  });
}

/**
 * The account of the management cluster's reconciler in a hosted cluster, with the RBAC of these systems. An administrator
 * creates its token, because git contains no credentials.
 */
export function hostedAccountObjects(
  cluster: ClusterContext,
  parts: readonly AccessPart[],
): readonly KubeObject[] {
  const { account } = cluster;
  if (account === undefined || parts.length === 0) return [];
  return [
    account.namespace === cluster.namespace
      ? namespace(account.namespace)
      : namespaceReference(account.namespace, allLabels(account.namespace)),
    serviceAccount({ ...account, labels: allLabels(account.name) }),
    // To detect a kubeconfig for the wrong cluster, by the identity of the target.
    ...allow(`${RECONCILER}-identity`, cluster, [IDENTITY]),
    ...parts.flatMap((part) => partAccess(part, cluster)),
    ...boundsOf(parts, account),
  ];
}

/** Reads the UID of kube-system, which identifies the cluster. */
const IDENTITY = may(['get'], '', ['namespaces'], ['kube-system']);

/** RBAC to discover hosted clusters and to read each kubeconfig: one Secret by name, without `list`. */
function hostedAccess(cluster: ClusterContext, settings: ReconcilerSettings): readonly KubeObject[] {
  const find = may(READ, 'hypershift.openshift.io', ['hostedcontrolplanes', 'hostedclusters']);
  const kubeconfig = secretsByName([settings.kubeconfigSecret ?? OWN_KUBECONFIG], ['get']);
  const name = `${RECONCILER}-discovery`;
  // A kubeconfig for this cluster itself is detected and reported as an Event.
  const everywhere = [find, IDENTITY, EVENTS];
  if (cluster.discovery) return allow(name, cluster, [...everywhere, kubeconfig]);
  return [
    ...allow(name, cluster, everywhere),
    ...cluster.hosted.flatMap((one) => allow(name, cluster, [kubeconfig], one.controlPlaneNamespace)),
  ];
}

// Monitoring of the reconciler itself.

const JOB = `job=~"${RECONCILER}(-.+)?"`;

/** One alert per reconciler, because a running one cannot report another's absence. */
function downAlert(name: string): Alert {
  return {
    name: 'PullwrightReconcilerDown',
    expression: `absent(leader_election_master_status{${JOB},name="${name}"} == 1)`,
    for: '10m',
    severity: 'critical',
    summary: `${name} has no leader`,
    description: `Pull secrets on nodes stay unchanged, but changes are not synced. Check the pods of Deployment ${name} and the Lease of that name.`,
  };
}

const ALERTS: readonly Alert[] = [
  {
    name: 'PullwrightReconcileFailing',
    expression: `sum by (controller) (rate(controller_runtime_reconcile_errors_total{${JOB}}[15m])) > 0`,
    for: '30m',
    summary: 'Controller {{ $labels.controller }} has failed for half an hour',
    description:
      'Its last changes stay in effect. Its log has the object and the remedy: kubectl logs -l app.kubernetes.io/name=pullwright-reconciler -n {{ $labels.namespace }}.',
  },
  {
    name: 'PullwrightNeedsAPerson',
    expression: `sum by (controller) (increase(controller_runtime_terminal_reconcile_errors_total{${JOB}}[1h])) > 0`,
    for: '5m',
    summary: 'Controller {{ $labels.controller }} has an error that requires a manual fix',
    description: 'It is not retried. Check the conditions and events: kubectl get pullcreds -A.',
  },
  {
    name: 'PullwrightHostedClusterFailing',
    expression: `sum by (pod) (pullwright_hosted_clusters{${JOB},state=~"failing|refused"}) > 0`,
    for: '15m',
    summary: '{{ $value }} hosted clusters of {{ $labels.pod }} are not reconciled',
    description:
      'Their pull secrets stay unchanged; other clusters are reconciled. For each name and reason, run pullwright status, or see the Event on the HostedControlPlane.',
  },
];

/** PrometheusRule with the reconciler's and the systems' alerts, and a ServiceMonitor for each reconciler. */
export function reconcilerMonitoring(cluster: ClusterContext, more: readonly Alert[]): readonly KubeObject[] {
  const { namespace } = cluster;
  const names = reconcilerNames(cluster);
  const metadataOf = (name: string): ObjectMeta => ({ name, namespace, labels: allLabels(name) });
  return [
    prometheusRule(metadataOf(RECONCILER), [...names.map(downAlert), ...ALERTS, ...more]),
    ...names.map((name) => serviceMonitor(metadataOf(name), selectorOf(name))),
  ];
}
