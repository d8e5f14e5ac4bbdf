/** Options of the node agent and of the objects around it, with their defaults: what the fleet file and the reconciler both use. */
import type { Resources, Toleration } from '../shared/objects.ts';

/** How the DaemonSet looks: ours, or the one of HyperShift's operator, field by field. */
export type DaemonSetShape = 'pullwright' | 'upstream';

/** The node agent: one pod per eligible node. */
export interface AgentOptions {
  /** Image of the DaemonSet. */
  readonly image: string;
  /** Secrets of `kube-system` that the pods pull it with. @default none */
  readonly imagePullSecrets?: readonly string[];
  /** `upstream` mounts the merged secret only when there is one and rolls the pods with every change. @default {'pullwright'} */
  readonly shape?: DaemonSetShape;
  /** `restricted` drops all but the needed capabilities; untested on hosts with SELinux. @default {'privileged'} */
  readonly security?: 'privileged' | 'restricted';
  /** SELinux type of the container, for `restricted` on hosts with SELinux. */
  readonly seLinuxType?: string;
  /** What happens to entries that others put into the kubelet's file. @default {'keep'}; in a hosted cluster, whose file is HyperShift's, {'drop'} */
  readonly foreign?: 'drop' | 'keep';
  /** What agents do about a Secret that the reconciler has not judged; set from `removals` of the system. */
  readonly removals?: { readonly share?: number; readonly delay?: string };
  /** When the kubelet is restarted. @default {'on-change'} */
  readonly restart?: 'on-change' | 'on-removal' | 'never';
  /**
   * Window over which the restarts of a fleet spread, such as `5m`; `auto`: nodes book turns, so that a tenth of them restarts at
   * once, one node without a wait and any number within about a minute; needs an API token in the pod. @default {'auto'}
   */
  readonly restartWindow?: string;
  /** Each agent watches the two Secrets beside their mounts, which lag by a minute; needs an API token in the pod. @default {true} */
  readonly watch?: boolean;
  /** Each agent writes a PullStatus and Events about its node; needs an API token in the pod. @default {true} */
  readonly report?: boolean;
  /** Pods replaced at once when the DaemonSet itself changes. @default {'10%'} */
  readonly maxUnavailable?: number | string;
  /** @default {'system-node-critical'}, which every cluster has; in a hosted cluster {'openshift-user-critical'} */
  readonly priorityClassName?: string;
  readonly resources?: Resources;
  /** Which nodes tolerate it. @default every taint */
  readonly tolerations?: readonly Toleration[];
  /** Nodes beside those with the eligibility label: any of these label maps. Replaces the nodeSelector by an affinity. */
  readonly alsoNodes?: readonly Readonly<Record<string, string>>[];
  /** Serves metrics on the node's address, port 9547, and renders a PodMonitor. @default {metrics on loopback only} */
  readonly metrics?: {
    /** Secret in `kube-system` with `tls.crt`, `tls.key` and `ca.crt` for {@link METRICS_NAME}, as cert-manager writes it. */
    readonly tlsSecret: string;
  };
  /** Port of the probes, on loopback of the node. @default {29447} */
  readonly healthPort?: number;
  readonly logLevel?: 'debug' | 'info' | 'warn' | 'error';
  /** Removes CRI-O auth files that nothing uses any more. @default {false} */
  readonly janitor?: boolean;
}

/** Only for `shape: upstream`, and only known at run time. */
export interface UpstreamState {
  /** Label value: 8 hexadecimal digits. */
  readonly configHash: string;
  /** Whether an additional secret is there, so that the merged one is mounted. */
  readonly merged: boolean;
}

/** Name that the certificate of the metrics is for. */
export const METRICS_NAME = 'global-pull-secret-syncer.kube-system.svc';
/** In a stand-alone cluster, entries that are not ours belong to the administrator of the nodes. */
export const STANDALONE_AGENT: Pick<AgentOptions, 'foreign'> = { foreign: 'keep' };
/** The class that HyperShift's DaemonSet has; plain Kubernetes knows no such class, and would make no pod. */
export const OPENSHIFT_PRIORITY_CLASS = 'openshift-user-critical';
export const HASH_LABEL = 'hypershift.openshift.io/globalps-config-hash';

/** Whether agents tell the API server about their nodes; HyperShift's own cannot. */
export function reports(options: Pick<AgentOptions, 'report' | 'shape'>): boolean {
  return options.report !== false && options.shape !== 'upstream';
}

/** Whether nodes book their turns; not where nothing restarts. */
export function booksTurns({
  restart,
  restartWindow = 'auto',
}: Pick<AgentOptions, 'restart' | 'restartWindow'>): boolean {
  return restartWindow === 'auto' && restart !== 'never';
}
