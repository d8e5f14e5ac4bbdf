/**
 * The reconciler's Deployment and what it needs: one process per cluster for every system that has a reconciler, with the
 * rights of exactly these systems.
 *
 * Two replicas, one of them leading by a Lease; in a management cluster the same again for each shard. Non-root, read-only root, no credential in its environment.
 */
import { createHash } from 'node:crypto';
import { toYaml } from '../../runtime/kube/yaml.ts';
import { reconcilerName } from '../../runtime/rules/kubernetes/hosted-clusters.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { pullStatusName } from '../../runtime/rules/kubernetes/pull-status.ts';
import { accountBounds } from './account-bounds.ts';
import {
  configMap,
  deployment,
  HARDENED_CONTAINER,
  HARDENED_POD,
  namespace,
  namespaceReference,
  networkPolicy,
  type PolicyRule,
  podDisruptionBudget,
  secretsByName,
  selectorLabels,
  service,
  serviceAccount,
} from './objects.ts';
import { allLabels, grant, RECONCILER, reconcilerNames } from './reconciler-grant.ts';
import type { ClusterContext, ReconcilerPart } from './system.ts';

/** The reconciler's Deployment. */
export interface ReconcilerSettings {
  /** @default {2} */
  readonly replicas?: number;
  /**
   * Shards of a management cluster, each with a Deployment, Lease and ServiceAccount: it looks after the HostedClusters whose label
   * `pullwright.dev/shard` is its name. @default none
   */
  readonly shards?: readonly string[];
  /** TCP ports it may reach: API servers and registries. @default {[443, 6443]} */
  readonly egressPorts?: readonly number[];
  /** @default {'json'} */
  readonly logFormat?: 'json' | 'logfmt';
  /** @default {'info'} */
  readonly logLevel?: 'debug' | 'info' | 'warn' | 'error';
  /** Limit of memory. @default {'512Mi'} */
  readonly memoryLimit?: string;
  /** Secret of a control plane namespace that holds the hosted cluster's kubeconfig. @default {'pullwright-kubeconfig'} */
  readonly kubeconfigSecret?: string;
  /**
   * Networks that may be contacted whoever chose the name that leads there: loopback for API servers, private ones for registries
   * without a credential. @default none
   */
  readonly allowAddresses?: readonly string[];
}

/** HyperShift's own, of `system:admin`. */
export const ADMIN_KUBECONFIG = 'admin-kubeconfig';
/** Of an account that whoever runs the hosted cluster gave us; nobody is administrator because a fleet says nothing. */
export const OWN_KUBECONFIG = 'pullwright-kubeconfig';

const HEALTH_PORT = 8081;
const METRICS_PORT = 8080;
const CONFIG_FOLDER = '/etc/pullwright';
const selectorOf = (name: string): ReturnType<typeof selectorLabels> =>
  selectorLabels({ name, component: 'reconciler' });

/**
 * All objects of the reconciler in `cluster`; none when no system needs one.
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
    namespace(cluster.namespace, { podSecurity: 'restricted' }),
    configMap({ ...metadata, name: `${RECONCILER}-config` }, { 'config.yaml': config }),
    ...[undefined, ...(cluster.shards ?? [])].flatMap((shard) =>
      shardObjects(cluster, settings, config, shard),
    ),
    ...parts.flatMap((part) => partAccess(part, cluster)),
    ...reconcilerNames(cluster).flatMap((name) => boundsOf(parts, { name, namespace: cluster.namespace })),
    ...(cluster.kind === 'management' ? hostedAccess(cluster, settings) : []),
  ];
}

/** What each shard has of its own. */
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
      // A new configuration must reach the pods: they read it when they start.
      podAnnotations: {
        'pullwright.dev/config': createHash('sha256').update(config).digest('hex').slice(0, 16),
      },
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
    ...grant(
      `${name}-lease`,
      { ...cluster, account: own },
      { namespace: cluster.namespace, rules: leaseRules(cluster, name) },
    ),
  ];
}

/** A Lease is made by POST, whose name the authorizer does not see. Beside it, what is said of hosted clusters. */
function leaseRules({ kind }: ClusterContext, name: string): readonly PolicyRule[] {
  const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] } as const;
  const report = { apiGroups: ['pullwright.dev'], resourceNames: [pullStatusName('Lease', name)] };
  return [
    { ...leases, verbs: ['create'] },
    { ...leases, resourceNames: [name], verbs: ['get', 'update', 'patch'] },
    ...(kind === 'management'
      ? ([
          { ...report, resources: ['pullstatuses'], verbs: ['get', 'create', 'patch'] },
          { ...report, resources: ['pullstatuses/status'], verbs: ['get', 'patch'] },
        ] as const)
      : []),
  ];
}

