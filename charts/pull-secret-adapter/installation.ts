/** What is installed once per management cluster: identities, rights, the Deployments of adapter and Sentinel, alerts. */

import type { KubeObject } from '../../runtime/rules/kube-object.ts';
import { namespaceReference } from '../shared/objects.ts';
import { JOB_CLUSTER_ROLE } from './objects.ts';

/** Input of {@link adapterInstallation}. */
export interface AdapterInstallation {
  readonly namespace: string;
  readonly image: string;
  /** Base URL of the HyperFleet API. */
  readonly api: string;
  /** Secret in `namespace` whose key `url` holds the URL of RabbitMQ; absent with Pub/Sub. */
  readonly brokerSecret?: string;
  readonly broker: 'rabbitmq' | 'pubsub';
  readonly gcpProject?: string;
  readonly topic: string;
  readonly subscription: string;
  readonly replicas: number;
  /** Google service account of the Jobs, for Workload Identity. */
  readonly jobGoogleServiceAccount: string;
  /** Google service account of adapter and Sentinel, needed with Pub/Sub. */
  readonly googleServiceAccount?: string;
  readonly pullSecretName: string;
  readonly sentinel: boolean;
  /** Further flags of the adapter. */
  readonly args: readonly string[];
  readonly alerts: boolean;
}

export const ADAPTER_ACCOUNT = 'pull-secret-adapter';
export const JOB_ACCOUNT = 'pullsecret-adapter-job';
const SENTINEL_ACCOUNT = 'pull-secret-sentinel';
const RBAC = 'rbac.authorization.k8s.io/v1';

/** Every object, in the order in which it can be applied. */
export function adapterInstallation(input: AdapterInstallation): readonly KubeObject[] {
  return [
    // Usually there already: HyperFleet's other adapters live in it.
    namespaceReference(input.namespace),
    ...accounts(input),
    ...rights(input),
    deployment(input, ADAPTER_ACCOUNT, input.replicas, adapterArgs(input)),
    ...(input.sentinel ? [deployment(input, SENTINEL_ACCOUNT, 1, ['sentinel', ...brokerArgs(input)])] : []),
    ...(input.alerts ? [alerts(input)] : []),
  ];
}

function accounts(input: AdapterInstallation): readonly KubeObject[] {
  const account = (name: string, google: string | undefined): KubeObject => ({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: {
      name,
      namespace: input.namespace,
      labels: labels(name),
      ...(google === undefined ? {} : { annotations: { 'iam.gke.io/gcp-service-account': google } }),
    },
  });
  return [
    account(ADAPTER_ACCOUNT, input.googleServiceAccount),
    account(JOB_ACCOUNT, input.jobGoogleServiceAccount),
    ...(input.sentinel ? [account(SENTINEL_ACCOUNT, input.googleServiceAccount)] : []),
  ];
}

/**
 * The adapter's rights. In its own namespace Jobs, their pods and temporary Secrets; elsewhere only bindings, and of these only such that
 * give the Job's one role, which it holds by the verb `bind` without having those rights itself.
 */
function rights(input: AdapterInstallation): readonly KubeObject[] {
  const { namespace } = input;
  const own = [
    {
      apiGroups: ['batch'],
      resources: ['jobs'],
      verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
    },
    { apiGroups: [''], resources: ['pods'], verbs: ['list'] },
    { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'create', 'patch', 'delete'] },
    {
      apiGroups: ['coordination.k8s.io'],
      resources: ['leases'],
      verbs: ['get', 'create', 'update', 'patch'],
    },
  ];
  const everywhere = [
    {
      apiGroups: ['rbac.authorization.k8s.io'],
      resources: ['rolebindings'],
      verbs: ['get', 'create', 'patch', 'delete'],
    },
    {
      apiGroups: ['rbac.authorization.k8s.io'],
      resources: ['clusterroles'],
      resourceNames: [JOB_CLUSTER_ROLE],
      verbs: ['bind'],
    },
  ];
  const job = [
    {
      apiGroups: [''],
      resources: ['secrets'],
      // Server-side apply names what it creates, so the one name suffices.
      resourceNames: [input.pullSecretName],
      verbs: ['get', 'create', 'patch', 'delete'],
    },
  ];
  const subjects = [{ kind: 'ServiceAccount', name: ADAPTER_ACCOUNT, namespace }];
  const group = 'rbac.authorization.k8s.io';
  const name = 'pullwright-pull-secret-adapter';
  const meta = { name, labels: labels(ADAPTER_ACCOUNT) };
  return [
    {
      apiVersion: RBAC,
      kind: 'ClusterRole',
      metadata: { name: JOB_CLUSTER_ROLE, labels: labels(JOB_ACCOUNT) },
      rules: job,
    },
    { apiVersion: RBAC, kind: 'ClusterRole', metadata: meta, rules: everywhere },
    {
      apiVersion: RBAC,
      kind: 'ClusterRoleBinding',
      metadata: meta,
      roleRef: { apiGroup: group, kind: 'ClusterRole', name },
      subjects,
    },
    { apiVersion: RBAC, kind: 'Role', metadata: { ...meta, namespace }, rules: own },
    {
      apiVersion: RBAC,
      kind: 'RoleBinding',
      metadata: { ...meta, namespace },
      roleRef: { apiGroup: group, kind: 'Role', name },
      subjects,
    },
  ];
}

