/**
 * The Kubernetes kinds that Pullwright writes, type-checked against the API: by cdk8s-plus-28, and by client-node for the
 * admission policies, which cdk8s-plus-28 lacks. Types only: neither is loaded.
 */

import type {
  V1MutatingAdmissionPolicyBindingSpec,
  V1MutatingAdmissionPolicySpec,
  V1PodFailurePolicy,
  V1ValidatingAdmissionPolicyBindingSpec,
  V1ValidatingAdmissionPolicySpec,
} from '@kubernetes/client-node';
import type * as k8s from 'cdk8s-plus-28/lib/imports/k8s.js';
import { VERSION } from '../version.ts';
import { customObject } from './custom-kinds.ts';
import type { KubeObject, ObjectMeta } from './object.ts';

/**
 * A cdk8s L1 type as it appears in the written object: plain numbers and strings instead of `IntOrString` and `Quantity`,
 * readonly lists, and the API's spelling where cdk8s has another.
 */
export type Plain<T> = T extends string | number | boolean | null | undefined
  ? T
  : T extends k8s.IntOrString | k8s.Quantity
    ? string | number
    : T extends Date
      ? string
      : T extends readonly (infer Item)[]
        ? readonly Plain<Item>[]
        : unknown extends T
          ? unknown
          : { readonly [Key in keyof T as Spelled<Key>]: Plain<T[Key]> };

/** The API's spelling of acronyms that cdk8s spells differently. */
interface Spellings {
  readonly hostPid: 'hostPID';
  readonly hostIpc: 'hostIPC';
  readonly clusterIp: 'clusterIP';
  readonly nonResourceUrLs: 'nonResourceURLs';
}

type Spelled<Key> = Key extends keyof Spellings ? Spellings[Key] : Key;

export type Container = Plain<k8s.Container>;
export type EnvVar = Plain<k8s.EnvVar>;
export type PodSpec = Plain<k8s.PodSpec>;
export type PodTemplate = Plain<k8s.PodTemplateSpec>;
export type SecurityContext = Plain<k8s.SecurityContext>;
export type PodSecurityContext = Plain<k8s.PodSecurityContext>;
export type ServicePort = Plain<k8s.ServicePort>;
export type Volume = Plain<k8s.Volume>;
export type VolumeMount = Plain<k8s.VolumeMount>;

/** One version of a CRD. Its schema is JSON, which the API server validates. */
export type CrdVersionObject = Omit<Plain<k8s.CustomResourceDefinitionVersion>, 'schema'> & {
  readonly schema: { readonly openAPIV3Schema: Readonly<Record<string, unknown>> };
};

export type CrdSpec = Omit<Plain<k8s.CustomResourceDefinitionSpec>, 'versions'> & {
  readonly versions: readonly CrdVersionObject[];
};

/** cdk8s-plus-28 requires `onPodConditions` in each rule of the failure policy; the API does not. */
type JobSpec = Omit<Plain<k8s.JobSpec>, 'podFailurePolicy'> & {
  readonly podFailurePolicy?: Plain<V1PodFailurePolicy>;
};

/** Kinds whose fields have types of their own. */
interface OwnFields {
  readonly CustomResourceDefinition: { readonly spec: CrdSpec };
  readonly Job: { readonly spec: JobSpec };
  readonly MutatingAdmissionPolicy: { readonly spec: Plain<V1MutatingAdmissionPolicySpec> };
  readonly MutatingAdmissionPolicyBinding: { readonly spec: Plain<V1MutatingAdmissionPolicyBindingSpec> };
  readonly ValidatingAdmissionPolicy: { readonly spec: Plain<V1ValidatingAdmissionPolicySpec> };
  readonly ValidatingAdmissionPolicyBinding: { readonly spec: Plain<V1ValidatingAdmissionPolicyBindingSpec> };
}

/** Fields of a kind besides apiVersion, kind and metadata: for most kinds the properties of its cdk8s class. */
type FieldsOf<K extends Kind> =
  K extends Exclude<Kind, keyof OwnFields>
    ? Omit<Plain<NonNullable<ConstructorParameters<(typeof k8s)[`Kube${K}`]>[2]>>, 'metadata'>
    : OwnFields[K & keyof OwnFields];

/** A built-in kind that charts and reconcilers write. */
export type Kind = keyof typeof API_VERSION;

