/** The report as a page of the reconciler: what it takes in the cluster, and the roles of those who may see it. */
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { REPORT_GROUP, REPORT_RESOURCES } from '../../runtime/rules/report-page/reviews.ts';
import type { Ingress } from './network.ts';
import { clusterRole, labels, NODE_MIRROR_READS, type PolicyRule, service } from './objects.ts';
import { grant } from './reconciler-grant.ts';
import type { ClusterContext } from './system.ts';

/** Who makes the page's serving certificate: Secret `pullwright-reports-tls`. */
export type ReportCertificates =
  | { readonly kind: 'service-ca' }
  | {
      readonly kind: 'cert-manager';
      readonly issuer: { readonly kind: 'Issuer' | 'ClusterIssuer'; readonly name: string };
    }
  /** The Secret is made by somebody else. */
  | { readonly kind: 'manual' };

/** The report as a page, for whom the API server lets see it. */
export interface ReportPageSettings {
  /** Where its certificate comes from: it is served over TLS alone. */
  readonly certificates: ReportCertificates;
  /** The report is made anew at most so often. @default {'60s'} */
  readonly every?: string;
  /** Namespaces whose pods may reach it, such as that of an ingress controller. @default none: by `kubectl port-forward` alone */
  readonly fromNamespaces?: readonly string[];
}

/** Service, Certificate and Secret. */
const REPORTS = 'pullwright-reports';
const TLS_SECRET = `${REPORTS}-tls`;
const TLS_FOLDER = '/etc/pullwright/reports-tls';

const TLS_VOLUME = 'reports-tls';
const PORT = 8443;
const PORT_NAME = 'reports';

const LIST = ['list'] as const;

/** All that the page is made of, of the whole cluster; the two reviews by which a visitor is judged. */
const RULES: readonly PolicyRule[] = [
  { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
  { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'], verbs: ['create'] },
  // Pull secrets by their type, and one that pods list by its name: neither is a thing that RBAC knows.
  { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list'] },
  { apiGroups: [''], resources: ['serviceaccounts', 'namespaces', 'nodes', 'pods', 'events'], verbs: LIST },
  {
    apiGroups: ['apps'],
    resources: ['deployments', 'statefulsets', 'daemonsets', 'replicasets'],
    verbs: LIST,
  },
  { apiGroups: ['batch'], resources: ['jobs', 'cronjobs'], verbs: LIST },
  { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles', 'rolebindings'], verbs: LIST },
  {
    apiGroups: ['pullwright.dev'],
    resources: ['pullstatuses', 'pullsecretprofiles', 'pullsecretgrants'],
    verbs: LIST,
  },
  { apiGroups: ['apps.kruise.io'], resources: ['sidecarsets'], verbs: LIST },
  {
    apiGroups: ['admissionregistration.k8s.io'],
    resources: [
      'mutatingadmissionpolicies',
      'mutatingadmissionpolicybindings',
      'mutatingwebhookconfigurations',
    ],
    verbs: ['get', 'list'],
  },
  {
    apiGroups: ['config.openshift.io'],
    resources: ['imagedigestmirrorsets', 'imagetagmirrorsets'],
    verbs: LIST,
  },
  {
    apiGroups: ['config.openshift.io'],
    resources: ['criocredentialproviderconfigs'],
    verbs: ['get', 'list'],
  },
  ...NODE_MIRROR_READS,
];

const REASONS = {
  'read-secrets':
    'the report says of every pull secret which registries it has an entry for; values go into no answer',
};

/** What the page adds to the reconciler. */
interface ReportPage {
  readonly objects: readonly KubeObject[];
  readonly ingress: readonly Ingress[];
  readonly args: readonly string[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly mounts: readonly { readonly name: string; readonly mountPath: string; readonly readOnly: true }[];
  readonly volumes: readonly { readonly name: string; readonly secret: { readonly secretName: string } }[];
}

const NONE: ReportPage = { objects: [], ingress: [], args: [], ports: [], mounts: [], volumes: [] };

/**
 * Service, certificate, rights, the two roles that an administrator binds to people, and what the pod takes; nothing where it is off.
 *
 * @param selector of the reconciler's pods
 * @example
 * ```ts
 * import { reportPage } from './report-page.ts';
 * import assert from 'node:assert/strict';
 *
 * const cluster = {
 *   name: 'prod', kind: 'standalone', delivery: 'gitops', namespace: 'pullwright-system',
 *   image: 'registry.example.com/pullwright:0.1.0', hosted: [], discovery: false,
 * } as const;
 * const { objects, args } = reportPage({ certificates: { kind: 'service-ca' } }, cluster, {});
 * assert.equal(objects[0]?.kind, 'Service');
 * assert.equal(args[0], '--report-port=8443');
 * assert.deepEqual(reportPage(undefined, cluster, {}).objects, []);
 * ```
 */
export function reportPage(
  settings: ReportPageSettings | undefined,
  cluster: ClusterContext,
  selector: Readonly<Record<string, string>>,
): ReportPage {
  if (settings === undefined) return NONE;
  const { every = '60s', fromNamespaces } = settings;
  return {
    objects: pageObjects(settings, cluster, selector),
    ingress: fromNamespaces === undefined ? [] : [{ ports: [PORT_NAME], from: fromNamespaces }],
    args: [`--report-port=${PORT}`, `--report-cert-dir=${TLS_FOLDER}`, `--report-every=${every}`],
    ports: [{ name: PORT_NAME, containerPort: PORT }],
    mounts: [{ name: TLS_VOLUME, mountPath: TLS_FOLDER, readOnly: true }],
    volumes: [{ name: TLS_VOLUME, secret: { secretName: TLS_SECRET } }],
  };
}

function pageObjects(
  { certificates }: ReportPageSettings,
  cluster: ClusterContext,
  selector: Readonly<Record<string, string>>,
): readonly KubeObject[] {
  const own = labels({ name: REPORTS, component: 'reconciler' });
  const metadata = { name: REPORTS, namespace: cluster.namespace, labels: own };
  const serving =
    certificates.kind === 'service-ca'
      ? { annotations: { 'service.beta.openshift.io/serving-cert-secret-name': TLS_SECRET } }
      : {};
  return [
    service({ ...metadata, ...serving }, selector, [{ name: PORT_NAME, port: 443, targetPort: PORT_NAME }]),
    ...(certificates.kind === 'cert-manager' ? [certificate(metadata, certificates.issuer)] : []),
    viewer('pullwright-report-view', REPORT_RESOURCES.fleet),
    viewer('pullwright-namespace-report-view', REPORT_RESOURCES.namespace),
    ...grant(REPORTS, cluster, { rules: RULES, reasons: REASONS }),
  ];
}

function certificate(
  metadata: { readonly name: string; readonly namespace: string },
  issuer: Extract<ReportCertificates, { kind: 'cert-manager' }>['issuer'],
): KubeObject {
  const host = `${REPORTS}.${metadata.namespace}.svc`;
  return {
    apiVersion: 'cert-manager.io/v1',
    kind: 'Certificate',
    metadata,
    spec: {
      secretName: TLS_SECRET,
      dnsNames: [host, `${host}.cluster.local`],
      issuerRef: { group: 'cert-manager.io', ...issuer },
      privateKey: { algorithm: 'ECDSA', size: 256, rotationPolicy: 'Always' },
    },
  };
}

/** Bound by nobody here: who may see a report is for the platform to say. */
function viewer(name: string, resource: string): KubeObject {
  return clusterRole({ name, labels: labels({ name, component: 'reconciler' }) }, [
    { apiGroups: [REPORT_GROUP], resources: [resource], verbs: ['get'] },
  ]);
}
