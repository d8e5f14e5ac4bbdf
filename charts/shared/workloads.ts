/**
 * Pods and what runs them: typed as far as we render, hardened unless said otherwise.
 */
import type { KubeObject, ObjectMeta } from '../../runtime/rules/kubernetes/object.ts';

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly imagePullPolicy?: 'Always' | 'IfNotPresent' | 'Never';
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly EnvVar[];
  readonly ports?: readonly {
    readonly name: string;
    readonly containerPort: number;
    readonly protocol?: 'TCP';
  }[];
  readonly resources?: Resources;
  readonly volumeMounts?: readonly VolumeMount[];
  readonly securityContext?: Readonly<Record<string, unknown>>;
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly startupProbe?: Probe;
  readonly terminationMessagePolicy?: 'FallbackToLogsOnError' | 'File';
}

/** Never a Secret's value: credentials are mounted as files. */
export type EnvVar =
  | { readonly name: string; readonly value: string }
  | { readonly name: string; readonly valueFrom: { readonly fieldRef: { readonly fieldPath: string } } };

export interface Resources {
  readonly requests?: Readonly<Record<string, string>>;
  readonly limits?: Readonly<Record<string, string>>;
}

export interface VolumeMount {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: boolean;
}

export interface Probe {
  readonly httpGet: {
    readonly path: string;
    readonly port: string | number;
    readonly host?: string;
    readonly scheme?: 'HTTP' | 'HTTPS';
  };
  readonly periodSeconds?: number;
  readonly timeoutSeconds?: number;
  readonly failureThreshold?: number;
}

export type Volume = { readonly name: string } & (
  | {
      readonly hostPath: {
        readonly path: string;
        readonly type: 'Directory' | 'DirectoryOrCreate' | 'File' | 'Socket';
      };
    }
  | {
      readonly secret: {
        readonly secretName: string;
        readonly optional?: boolean;
        readonly defaultMode?: number;
      };
    }
  | { readonly configMap: { readonly name: string; readonly optional?: boolean } }
  | { readonly emptyDir: { readonly medium?: 'Memory'; readonly sizeLimit?: string } }
  | { readonly projected: { readonly sources: readonly unknown[]; readonly defaultMode?: number } }
);

export interface Toleration {
  readonly key?: string;
  readonly operator?: 'Exists' | 'Equal';
  readonly value?: string;
  readonly effect?: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute';
}

export interface PodSpec {
  readonly serviceAccountName: string;
  readonly automountServiceAccountToken: boolean;
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes?: readonly Volume[];
  readonly securityContext?: Readonly<Record<string, unknown>>;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly affinity?: Readonly<Record<string, unknown>>;
  readonly tolerations?: readonly Toleration[];
  readonly topologySpreadConstraints?: readonly Readonly<Record<string, unknown>>[];
  readonly priorityClassName?: string;
  readonly dnsPolicy?: 'Default' | 'ClusterFirst';
  readonly hostNetwork?: boolean;
  readonly restartPolicy?: 'Always' | 'Never' | 'OnFailure';
  readonly terminationGracePeriodSeconds?: number;
  readonly enableServiceLinks?: boolean;
}

export interface PodTemplate {
  readonly metadata: {
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: PodSpec;
}

/** `securityContext` of a container that needs nothing: what the Pod Security level `restricted` asks for, and a read-only root. */
export const HARDENED_CONTAINER: Readonly<Record<string, unknown>> = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  privileged: false,
  readOnlyRootFilesystem: true,
};

/** `securityContext` of the pod around {@link HARDENED_CONTAINER}. No user is named: OpenShift gives each namespace its own range. */
export const HARDENED_POD: Readonly<Record<string, unknown>> = {
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
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: input.metadata,
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
  };
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
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: input.metadata,
    spec: { selector: { matchLabels: input.selector }, ...updateStrategy, template: input.template },
  };
}

/** Keeps all but one replica alive during drains. */
export function podDisruptionBudget(
  metadata: ObjectMeta,
  selector: Readonly<Record<string, string>>,
): KubeObject {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata,
    spec: {
      maxUnavailable: 1,
      selector: { matchLabels: selector },
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
    },
  };
}

export interface ServicePort {
  readonly name: string;
  readonly port: number;
  readonly targetPort: string | number;
}

/** A ClusterIP Service. */
export function service(
  metadata: ObjectMeta,
  selector: Readonly<Record<string, string>>,
  ports: readonly ServicePort[],
): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    spec: { selector, ports: ports.map((port) => ({ ...port, protocol: 'TCP' })) },
  };
}