const ADMISSION = 'admissionregistration.k8s.io/v1';
const RBAC = 'rbac.authorization.k8s.io/v1';

const API_VERSION = {
  ClusterRole: RBAC,
  ClusterRoleBinding: RBAC,
  ConfigMap: 'v1',
  CronJob: 'batch/v1',
  CustomResourceDefinition: 'apiextensions.k8s.io/v1',
  DaemonSet: 'apps/v1',
  Deployment: 'apps/v1',
  Job: 'batch/v1',
  Lease: 'coordination.k8s.io/v1',
  MutatingAdmissionPolicy: ADMISSION,
  MutatingAdmissionPolicyBinding: ADMISSION,
  MutatingWebhookConfiguration: ADMISSION,
  Namespace: 'v1',
  NetworkPolicy: 'networking.k8s.io/v1',
  PodDisruptionBudget: 'policy/v1',
  Role: RBAC,
  RoleBinding: RBAC,
  Service: 'v1',
  ServiceAccount: 'v1',
  ValidatingAdmissionPolicy: ADMISSION,
  ValidatingAdmissionPolicyBinding: ADMISSION,
} as const;

/**
 * Builds an object of a built-in kind. A field that the API does not have, or a value of another type, does not compile.
 *
 * @param kind e.g. `DaemonSet`; the API version follows from it.
 * @param metadata at least the name.
 * @param fields `spec`, `data`, `rules` and other top-level fields of the kind.
 */
export function kubernetesObject<K extends Kind>(
  kind: K,
  metadata: ObjectMeta,
  fields: FieldsOf<K>,
): KubeObject {
  return { apiVersion: API_VERSION[kind], kind, metadata, ...fields };
}

// Pull secrets for Pullwright's own image, in every pod, if the registry requires a credential.

/** `imagePullSecrets` of a pod; no field without names. */
export function imagePullSecretsOf(names: readonly string[] = []): Pick<PodSpec, 'imagePullSecrets'> {
  return names.length === 0 ? {} : { imagePullSecrets: names.map((name) => ({ name })) };
}

/**
 * Adds `imagePullSecrets` to the pod template of a Deployment, a DaemonSet, a Job or a CronJob; returns other objects unchanged.
 * In pods rather than ServiceAccounts: every writer replaces a ServiceAccount's whole list, and OpenShift is one of them.
 */
export function withImagePullSecrets(object: KubeObject, names: readonly string[] = []): KubeObject {
  if (names.length === 0) return object;
  if (object.kind === 'CronJob') {
    const spec = object.spec as { readonly jobTemplate: Workload };
    return { ...object, spec: { ...spec, jobTemplate: withSecrets(spec.jobTemplate, names) } };
  }
  return WITH_TEMPLATE.includes(object.kind) ? withSecrets(object as KubeObject & Workload, names) : object;
}

interface Workload {
  readonly spec: { readonly template: PodTemplate };
}

const WITH_TEMPLATE = ['DaemonSet', 'Deployment', 'Job'];

function withSecrets<W extends Workload>(workload: W, names: readonly string[]): W {
  const { template } = workload.spec;
  const withNames = { ...template, spec: { ...template.spec, ...imagePullSecretsOf(names) } };
  return { ...workload, spec: { ...workload.spec, template: withNames } };
}

// MachineConfigs of the Machine Config Operator: what a system installs on the nodes of a pool.

/** Label that selects the pool of a MachineConfig. */
const ROLE_LABEL = 'machineconfiguration.openshift.io/role';

/** A MachineConfig for the nodes of `pool`. */
export function machineConfigOf(pool: string, metadata: ObjectMeta, config: object): KubeObject {
  const labels = { ...metadata.labels, [ROLE_LABEL]: pool };
  return customObject('MachineConfig', { ...metadata, labels }, { config });
}

/** The data URL of a text file, as the Machine Config Operator writes it. */
export function dataUrl(text: string): string {
  return `data:text/plain;charset=utf-8;base64,${Buffer.from(text).toString('base64')}`;
}

// Metadata of every rendered object.
// Source of the rule: the recommended labels `app.kubernetes.io/*`. Selector labels never include a version, because selectors
// are immutable.

/** Default namespace of Pullwright's own pods. */
export const OWN_NAMESPACE = 'pullwright-system';

