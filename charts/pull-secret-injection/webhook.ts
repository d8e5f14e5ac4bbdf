/** The webhook for clusters that do not serve MutatingAdmissionPolicy: two replicas, least rights, certificates from outside. */

import type { KubeObject, ObjectMeta } from '../../runtime/core/kubernetes/object.ts';
import {
  clusterRole,
  clusterRoleBinding,
  deployment,
  HARDENED_CONTAINER,
  HARDENED_POD,
  kubernetesObject,
  labels,
  type NetworkSettings,
  networkPolicy,
  type PolicyRule,
  podDisruptionBudget,
  selectorLabels,
  service,
  serviceAccount,
} from '../../runtime/core/kubernetes/objects.ts';
import type { CertificateSource } from '../../runtime/pull-secret-injection/options.ts';
import { WEBHOOK_NAME } from '../../runtime/pull-secret-injection/plan/plan.ts';

export const WEBHOOK: string = WEBHOOK_NAME;
const TLS_SECRET = 'pullwright-webhook-tls';
const TLS_FOLDER = '/etc/pullwright/tls';
const PORT = 9443;
const HEALTH_PORT = 8081;
const SELECTOR = selectorLabels({ name: WEBHOOK, component: 'pull-secret-injection' });

export interface WebhookInput {
  readonly namespace: string;
  readonly image: string;
  readonly certificates: CertificateSource;
  /** @default {2} */
  readonly replicas?: number;
  /** Namespaces that are left alone besides our own. @default {[]} */
  readonly excludedNamespaces?: readonly string[];
  /** The only namespaces whose pods are sent. @default all */
  readonly onlyNamespaces?: readonly string[] | undefined;
  /** @default {false} */
  readonly withoutContainers?: boolean;
  /** Seconds that a pod waits for an answer. @default {3} */
  readonly timeoutSeconds?: number;
  readonly network?: NetworkSettings;
}

/**
 * Everything of the webhook. `failurePolicy: Ignore`: a pod is created without us, and the audit of the reconciler tells.
 *
 * @example
 * ```ts
 * import { webhookObjects } from './webhook.ts';
 * import assert from 'node:assert/strict';
 *
 * const objects = webhookObjects({ namespace: 'pullwright-system', image: 'registry.example.com/p:1', certificates: { kind: 'service-ca' } });
 * const hook = objects.find((object) => object.kind === 'MutatingWebhookConfiguration');
 * assert.equal((hook?.['webhooks'] as { failurePolicy: string }[])[0]?.failurePolicy, 'Ignore');
 * ```
 */
export function webhookObjects(input: WebhookInput): readonly KubeObject[] {
  const metadata = {
    name: WEBHOOK,
    namespace: input.namespace,
    labels: labels({ name: WEBHOOK, component: 'pull-secret-injection' }),
  };
  const { namespace: _namespace, ...cluster } = metadata;
  const subject = { name: WEBHOOK, namespace: input.namespace };
  const serving =
    input.certificates.kind === 'service-ca'
      ? { annotations: { 'service.beta.openshift.io/serving-cert-secret-name': TLS_SECRET } }
      : {};
  return [
    serviceAccount(metadata),
    clusterRole(cluster, ACCESS),
    clusterRoleBinding(cluster, [subject]),
    deployment({ metadata, selector: SELECTOR, replicas: input.replicas ?? 2, pod: pod(input) }),
    podDisruptionBudget(metadata, SELECTOR),
    networkPolicy({
      metadata,
      selector: SELECTOR,
      ingress: [{ ports: ['webhook'], from: 'apiServer' }],
      egress: [{ ports: [443, 6443], to: 'apiServer' }],
      network: input.network,
    }),
    service({ ...metadata, ...serving }, SELECTOR, [{ name: 'webhook', port: 443, targetPort: 'webhook' }]),
    ...certificateObjects(input, metadata),
    webhookConfiguration(input, cluster),
  ];
}

const READ = ['get', 'list', 'watch'] as const;

/** No Secret: which names a pod gets follows from profiles, labels and ServiceAccounts. */
const ACCESS: readonly PolicyRule[] = [
  { apiGroups: [''], resources: ['namespaces', 'serviceaccounts'], verbs: READ },
  { apiGroups: ['pullwright.dev'], resources: ['pullsecretprofiles'], verbs: READ },
  { apiGroups: ['apps.kruise.io'], resources: ['sidecarsets'], verbs: READ },
  { apiGroups: ['apps'], resources: ['controllerrevisions'], verbs: READ },
  {
    apiGroups: ['admissionregistration.k8s.io'],
    resources: [
      'mutatingadmissionpolicies',
      'mutatingadmissionpolicybindings',
      'mutatingwebhookconfigurations',
    ],
    verbs: READ,
  },
];

