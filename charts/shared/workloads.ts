/**
 * Pods and what runs them: hardened unless said otherwise.
 */
import type { KubeObject, ObjectMeta } from '../../runtime/rules/kubernetes/object.ts';
import {
  kubernetesObject,
  type PodSecurityContext,
  type PodSpec,
  type PodTemplate,
  type SecurityContext,
  type ServicePort,
} from './kubernetes.ts';

/** `securityContext` of a container that needs nothing: what the Pod Security level `restricted` asks for, and a read-only root. */
export const HARDENED_CONTAINER: SecurityContext = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  privileged: false,
  readOnlyRootFilesystem: true,
};

/**
 * `securityContext` of a container that works on its node. Root is said explicitly: the image's own user is another one, and
 * the node's system bus takes orders from root alone, whatever capabilities a container has.
 */
export const HOST_CONTAINER: SecurityContext = {
  privileged: true,
  readOnlyRootFilesystem: true,
  runAsNonRoot: false,
  runAsUser: 0,
  runAsGroup: 0,
};

/** `securityContext` of the pod around {@link HARDENED_CONTAINER}. No user is named: OpenShift gives each namespace its own range. */
export const HARDENED_POD: PodSecurityContext = {
  runAsNonRoot: true,
  seccompProfile: { type: 'RuntimeDefault' },
};

export interface DeploymentInput {
  readonly metadata: ObjectMeta;
  /** Never changes after the first release: a selector is immutable. */
  readonly selector: Readonly<Record<string, string>>;
  readonly replicas: number;
  readonly pod: PodSpec;
  readonly podAnnotations?: Readonly<Record<string, string>>;
}

/** A Deployment that replaces its pods one after the other and spreads them over nodes. */
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
  /** Absent: the server's default, RollingUpdate with one at a time. */
  readonly maxUnavailable?: number | string;
}

/** A DaemonSet. Nothing is set that is not asked for: the shape is a contract. */
export function daemonSet(input: DaemonSetInput): KubeObject {
  const updateStrategy =
    input.maxUnavailable === undefined
      ? {}
      : {
          updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: input.maxUnavailable } },
        };
  return kubernetesObject('DaemonSet', input.metadata, {
    spec: { selector: { matchLabels: input.selector }, ...updateStrategy, template: input.template },
  });
}

/** Keeps all but one replica alive during drains. */
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