/** On objects that make a GitOps tool sync a cluster: the name of the cluster in the fleet. */
export const SYNCED_CLUSTER_LABEL = 'pullwright.dev/cluster';

/** Input of {@link labels}. */
export interface LabelInput {
  /** Name of the component: `global-pull-secret-syncer`, `reconciler`. */
  readonly name: string;
  /** System that it belongs to: `global-pull-secret`. */
  readonly component: string;
}

/** Labels for `metadata.labels`. Not for pod templates, where the version would cause a second rollout. */
export function labels(input: LabelInput): Readonly<Record<string, string>> {
  return {
    ...selectorLabels(input),
    'app.kubernetes.io/part-of': 'pullwright',
    'app.kubernetes.io/managed-by': 'pullwright',
    'app.kubernetes.io/version': VERSION,
  };
}

/** Labels for selectors and pod templates; they never change between versions. */
export function selectorLabels(input: LabelInput): Readonly<Record<string, string>> {
  return { 'app.kubernetes.io/name': input.name, 'app.kubernetes.io/component': input.component };
}

/** A Namespace for pods without access to their node. */
export function namespace(name: string): KubeObject {
  const security = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  const all = { ...labels({ name, component: 'namespace' }), ...security };
  return kubernetesObject('Namespace', { name, labels: all }, {});
}

/**
 * A Namespace that belongs to the platform, rendered only so that the first apply finds it. Pullwright does not own it, and no
 * GitOps tool may remove it.
 */
export function namespaceReference(name: string, marks?: Readonly<Record<string, string>>): KubeObject {
  const annotations = {
    'argocd.argoproj.io/sync-options': 'Prune=false,Delete=false',
    'kustomize.toolkit.fluxcd.io/prune': 'disabled',
  };
  const labelled = marks === undefined ? {} : { labels: marks };
  return kubernetesObject('Namespace', { name, ...labelled, annotations }, {});
}

/** A ServiceAccount that mounts no token by default; pods that need one request it. */
export function serviceAccount(metadata: ObjectMeta): KubeObject {
  return kubernetesObject('ServiceAccount', metadata, { automountServiceAccountToken: false });
}

/** A ConfigMap of text files. */
export function configMap(metadata: ObjectMeta, data: Readonly<Record<string, string>>): KubeObject {
  return kubernetesObject('ConfigMap', metadata, { data });
}

/**
 * A PodMonitor for the port `metrics` of the pods with these labels in the same namespace.
 *
 * @param tls the pods' certificate is valid for `serverName`, issued by the CA in key `ca.crt` of `secret`. @default plain HTTP
 */
export function podMonitor(
  metadata: ObjectMeta,
  selector: Readonly<Record<string, string>>,
  tls?: { readonly serverName: string; readonly secret: string },
): KubeObject {
  const secure = tls && {
    scheme: 'https',
    tlsConfig: { serverName: tls.serverName, ca: { secret: { name: tls.secret, key: 'ca.crt' } } },
  };
  return customObject('PodMonitor', metadata, {
    selector: { matchLabels: selector },
    podMetricsEndpoints: [{ port: 'metrics', interval: '60s', ...secure }],
  });
}

// NetworkPolicies: sources and destinations, as far as the API can express them (docs/operations.md lists the limits).

/** Facts about the network that only the platform knows. */
export interface NetworkSettings {
  /** Namespaces that may read metrics. @default {['monitoring', 'openshift-monitoring', 'openshift-user-workload-monitoring']} */
  readonly monitoringNamespaces?: readonly string[];
  /**
   * Networks of the API server, as pods see them: the only traffic that the webhook sends or accepts.
   * @default anywhere, by port
   */
  readonly apiServer?: readonly string[];
  /** Networks that the other pods may reach by their ports: registries, brokers, API servers. @default anywhere, by port */
  readonly egress?: readonly string[];
}

/** Sources that may reach the selected pods, on named or numbered ports. */
export interface Ingress {
  readonly ports: readonly (string | number)[];
  /** A list allows the pods of these namespaces. */
  readonly from: 'monitoring' | 'apiServer' | readonly string[];
}

/** Destinations that the selected pods may reach, on TCP ports. */
export interface Egress {
  readonly ports: readonly number[];
  /** `named`: the networks that the platform lists, and the API server. `metadata`: addresses of Google's metadata server. */
  readonly to: 'apiServer' | 'named' | 'metadata';
}