function pod(input: WebhookInput): Parameters<typeof deployment>[0]['pod'] {
  const probe = (path: string) => ({ httpGet: { path, port: 'health' } });
  return {
    serviceAccountName: WEBHOOK,
    automountServiceAccountToken: true,
    enableServiceLinks: false,
    securityContext: HARDENED_POD,
    containers: [
      {
        name: 'webhook',
        image: input.image,
        imagePullPolicy: 'IfNotPresent',
        command: ['/usr/bin/pullwright', 'webhook'],
        args: [
          `--cert-dir=${TLS_FOLDER}`,
          `--port=${PORT}`,
          `--health-port=${HEALTH_PORT}`,
          `--namespace=${input.namespace}`,
          ...(input.excludedNamespaces ?? []).map((name) => `--exclude=${name}`),
          ...(input.withoutContainers === true ? ['--without-containers'] : []),
        ],
        ports: [
          { name: 'webhook', containerPort: PORT },
          { name: 'health', containerPort: HEALTH_PORT },
        ],
        securityContext: HARDENED_CONTAINER,
        terminationMessagePolicy: 'FallbackToLogsOnError',
        resources: { requests: { cpu: '20m', memory: '128Mi' }, limits: { memory: '512Mi' } },
        startupProbe: { ...probe('/healthz'), periodSeconds: 2, failureThreshold: 30 },
        livenessProbe: { ...probe('/healthz'), periodSeconds: 20, failureThreshold: 3 },
        readinessProbe: { ...probe('/readyz'), periodSeconds: 5, failureThreshold: 2 },
        volumeMounts: [{ name: 'tls', mountPath: TLS_FOLDER, readOnly: true }],
      },
    ],
    volumes: [{ name: 'tls', secret: { secretName: TLS_SECRET } }],
  };
}

function certificateObjects(input: WebhookInput, metadata: ObjectMeta): readonly KubeObject[] {
  if (input.certificates.kind !== 'cert-manager') return [];
  const host = `${WEBHOOK}.${input.namespace}.svc`;
  return [
    {
      apiVersion: 'cert-manager.io/v1',
      kind: 'Certificate',
      metadata,
      spec: {
        secretName: TLS_SECRET,
        dnsNames: [host, `${host}.cluster.local`],
        issuerRef: { group: 'cert-manager.io', ...input.certificates.issuer },
        privateKey: { algorithm: 'ECDSA', size: 256, rotationPolicy: 'Always' },
      },
    },
  ];
}

/** What the injector of the CA writes, `caBundle`, is not rendered, so that no GitOps tool takes it away. */
function webhookConfiguration(input: WebhookInput, metadata: ObjectMeta): KubeObject {
  const { certificates } = input;
  const only = [...(input.onlyNamespaces ?? [])].sort();
  const excluded = [...new Set([input.namespace, ...(input.excludedNamespaces ?? [])])].sort();
  const notFalse = { key: 'pullwright.dev/inject', operator: 'NotIn', values: ['false'] };
  return kubernetesObject(
    'MutatingWebhookConfiguration',
    { ...metadata, annotations: injectorAnnotations(input) },
    {
      webhooks: [
        {
          name: 'inject.pullwright.dev',
          clientConfig: {
            service: { name: WEBHOOK, namespace: input.namespace, path: '/inject', port: 443 },
            ...(certificates.kind === 'manual' ? { caBundle: certificates.caBundle } : {}),
          },
          rules: [
            {
              apiGroups: [''],
              apiVersions: ['v1'],
              operations: ['CREATE'],
              resources: ['pods'],
              scope: 'Namespaced',
            },
          ],
          namespaceSelector: {
            matchExpressions: [
              notFalse,
              ...(only.length === 0
                ? []
                : [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: only }]),
              { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: excluded },
            ],
          },
          objectSelector: { matchExpressions: [notFalse] },
          matchConditions: [
            {
              name: 'not-mirror',
              expression: "!('kubernetes.io/config.mirror' in object.metadata.?annotations.orValue({}))",
            },
          ],
          failurePolicy: 'Ignore',
          matchPolicy: 'Equivalent',
          reinvocationPolicy: 'IfNeeded',
          sideEffects: 'None',
          timeoutSeconds: input.timeoutSeconds ?? 3,
          admissionReviewVersions: ['v1'],
        },
      ],
    },
  );
}

function injectorAnnotations({ certificates, namespace }: WebhookInput): Readonly<Record<string, string>> {
  if (certificates.kind === 'service-ca') return { 'service.beta.openshift.io/inject-cabundle': 'true' };
  if (certificates.kind === 'cert-manager')
    return { 'cert-manager.io/inject-ca-from': `${namespace}/${WEBHOOK}` };
  return {};
}
