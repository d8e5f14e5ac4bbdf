/** The CronJob that asks registries about credentials, and the rights that it takes: reading what pods pull with, no more. */

import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import {
  clusterRole,
  clusterRoleBinding,
  HARDENED_CONTAINER,
  HARDENED_POD,
  kubernetesObject,
  labels,
  type NetworkSettings,
  NODE_MIRROR_READS,
  networkPolicy,
  type PodSpec,
  type PolicyRule,
  role,
  roleBinding,
  secretsByName,
  selectorLabels,
  serviceAccount,
} from '../../runtime/core/kubernetes/objects.ts';
import { pullStatusName, VERIFY } from '../../runtime/core/kubernetes/pull-status.ts';
import type { Alert } from '../shared/monitoring.ts';

export interface VerifyInstallation {
  /** Of the pods. */
  readonly namespace: string;
  readonly image: string;
  /** As cron writes it. */
  readonly schedule: string;
  /** Namespaces whose images are checked; empty: all. */
  readonly namespaces: readonly string[];
  /** Pull secrets of the namespaces that may be read, by name. @default any */
  readonly secretNames?: readonly string[];
  /** Whether all Secrets of the namespaces may be listed, as the credential provider uses them. */
  readonly namespaceSecrets: boolean;
  readonly warnDays: number;
  readonly concurrency: number;
  /** Hosts that may have any address. */
  readonly allowHosts: readonly string[];
  /** Networks that may be contacted even under untrusted host names. */
  readonly allowAddresses: readonly string[];
  /** `host:port` contacted without TLS. */
  readonly plainHosts: readonly string[];
  /** ConfigMap in the same namespace whose key `ca.crt` is trusted instead of the system's certificates. */
  readonly caConfigMap?: string;
  /** TCP ports of registries, token services and the API server. */
  readonly egressPorts: readonly number[];
  readonly suspend: boolean;
  readonly network?: NetworkSettings;
}

const ALL = labels({ name: VERIFY, component: 'verify' });
const SELECTOR = selectorLabels({ name: VERIFY, component: 'verify' });
/** Rights of the CronJob; those of the reconciler are named after the system. */
const JOB = `${VERIFY}-job`;
const CA_FOLDER = '/etc/pullwright/ca';

/**
 * All objects but the namespace.
 *
 * @example
 * ```ts
 * import { verifyObjects } from './objects.ts';
 * import assert from 'node:assert/strict';
 *
 * const objects = verifyObjects({
 *   namespace: 'pullwright-system', image: 'registry.example.com/pullwright:0.1.0', schedule: '17 * * * *',
 *   namespaces: ['web'], namespaceSecrets: false, warnDays: 14, concurrency: 16, allowHosts: [], allowAddresses: [], plainHosts: [],
 *   egressPorts: [443, 6443], suspend: false,
 * });
 * const roles = objects.filter((object) => object.kind === 'Role').map((object) => object.metadata.namespace);
 * assert.deepEqual(roles, ['pullwright-system', 'kube-system', 'openshift-config', 'web']);
 * ```
 */
export function verifyObjects(installation: VerifyInstallation): readonly KubeObject[] {
  const own = { name: VERIFY, namespace: installation.namespace, labels: ALL };
  return [
    serviceAccount(own),
    cronJob(installation),
    networkPolicy({
      metadata: own,
      selector: SELECTOR,
      ingress: [],
      egress: [{ ports: installation.egressPorts, to: 'named' }],
      network: installation.network,
    }),
    ...access(installation),
  ];
}

function cronJob({ schedule, suspend, ...rest }: VerifyInstallation): KubeObject {
  const metadata = { name: VERIFY, namespace: rest.namespace, labels: ALL };
  return kubernetesObject('CronJob', metadata, {
    spec: {
      schedule,
      suspend,
      // One check at a time, and missed ones are not caught up after an outage.
      concurrencyPolicy: 'Forbid',
      startingDeadlineSeconds: 600,
      successfulJobsHistoryLimit: 1,
      failedJobsHistoryLimit: 2,
      jobTemplate: {
        spec: {
          backoffLimit: 1,
          activeDeadlineSeconds: 1800,
          ttlSecondsAfterFinished: 86_400,
          template: { metadata: { labels: SELECTOR }, spec: pod(rest) },
        },
      },
    },
  });
}

function pod(installation: Omit<VerifyInstallation, 'schedule' | 'suspend'>): PodSpec {
  const { caConfigMap } = installation;
  const ca = caConfigMap !== undefined;
  return {
    serviceAccountName: VERIFY,
    automountServiceAccountToken: true,
    enableServiceLinks: false,
    restartPolicy: 'Never',
    securityContext: HARDENED_POD,
    containers: [
      {
        name: 'verify',
        image: installation.image,
        imagePullPolicy: 'IfNotPresent',
        command: ['/usr/bin/pullwright', 'verify'],
        args: argsOf(installation),
        securityContext: HARDENED_CONTAINER,
        terminationMessagePolicy: 'FallbackToLogsOnError',
        resources: { requests: { cpu: '20m', memory: '128Mi' }, limits: { memory: '512Mi' } },
        ...(ca ? { volumeMounts: [{ name: 'ca', mountPath: CA_FOLDER, readOnly: true }] } : {}),
      },
    ],
    ...(ca ? { volumes: [{ name: 'ca', configMap: { name: caConfigMap } }] } : {}),
  };
}