export interface NetworkPolicyInput {
  readonly metadata: ObjectMeta & { readonly namespace: string };
  readonly selector: Readonly<Record<string, string>>;
  readonly ingress: readonly Ingress[];
  /** DNS is always allowed. */
  readonly egress: readonly Egress[];
  readonly network: NetworkSettings | undefined;
}

type Peers = readonly Readonly<Record<string, unknown>>[] | undefined;

const MONITORING = ['monitoring', 'openshift-monitoring', 'openshift-user-workload-monitoring'];
/** Google's metadata address, the one that GKE replaces it with, and the address of GKE's agent on the node. */
const METADATA = ['169.254.169.254/32', '169.254.169.252/32', '127.0.0.1/32'];

/**
 * A NetworkPolicy for both directions that denies all other traffic. Probes need no rule: a node may always reach its own pods.
 */
export function networkPolicy(input: NetworkPolicyInput): KubeObject {
  const { metadata, selector, network = {} } = input;
  const ingress = input.ingress.map(({ ports, from }) => rule('from', sources(from, network), ports));
  const dns = [53, 5353].flatMap((port) => [
    { port, protocol: 'UDP' },
    { port, protocol: 'TCP' },
  ]);
  return kubernetesObject('NetworkPolicy', metadata, {
    spec: {
      podSelector: { matchLabels: selector },
      policyTypes: ['Ingress', 'Egress'],
      // The API server drops an empty list, so that every apply would be a change. Without rules, all ingress is denied.
      ...(ingress.length === 0 ? {} : { ingress }),
      // A rule without ports would allow every port.
      egress: [
        { ports: dns },
        ...input.egress
          .filter(({ ports }) => ports.length > 0)
          .map(({ ports, to }) => rule('to', targets(to, network), ports)),
      ],
    },
  });
}

function rule(
  direction: 'from' | 'to',
  peers: Peers,
  ports: readonly (string | number)[],
): Readonly<Record<string, unknown>> {
  return {
    ports: ports.map((port) => ({ port, protocol: 'TCP' })),
    ...(peers === undefined ? {} : { [direction]: peers }),
  };
}

function sources(from: Ingress['from'], { monitoringNamespaces, apiServer }: NetworkSettings): Peers {
  if (from === 'apiServer') return apiServer === undefined ? undefined : blocks(apiServer);
  const values = from === 'monitoring' ? (monitoringNamespaces ?? MONITORING) : from;
  const name = { key: 'kubernetes.io/metadata.name', operator: 'In', values };
  return [{ namespaceSelector: { matchExpressions: [name] } }];
}

function targets(to: Egress['to'], { apiServer, egress }: NetworkSettings): Peers {
  if (to === 'metadata') return blocks(METADATA);
  if (to === 'apiServer') return apiServer === undefined ? undefined : blocks(apiServer);
  return egress === undefined ? undefined : blocks([...egress, ...(apiServer ?? [])]);
}

function blocks(networks: readonly string[]): NonNullable<Peers> {
  return [...new Set(networks)].map((network) => ({ ipBlock: { cidr: withLength(network) } }));
}

function withLength(network: string): string {
  if (network.includes('/')) return network;
  return `${network}/${network.includes(':') ? 128 : 32}`;
}

// Admission policies.

/** One validation of an admission policy. */
export interface Validation {
  /** CEL; true admits the request. */
  readonly expression: string;
  /** The fault and the fix; shown to the author of the request. */
  readonly message: string;
  /** CEL that returns the message; overrides `message`. */
  readonly messageExpression?: string;
}

export interface AdmissionPolicyInput {
  readonly metadata: ObjectMeta;
  readonly apiGroup: string | readonly string[];
  readonly apiVersion: string;
  readonly resource: string | readonly string[];
  readonly operations: readonly ('CREATE' | 'UPDATE' | 'DELETE')[];
  readonly resourceNames?: readonly string[];
  /** Limits the policy to objects of this namespace. */
  readonly namespace?: string;
  readonly variables?: readonly { readonly name: string; readonly expression: string }[];
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
  readonly validations: readonly Validation[];
  /** Actions on a request that fails validation. The API does not allow `Deny` together with `Warn`. */
  readonly actions: readonly ('Deny' | 'Warn' | 'Audit')[];
  /** If the policy itself cannot be evaluated. @default {'Ignore'} */
  readonly failurePolicy?: 'Ignore' | 'Fail';
  /**
   * Kind of the parameters: the request is validated against every object of this kind, in the request's namespace if it has one,
   * as `params`. The API server resolves them before the match conditions, which affects every account: name the resources.
   */
  readonly against?: { readonly apiVersion: string; readonly kind: string };
}

