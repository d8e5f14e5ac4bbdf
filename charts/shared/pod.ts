/** The pods of our own programs that need nothing of their node: hardened alike. */
import {
  type Container,
  HARDENED_CONTAINER,
  HARDENED_POD,
  type PodSpec,
} from '../../runtime/core/kubernetes/objects.ts';

/** Of the reconciler's and the webhook's container, which have a port `health`. */
export const PROBES = {
  startupProbe: { httpGet: { path: '/healthz', port: 'health' }, periodSeconds: 2, failureThreshold: 30 },
  livenessProbe: { httpGet: { path: '/healthz', port: 'health' }, periodSeconds: 20, failureThreshold: 3 },
  readinessProbe: { httpGet: { path: '/readyz', port: 'health' }, periodSeconds: 5, failureThreshold: 2 },
} as const;

/**
 * A pod of one container, with the token of its ServiceAccount unless `more` says otherwise.
 *
 * @param container what is not said is as for every program; `memory` is its limit
 * @param more other fields of the pod
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