function pod(
  cluster: ClusterContext,
  settings: ReconcilerSettings,
  shard: string | undefined,
): Parameters<typeof deployment>[0]['pod'] {
  const probe = (path: string) => ({ httpGet: { path, port: 'health' } });
  return {
    serviceAccountName: reconcilerName(shard),
    automountServiceAccountToken: true,
    enableServiceLinks: false,
    securityContext: HARDENED_POD,
    terminationGracePeriodSeconds: 30,
    containers: [
      {
        name: 'reconciler',
        image: cluster.image,
        imagePullPolicy: 'IfNotPresent',
        command: ['/usr/bin/pullwright', 'reconcile'],
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
        ports: [
          { name: 'health', containerPort: HEALTH_PORT },
          { name: 'metrics', containerPort: METRICS_PORT },
        ],
        securityContext: HARDENED_CONTAINER,
        terminationMessagePolicy: 'FallbackToLogsOnError',
        resources: {
          requests: { cpu: '20m', memory: '128Mi' },
          limits: { memory: settings.memoryLimit ?? '512Mi' },
        },
        startupProbe: { ...probe('/healthz'), periodSeconds: 2, failureThreshold: 30 },
        livenessProbe: { ...probe('/healthz'), periodSeconds: 20, failureThreshold: 3 },
        readinessProbe: { ...probe('/readyz'), periodSeconds: 5, failureThreshold: 2 },
        volumeMounts: [{ name: 'config', mountPath: CONFIG_FOLDER, readOnly: true }],
      },
    ],
    volumes: [{ name: 'config', configMap: { name: `${RECONCILER}-config` } }],
  };
}

/** One Role per namespace, and one ClusterRole, named after the system. */
function partAccess(
  part: Pick<ReconcilerPart, 'name' | 'access'>,
  cluster: ClusterContext,
): readonly KubeObject[] {
  const byNamespace = Map.groupBy(part.access, (access) => access.namespace);
  return [...byNamespace].flatMap(([where, access]) =>
    grant(`pullwright-${part.name}`, cluster, {
      ...(where === undefined ? {} : { namespace: where }),
      rules: access.flatMap(({ rules }) => rules),
    }),
  );
}

/** What the parts say of their rules, for the one account that has all of them. */
function boundsOf(
  parts: readonly Pick<ReconcilerPart, 'access'>[],
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
 * The account in a hosted cluster as which the management cluster's reconciler works there, with the rights of these systems.
 * The token is made by hand: git holds no credential.
 */
export function hostedAccountObjects(
  cluster: ClusterContext,
  parts: readonly Pick<ReconcilerPart, 'name' | 'access'>[],
): readonly KubeObject[] {
  const { account } = cluster;
  if (account === undefined || parts.length === 0) return [];
  return [
    account.namespace === cluster.namespace
      ? namespace(account.namespace, { podSecurity: 'restricted' })
      : namespaceReference(account.namespace, allLabels(account.namespace)),
    serviceAccount({ ...account, labels: allLabels(account.name) }),
    // Which cluster it is, so that a kubeconfig that leads elsewhere is noticed.
    ...grant(`${RECONCILER}-identity`, cluster, {
      rules: [{ apiGroups: [''], resources: ['namespaces'], resourceNames: ['kube-system'], verbs: ['get'] }],
    }),
    ...parts.flatMap((part) => partAccess(part, cluster)),
    ...boundsOf(parts, account),
  ];
}

/** Finding hosted clusters, and reading the kubeconfig of each: one Secret by name, never a list of Secrets. */
function hostedAccess(cluster: ClusterContext, settings: ReconcilerSettings): readonly KubeObject[] {
  const find: PolicyRule = {
    apiGroups: ['hypershift.openshift.io'],
    resources: ['hostedcontrolplanes', 'hostedclusters'],
    verbs: ['get', 'list', 'watch'],
  };
  // Which cluster it is itself, so that a kubeconfig that leads back to it is noticed; and the Event that says so.
  const itself: PolicyRule = {
    apiGroups: [''],
    resources: ['namespaces'],
    resourceNames: ['kube-system'],
    verbs: ['get'],
  };
  const events: PolicyRule = {
    apiGroups: ['events.k8s.io'],
    resources: ['events'],
    verbs: ['create', 'patch'],
  };
  const { kubeconfigSecret = OWN_KUBECONFIG } = settings;
  const kubeconfig = secretsByName([kubeconfigSecret], ['get']);
  const name = `${RECONCILER}-discovery`;
  const everywhere = [find, itself, events];
  if (cluster.discovery) return grant(name, cluster, { rules: [...everywhere, kubeconfig] });
  return [
    ...grant(name, cluster, { rules: everywhere }),
    ...cluster.hosted.flatMap((one) =>
      grant(name, cluster, { namespace: one.controlPlaneNamespace, rules: [kubeconfig] }),
    ),
  ];
}