/** A ValidatingAdmissionPolicy and its binding of the same name. */
export function admissionPolicy(input: AdmissionPolicyInput): readonly [KubeObject, KubeObject] {
  const rule = {
    apiGroups: [input.apiGroup].flat(),
    apiVersions: [input.apiVersion],
    resources: [input.resource].flat(),
    operations: input.operations,
    scope: '*',
    ...(input.resourceNames === undefined ? {} : { resourceNames: input.resourceNames }),
  };
  const inNamespace = input.namespace && {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': input.namespace } },
  };
  return [
    kubernetesObject('ValidatingAdmissionPolicy', input.metadata, {
      spec: {
        failurePolicy: input.failurePolicy ?? 'Ignore',
        ...(input.against === undefined ? {} : { paramKind: input.against }),
        matchConstraints: { matchPolicy: 'Equivalent', resourceRules: [rule], ...inNamespace },
        ...(input.matchConditions === undefined ? {} : { matchConditions: input.matchConditions }),
        ...(input.variables === undefined ? {} : { variables: input.variables }),
        validations: input.validations.map((validation) => ({ reason: 'Invalid', ...validation })),
      },
    }),
    kubernetesObject('ValidatingAdmissionPolicyBinding', input.metadata, {
      spec: {
        policyName: input.metadata.name,
        validationActions: input.actions,
        ...(input.against && { paramRef: { selector: {}, parameterNotFoundAction: 'Allow' } }),
      },
    }),
  ];
}

// Roles and bindings, as narrow as possible: Secrets only by name, no wildcards.

/** One rule of a Role or ClusterRole. */
export interface PolicyRule {
  /** `''` is the core group. */
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly Verb[];
  readonly resourceNames?: readonly string[];
}

export type Verb =
  | 'get'
  | 'list'
  | 'watch'
  | 'create'
  | 'update'
  | 'patch'
  | 'delete'
  | 'use'
  | 'impersonate'
  | 'bind';

/** A ServiceAccount as the subject of a binding. */
export interface Subject {
  readonly name: string;
  readonly namespace: string;
}

/** A Role in the namespace of `metadata`, or a ClusterRole without one, bound to ServiceAccounts under the same name. */
export function grant(
  metadata: ObjectMeta,
  rules: readonly PolicyRule[],
  ...subjects: readonly Subject[]
): readonly [KubeObject, KubeObject] {
  const kind = metadata.namespace === undefined ? 'ClusterRole' : 'Role';
  return [
    kubernetesObject(kind, metadata, { rules }),
    kubernetesObject(`${kind}Binding`, metadata, {
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: metadata.name },
      subjects: subjects.map(({ name, namespace }) => ({ kind: 'ServiceAccount', name, namespace })),
    }),
  ];
}

export const READ = ['get', 'list', 'watch'] as const;

/** A rule for resources of one API group; without `resourceNames`, for every object. */
export function may(
  verbs: PolicyRule['verbs'],
  apiGroup: string,
  resources: readonly string[],
  resourceNames?: readonly string[],
): PolicyRule {
  const names = resourceNames === undefined ? {} : { resourceNames };
  return { apiGroups: [apiGroup], resources, ...names, verbs };
}

export const EVENTS: PolicyRule = may(['create', 'patch'], 'events.k8s.io', ['events']);

/** A PullStatus per node. Node names are not known in advance, so these are granted without names. */
export const NODE_STATUSES: readonly PolicyRule[] = [
  may(['get', 'create', 'patch'], 'pullwright.dev', ['pullstatuses']),
  may(['get', 'patch'], 'pullwright.dev', ['pullstatuses/status']),
];

/** Access to Secrets with known names in the namespace of the Role. */
export function secretsByName(names: readonly string[], verbs: readonly Verb[]): PolicyRule {
  return may(verbs, '', ['secrets'], names);
}

