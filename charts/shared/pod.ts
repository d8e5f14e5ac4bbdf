/** Pod template of our programs without node access, hardened. */
import {
  type Container,
  HARDENED_CONTAINER,
  HARDENED_POD,
  type PodSpec,
} from '../../runtime/core/kubernetes/objects.ts';

/** Probes of the reconciler and webhook containers, which have a port `health`. */
export const PROBES = {
  startupProbe: { httpGet: { path: '/healthz', port: 'health' }, periodSeconds: 2, failureThreshold: 30 },
  livenessProbe: { httpGet: { path: '/healthz', port: 'health' }, periodSeconds: 20, failureThreshold: 3 },
  readinessProbe: { httpGet: { path: '/readyz', port: 'health' }, periodSeconds: 5, failureThreshold: 2 },
} as const;

/** The ports of a container by their names. */
export function namedPorts(ports: Readonly<Record<string, number>>) {
  return Object.entries(ports).map(([name, containerPort]) => ({ name, containerPort }));
}

/**
 * Builds a pod with one container. It mounts the ServiceAccount token unless `more` disables it.
 *
 * @param container overrides of the common defaults; `memory` is its limit
 * @param more additional fields of the pod
 */
export function ownPod(
  serviceAccountName: string,
  { memory = '512Mi', ...container }: Container & { readonly memory?: string },
  more: Partial<PodSpec>,
): PodSpec {
  return {
    serviceAccountName,
    automountServiceAccountToken: true,
    enableServiceLinks: false,
    securityContext: HARDENED_POD,
    ...more,
    containers: [
      {
        imagePullPolicy: 'IfNotPresent',
        securityContext: HARDENED_CONTAINER,
        terminationMessagePolicy: 'FallbackToLogsOnError',
        resources: { requests: { cpu: '20m', memory: '128Mi' }, limits: { memory } },
        ...container,
      },
    ],
  };
}