function argsOf(installation: Omit<VerifyInstallation, 'schedule' | 'suspend'>): readonly string[] {
  const { namespaces, secretNames = [], allowHosts, allowAddresses, plainHosts, caConfigMap } = installation;
  return [
    '--all-in-use',
    ...namespaces.map((one) => `--namespace=${one}`),
    ...secretNames.map((one) => `--secret-name=${one}`),
    `--report=${installation.namespace}/${VERIFY}`,
    `--warn-days=${installation.warnDays}`,
    `--concurrency=${installation.concurrency}`,
    ...allowHosts.map((host) => `--allow-host=${host}`),
    ...allowAddresses.map((network) => `--allow-address=${network}`),
    ...plainHosts.map((host) => `--plain-host=${host}`),
    ...(caConfigMap === undefined ? [] : [`--ca=${CA_FOLDER}/ca.crt`]),
  ];
}

function access(installation: VerifyInstallation): readonly KubeObject[] {
  const { namespace: own, namespaces } = installation;
  const used = usageRules(installation);
  const subject = { name: VERIFY, namespace: own };
  const metadata = { name: JOB, labels: ALL };
  const grant = (where: string, rules: readonly PolicyRule[], name: string = JOB): readonly KubeObject[] => {
    const place = { name, namespace: where, labels: ALL };
    return [role(place, rules), roleBinding(place, [subject])];
  };
  return [
    ...grant(own, reportRules()),
    ...grant('kube-system', [secretsByName(['global-pull-secret'], ['get'])]),
    ...grant('openshift-config', [secretsByName(['pull-secret'], ['get'])]),
    ...namespaces.flatMap((one) => grant(one, used, `${VERIFY}-images`)),
    clusterRole(metadata, [...CLUSTER_RULES, ...(namespaces.length === 0 ? used : [])]),
    clusterRoleBinding(metadata, [subject]),
  ];
}

const CLUSTER_RULES: readonly PolicyRule[] = [
  {
    apiGroups: ['config.openshift.io'],
    resources: ['imagedigestmirrorsets', 'imagetagmirrorsets'],
    verbs: ['list'],
  },
  {
    apiGroups: ['config.openshift.io'],
    resources: ['criocredentialproviderconfigs'],
    resourceNames: ['cluster'],
    verbs: ['get'],
  },
  ...NODE_MIRROR_READS,
];

/** What pods pull, with which Secrets, and telling those who own them. */
function usageRules({ namespaceSecrets, secretNames }: VerifyInstallation): readonly PolicyRule[] {
  return [
    { apiGroups: [''], resources: ['pods', 'serviceaccounts'], verbs: ['list'] },
    { apiGroups: ['apps'], resources: ['deployments', 'statefulsets', 'daemonsets'], verbs: ['list'] },
    { apiGroups: ['batch'], resources: ['jobs', 'cronjobs'], verbs: ['list'] },
    secretNames === undefined
      ? { apiGroups: [''], resources: ['secrets'], verbs: namespaceSecrets ? ['get', 'list'] : ['get'] }
      : secretsByName(secretNames, ['get']),
    { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
  ];
}

function reportRules(): readonly PolicyRule[] {
  const names = [pullStatusName('CronJob', VERIFY)];
  return [
    {
      apiGroups: ['pullwright.dev'],
      resources: ['pullstatuses'],
      resourceNames: names,
      verbs: ['get', 'create', 'patch'],
    },
    {
      apiGroups: ['pullwright.dev'],
      resources: ['pullstatuses/status'],
      resourceNames: names,
      verbs: ['patch'],
    },
  ];
}

// Alerts: credentials that are rejected or expire, and checks that do not run.

/** By the gauges that the reconciler makes of the PullStatus of the CronJob. */
export const VERIFY_ALERTS: readonly Alert[] = [
  {
    name: 'PullCredentialRefused',
    expression: 'max by (credential, reason) (pullwright_credential_refused) > 0',
    for: '1h',
    summary: 'A registry refuses {{ $labels.credential }}: {{ $labels.reason }}',
    description:
      'New pods that need it cannot start. Renew the entry in place; pullwright verify --all-in-use says when it is taken.',
  },
  {
    name: 'PullCredentialEndsSoon',
    expression: 'min by (credential) (pullwright_credential_expires_at) - time() < 3 * 86400',
    for: '10m',
    summary: '{{ $labels.credential }} ends in {{ $value | humanizeDuration }}',
    description: 'Renew the entry in place before it does.',
  },
  {
    name: 'PullCredentialsNotVerified',
    expression: 'time() - max by (scope) (pullwright_verify_last_run) > 86400',
    for: '1h',
    severity: 'info',
    summary: 'Pull credentials have not been checked for {{ $value | humanizeDuration }}',
    description: 'Look at the Jobs of CronJob pullwright-verify. The last results are as old as that.',
  },
];