function brokerArgs(input: AdapterInstallation): readonly string[] {
  return [
    '--api',
    input.api,
    '--broker',
    input.broker,
    '--topic',
    input.topic,
    '--subscription',
    input.subscription,
    ...(input.gcpProject === undefined ? [] : ['--gcp-project', input.gcpProject]),
    ...(input.brokerSecret === undefined ? [] : ['--broker-url-file', '/etc/pullwright/broker/url']),
  ];
}

function adapterArgs(input: AdapterInstallation): readonly string[] {
  return [
    'adapter',
    ...brokerArgs(input),
    '--namespace',
    input.namespace,
    '--image',
    input.image,
    ...input.args,
  ];
}

function deployment(
  input: AdapterInstallation,
  name: string,
  replicas: number,
  args: readonly string[],
): KubeObject {
  const { namespace, brokerSecret } = input;
  const volume = { name: 'broker', secret: { secretName: brokerSecret, defaultMode: 0o440 } };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace, labels: labels(name) },
    spec: {
      replicas,
      selector: { matchLabels: { 'app.kubernetes.io/name': name } },
      template: {
        metadata: { labels: labels(name) },
        spec: {
          serviceAccountName: name,
          automountServiceAccountToken: name === ADAPTER_ACCOUNT,
          terminationGracePeriodSeconds: 30,
          securityContext: {
            runAsNonRoot: true,
            runAsUser: 1000,
            runAsGroup: 1000,
            fsGroup: 1000,
            seccompProfile: { type: 'RuntimeDefault' },
          },
          containers: [
            {
              name: 'main',
              image: input.image,
              args,
              ...PROBES,
              resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '512Mi' } },
              securityContext: {
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                capabilities: { drop: ['ALL'] },
              },
              ...(brokerSecret === undefined
                ? {}
                : {
                    volumeMounts: [{ name: 'broker', mountPath: '/etc/pullwright/broker', readOnly: true }],
                  }),
            },
          ],
          ...(brokerSecret === undefined ? {} : { volumes: [volume] }),
        },
      },
    },
  };
}

const PROBES: Readonly<Record<string, unknown>> = {
  ports: [
    { name: 'health', containerPort: 8080 },
    { name: 'metrics', containerPort: 9090 },
  ],
  livenessProbe: { httpGet: { path: '/healthz', port: 'health' }, periodSeconds: 10 },
  readinessProbe: { httpGet: { path: '/readyz', port: 'health' }, periodSeconds: 5 },
};

function alerts(input: AdapterInstallation): KubeObject {
  const rule = (
    alert: string,
    expr: string,
    wait: string,
    summary: string,
  ): Readonly<Record<string, unknown>> => ({
    alert,
    expr,
    for: wait,
    labels: { severity: 'warning' },
    annotations: { summary },
  });
  return {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: ADAPTER_ACCOUNT, namespace: input.namespace, labels: labels(ADAPTER_ACCOUNT) },
    spec: {
      groups: [
        {
          name: 'pullwright-pull-secret-adapter',
          rules: [
            rule(
              'PullSecretAdapterFailing',
              'increase(controller_runtime_reconcile_total{controller="pull-secret-adapter",result="error"}[15m]) > 5',
              '15m',
              'The adapter cannot reach the HyperFleet API or its own cluster',
            ),
            rule(
              'PullSecretAdapterDeadLetters',
              'increase(pullwright_adapter_events_total{outcome="dead"}[15m]) > 0',
              '0m',
              'Messages were moved to the dead letter queue',
            ),
            ...(input.sentinel
              ? [
                  rule(
                    'PullSecretSentinelStalled',
                    'time() - pullwright_sentinel_last_poll_timestamp_seconds > 300 or absent(pullwright_sentinel_last_poll_timestamp_seconds)',
                    '5m',
                    'Sentinel has not gone over all clusters for five minutes: no events are sent',
                  ),
                ]
              : []),
            rule(
              'PullSecretJobsFailing',
              `count(kube_job_status_failed{namespace="${input.namespace}",job_name=~"pullsecret-.+"} > 0) > 0`,
              '15m',
              'Jobs that store pull secrets fail: the reason is in the status of the cluster',
            ),
          ],
        },
      ],
    },
  };
}

function labels(name: string): Readonly<Record<string, string>> {
  return { 'app.kubernetes.io/name': name, 'app.kubernetes.io/part-of': 'pullwright' };
}