/**
 * Permissions for server-side apply of named objects. Unlike a POST, an apply that creates an object passes its name to the
 * authorizer, so that `create` is limited by name as well.
 */
export function applyByName(apiGroup: string, resource: string, names: readonly string[]): PolicyRule {
  return may([...READ, 'create', 'patch', 'delete'], apiGroup, [resource], names);
}

/** Read access to what decides where OpenShift nodes pull from, except the current kinds of mirror sets. */
export const NODE_MIRROR_READS: readonly PolicyRule[] = [
  may(['list'], 'operator.openshift.io', ['imagecontentsourcepolicies']),
  may(['get'], 'config.openshift.io', ['images'], ['cluster']),
  may(['get'], 'config.openshift.io', ['clusterversions'], ['version']),
  may(['get'], 'machineconfiguration.openshift.io', ['machineconfigs'], ['99-worker-generated-registries']),
];

// Pods and workloads, hardened by default.

/** `securityContext` of a container without special needs: Pod Security level `restricted`, and a read-only root file system. */
export const HARDENED_CONTAINER: SecurityContext = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  privileged: false,
  readOnlyRootFilesystem: true,
};

/**
 * `securityContext` of a container that works on its node. Root is explicit, as the image has another user. The node's system bus
 * accepts commands only from root, regardless of capabilities.
 */
export const HOST_CONTAINER: SecurityContext = {
  privileged: true,
  readOnlyRootFilesystem: true,
  runAsNonRoot: false,
  runAsUser: 0,
  runAsGroup: 0,
};

/** `securityContext` of the pod around {@link HARDENED_CONTAINER}. No user is set: OpenShift assigns a range per namespace. */
export const HARDENED_POD: PodSecurityContext = {
  runAsNonRoot: true,
  seccompProfile: { type: 'RuntimeDefault' },
};

export interface DeploymentInput {
  readonly metadata: ObjectMeta;
  /** Must not change after the first release: selectors are immutable. */
  readonly selector: Readonly<Record<string, string>>;
  readonly replicas: number;
  readonly pod: PodSpec;
  readonly podAnnotations?: Readonly<Record<string, string>> | undefined;
}

/** A Deployment with rolling updates, spread over nodes. */
export function deployment(input: DeploymentInput): KubeObject {
  return kubernetesObject('Deployment', input.metadata, {
    spec: {
      replicas: input.replicas,
      revisionHistoryLimit: 3,
      selector: { matchLabels: input.selector },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      template: {
        metadata: {
          labels: input.selector,
          ...(input.podAnnotations === undefined ? {} : { annotations: input.podAnnotations }),
        },
        spec: {
          topologySpreadConstraints: [
            {
              maxSkew: 1,
              topologyKey: 'kubernetes.io/hostname',
              whenUnsatisfiable: 'ScheduleAnyway',
              labelSelector: { matchLabels: input.selector },
            },
          ],
          ...input.pod,
        },
      },
    },
  });
}

export interface DaemonSetInput {
  readonly metadata: ObjectMeta;
  readonly selector: Readonly<Record<string, string>>;
  readonly template: PodTemplate;
  /** Absent: the API server's default, RollingUpdate with one pod at a time. */
  readonly maxUnavailable?: number | string;
}

/** A DaemonSet with only the given fields: the shape is a contract. */
export function daemonSet({ metadata, selector, template, maxUnavailable }: DaemonSetInput): KubeObject {
  const strategy = maxUnavailable !== undefined && {
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable } },
  };
  return kubernetesObject('DaemonSet', metadata, {
    spec: { selector: { matchLabels: selector }, ...strategy, template },
  });
}

/** Allows one unavailable replica during drains. */
export function podDisruptionBudget(
  metadata: ObjectMeta,
  selector: Readonly<Record<string, string>>,
): KubeObject {
  return kubernetesObject('PodDisruptionBudget', metadata, {
    spec: {
      maxUnavailable: 1,
      selector: { matchLabels: selector },
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
    },
  });
}

/** A ClusterIP Service. */
export function service(
  metadata: ObjectMeta,
  selector: Readonly<Record<string, string>>,
  ports: readonly ServicePort[],
): KubeObject {
  return kubernetesObject('Service', metadata, {
    spec: { selector, ports: ports.map((port) => ({ ...port, protocol: 'TCP' })) },
  });
}
