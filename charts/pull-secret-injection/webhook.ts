/** The webhook for clusters without MutatingAdmissionPolicy: two replicas, minimal RBAC, certificates from a provider. */

import { customObject } from '../../runtime/core/kubernetes/custom-kinds.ts';
import type { KubeObject, ObjectMeta } from '../../runtime/core/kubernetes/object.ts';
import {
  deployment,
  grant,
  kubernetesObject,
  labels,
  may,
  networkPolicy,
  type PodSpec,
  type PolicyRule,
  podDisruptionBudget,
  READ,
  selectorLabels,
  service,
  serviceAccount,
} from '../../runtime/core/kubernetes/objects.ts';
import type {
  CertificateSource,
  PullSecretInjectionInput,
} from '../../runtime/pull-secret-injection/options.ts';
import {
  NEW_PODS,
  NOT_MIRROR,
  podSelectors,
  WEBHOOK_NAME as WEBHOOK,
} from '../../runtime/pull-secret-injection/plan/plan.ts';
import { BASE_HOOK } from '../../runtime/pull-secret-injection/plan/webhook-entries.ts';
import { namedPorts, ownPod, PROBES } from '../shared/pod.ts';
import type { ClusterContext } from '../shared/system.ts';

const TLS_SECRET = 'pullwright-webhook-tls';
const TLS_FOLDER = '/etc/pullwright/tls';
const PORT = 9443;
const HEALTH_PORT = 8081;
const SELECTOR = selectorLabels({ name: WEBHOOK, component: 'pull-secret-injection' });

/** The part of the section that configures the webhook. */
export type WebhookInput = Pick<
  PullSecretInjectionInput,
  'certificates' | 'excludedNamespaces' | 'namespaces' | 'withoutContainers'
>;

/**
 * Renders all objects of the webhook. `failurePolicy: Ignore`: on failure, pods are admitted unchanged and audited.
 *
 * @example
 * ```ts
 * import { webhookObjects } from './webhook.ts';
 * import assert from 'node:assert/strict';
 *
 * const objects = webhookObjects({}, { namespace: 'pullwright-system', image: 'registry.example.com/p:1' });
 * const hook = objects.find((object) => object.kind === 'MutatingWebhookConfiguration');
 * assert.equal((hook?.['webhooks'] as { failurePolicy: string }[])[0]?.failurePolicy, 'Ignore');
 * ```
 */
export function webhookObjects(
  input: WebhookInput,
  { namespace, image, network }: Pick<ClusterContext, 'namespace' | 'image' | 'network'>,
): readonly KubeObject[] {
  const { certificates = { kind: 'service-ca' } } = input;
  const shared = { name: WEBHOOK, labels: labels({ name: WEBHOOK, component: 'pull-secret-injection' }) };
  const metadata = { ...shared, namespace };
  const serving = { 'service.beta.openshift.io/serving-cert-secret-name': TLS_SECRET };
  const injecting = {
    'service-ca': { 'service.beta.openshift.io/inject-cabundle': 'true' },
    'cert-manager': { 'cert-manager.io/inject-ca-from': `${namespace}/${WEBHOOK}` },
    manual: {},
  };
  return [
    serviceAccount(metadata),
    ...grant(shared, ACCESS, metadata),
    deployment({
      metadata,
      selector: SELECTOR,
      replicas: 2,
      pod: pod(image, [
        `--namespace=${namespace}`,
        ...(input.excludedNamespaces ?? []).map((name) => `--exclude=${name}`),
        ...(input.withoutContainers === true ? ['--without-containers'] : []),
      ]),
    }),
    podDisruptionBudget(metadata, SELECTOR),
    networkPolicy({
      metadata,
      selector: SELECTOR,
      ingress: [{ ports: ['webhook'], from: 'apiServer' }],
      egress: [{ ports: [443, 6443], to: 'apiServer' }],
      network,
    }),
    service(
      { ...metadata, ...(certificates.kind === 'service-ca' ? { annotations: serving } : {}) },
      SELECTOR,
      [{ name: 'webhook', port: 443, targetPort: 'webhook' }],
    ),
    ...certificateObjects(certificates, metadata),
    kubernetesObject(
      'MutatingWebhookConfiguration',
      { ...shared, annotations: injecting[certificates.kind] },
      { webhooks: [hook(namespace, certificates, input)] },
    ),
  ];
}

/** Without Secrets: injection depends on profiles, labels and ServiceAccounts only. */
const ACCESS: readonly PolicyRule[] = [
  may(READ, '', ['namespaces', 'serviceaccounts']),
  may(READ, 'pullwright.dev', ['pullsecretprofiles']),
  may(READ, 'apps.kruise.io', ['sidecarsets']),
  may(READ, 'apps', ['controllerrevisions']),
  may(READ, 'admissionregistration.k8s.io', [
    'mutatingadmissionpolicies',
    'mutatingadmissionpolicybindings',
    'mutatingwebhookconfigurations',
  ]),
];

function pod(image: string, flags: readonly string[]): PodSpec {
  return ownPod(
    WEBHOOK,
    {
      name: 'webhook',
      image,
      command: ['/usr/bin/pullwright', 'webhook'],
      ...PROBES,
      args: [`--cert-dir=${TLS_FOLDER}`, `--port=${PORT}`, `--health-port=${HEALTH_PORT}`, ...flags],
      ports: namedPorts({ webhook: PORT, health: HEALTH_PORT }),
      volumeMounts: [{ name: 'tls', mountPath: TLS_FOLDER, readOnly: true }],
    },
    { volumes: [{ name: 'tls', secret: { secretName: TLS_SECRET } }] },
  );
}

function certificateObjects(certificates: CertificateSource, metadata: ObjectMeta): readonly KubeObject[] {
  if (certificates.kind !== 'cert-manager') return [];
  const host = `${WEBHOOK}.${metadata.namespace}.svc`;
  return [
    customObject('Certificate', metadata, {
      secretName: TLS_SECRET,
      dnsNames: [host, `${host}.cluster.local`],
      issuerRef: { group: 'cert-manager.io', ...certificates.issuer },
      privateKey: { algorithm: 'ECDSA', size: 256, rotationPolicy: 'Always' },
    }),
  ];
}

/** Renders a `caBundle` only for `manual`, so that GitOps tools keep the value of the CA injector. */
function hook(
  namespace: string,
  certificates: CertificateSource,
  { namespaces, excludedNamespaces = [] }: WebhookInput,
) {
  return {
    name: BASE_HOOK,
    clientConfig: {
      service: { name: WEBHOOK, namespace, path: '/inject', port: 443 },
      ...(certificates.kind === 'manual' ? { caBundle: certificates.caBundle } : {}),
    },
    rules: [NEW_PODS],
    ...podSelectors([...new Set([namespace, ...excludedNamespaces])], namespaces),
    matchConditions: [NOT_MIRROR],
    failurePolicy: 'Ignore',
    matchPolicy: 'Equivalent',
    reinvocationPolicy: 'IfNeeded',
    sideEffects: 'None',
    timeoutSeconds: 3,
    admissionReviewVersions: ['v1'],
  };
}
