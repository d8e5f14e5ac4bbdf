/**
 * The kinds of Kubernetes as we write them, checked by the compiler against the API: cdk8s-plus-28 where it has the kind,
 * client-node for the admission policies, which it has not. Types only: nothing of either is loaded.
 */
import type {
  V1MutatingAdmissionPolicyBindingSpec,
  V1MutatingAdmissionPolicySpec,
  V1PodFailurePolicy,
  V1ValidatingAdmissionPolicyBindingSpec,
  V1ValidatingAdmissionPolicySpec,
} from '@kubernetes/client-node';
import type * as k8s from 'cdk8s-plus-28/lib/imports/k8s.js';
import type { KubeObject, ObjectMeta } from '../../runtime/rules/kubernetes/object.ts';

/**
 * What an L1 type of cdk8s looks like in the object that is written: plain numbers and texts instead of `IntOrString` and
 * `Quantity`, readonly lists, and the API's spelling where cdk8s has one of its own.
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

/** cdk8s writes acronyms its own way in a few names. */
type Spelled<Key> = Key extends 'hostPid'
  ? 'hostPID'
  : Key extends 'hostIpc'
    ? 'hostIPC'
    : Key extends 'clusterIp'
      ? 'clusterIP'
      : Key extends 'nonResourceUrLs'
        ? 'nonResourceURLs'
        : Key;

export type Container = Plain<k8s.Container>;
export type EnvVar = Plain<k8s.EnvVar>;
export type PodSpec = Plain<k8s.PodSpec>;
export type PodTemplate = Plain<k8s.PodTemplateSpec>;
export type Resources = Plain<k8s.ResourceRequirements>;
export type SecurityContext = Plain<k8s.SecurityContext>;
export type PodSecurityContext = Plain<k8s.PodSecurityContext>;
export type ServicePort = Plain<k8s.ServicePort>;
export type Toleration = Plain<k8s.Toleration>;
export type Volume = Plain<k8s.Volume>;
export type VolumeMount = Plain<k8s.VolumeMount>;

/** One version of a CRD. Its schema is JSON, which the API server itself judges. */
export type CrdVersionObject = Omit<Plain<k8s.CustomResourceDefinitionVersion>, 'schema'> & {
  readonly schema: { readonly openAPIV3Schema: Readonly<Record<string, unknown>> };
};

type CrdSpec = Omit<Plain<k8s.CustomResourceDefinitionSpec>, 'versions'> & {
  readonly versions: readonly CrdVersionObject[];
};

/** cdk8s-plus-28 wants `onPodConditions` in each rule of the failure policy, which the API does not. */
type JobSpec = Omit<Plain<k8s.JobSpec>, 'podFailurePolicy'> & {
  readonly podFailurePolicy?: Plain<V1PodFailurePolicy>;
};

/** What each kind has beside apiVersion, kind and metadata. */
interface Kinds {
  readonly ClusterRole: Omit<Plain<k8s.KubeClusterRoleProps>, 'metadata'>;
  readonly ClusterRoleBinding: Omit<Plain<k8s.KubeClusterRoleBindingProps>, 'metadata'>;
  readonly ConfigMap: Omit<Plain<k8s.KubeConfigMapProps>, 'metadata'>;
  readonly CronJob: Omit<Plain<k8s.KubeCronJobProps>, 'metadata'>;
  readonly CustomResourceDefinition: { readonly spec: CrdSpec };
  readonly DaemonSet: Omit<Plain<k8s.KubeDaemonSetProps>, 'metadata'>;
  readonly Deployment: Omit<Plain<k8s.KubeDeploymentProps>, 'metadata'>;
  readonly Job: { readonly spec: JobSpec };
  readonly MutatingAdmissionPolicy: { readonly spec: Plain<V1MutatingAdmissionPolicySpec> };
  readonly MutatingAdmissionPolicyBinding: { readonly spec: Plain<V1MutatingAdmissionPolicyBindingSpec> };
  readonly MutatingWebhookConfiguration: Omit<Plain<k8s.KubeMutatingWebhookConfigurationProps>, 'metadata'>;
  readonly Namespace: Omit<Plain<k8s.KubeNamespaceProps>, 'metadata'>;
  readonly NetworkPolicy: Omit<Plain<k8s.KubeNetworkPolicyProps>, 'metadata'>;
  readonly PodDisruptionBudget: Omit<Plain<k8s.KubePodDisruptionBudgetProps>, 'metadata'>;
  readonly Role: Omit<Plain<k8s.KubeRoleProps>, 'metadata'>;
  readonly RoleBinding: Omit<Plain<k8s.KubeRoleBindingProps>, 'metadata'>;
  readonly Service: Omit<Plain<k8s.KubeServiceProps>, 'metadata'>;
  readonly ServiceAccount: Omit<Plain<k8s.KubeServiceAccountProps>, 'metadata'>;
  readonly ValidatingAdmissionPolicy: { readonly spec: Plain<V1ValidatingAdmissionPolicySpec> };
  readonly ValidatingAdmissionPolicyBinding: { readonly spec: Plain<V1ValidatingAdmissionPolicyBindingSpec> };
}

/** A kind of Kubernetes that charts and reconcilers write. */
export type Kind = keyof Kinds;

const ADMISSION = 'admissionregistration.k8s.io/v1';
const RBAC = 'rbac.authorization.k8s.io/v1';

const API_VERSION: Readonly<Record<Kind, string>> = {
  ClusterRole: RBAC,
  ClusterRoleBinding: RBAC,
  ConfigMap: 'v1',
  CronJob: 'batch/v1',
  CustomResourceDefinition: 'apiextensions.k8s.io/v1',
  DaemonSet: 'apps/v1',
  Deployment: 'apps/v1',
  Job: 'batch/v1',
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
};

/**
 * An object of a kind of Kubernetes. A field that the API does not have, or a value of another type, does not compile.
 *
 * @param kind e.g. `DaemonSet`; the API version follows from it.
 * @param metadata at least the name.
 * @param fields `spec`, `data`, `rules` and whatever else the kind has.
 *
 * @example
 * ```ts
 * import { kubernetesObject } from './kubernetes.ts';
 * import assert from 'node:assert/strict';
 *
 * const object = kubernetesObject('Service', { name: 'webhook' }, { spec: { ports: [{ port: 443 }] } });
 * assert.equal(object.apiVersion, 'v1');
 * // @ts-expect-error a Service has ports, not port
 * kubernetesObject('Service', { name: 'webhook' }, { spec: { port: 443 } });
 * ```
 */
export function kubernetesObject<K extends Kind>(
  kind: K,
  metadata: ObjectMeta,
  fields: Kinds[K],
): KubeObject {
  return { apiVersion: API_VERSION[kind], kind, metadata, ...fields };
}
