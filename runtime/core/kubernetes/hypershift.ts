/**
 * Which objects HyperShift's operators write. Where they do, the default is to watch and to write nothing.
 *
 * Source of the rule: the user agents that HyperShift's operators set (`HCCOUserAgent` in its `support/config`, and the `main.go`
 * of the other two), which the API server makes their field managers, and the owners they set in a control plane namespace.
 */
import type { KubeObject } from './object.ts';

/**
 * The API server takes the name from the user agent when a client names no manager, and each operator sets one for its main
 * client; the names of the executables are what its other clients, and older releases, are known by.
 */
const MANAGERS: ReadonlySet<string> = new Set([
  'hosted-cluster-config-operator-manager',
  'hypershift-controlplane-manager',
  'hypershift-operator-manager',
  'hosted-cluster-config-operator',
  'control-plane-operator',
  'hypershift-operator',
  'hypershift',
]);
const OWNERS: ReadonlySet<string> = new Set(['HostedControlPlane', 'HostedCluster']);

export const HOSTED_CLUSTER = {
  apiVersion: 'hypershift.openshift.io/v1beta1',
  kind: 'HostedCluster',
} as const;

export const PLANES = { apiVersion: 'hypershift.openshift.io/v1beta1', kind: 'HostedControlPlane' };

/** `auto`: observe what an operator of HyperShift is seen to write, own the rest. */
export type OwnershipMode = 'auto' | 'own' | 'observe';

/**
 * Who writes `object`: a field manager, or the kind of its owner; undefined when no operator is seen.
 */
export function operatorOf(object: KubeObject | undefined): string | undefined {
  const manager = object?.metadata.managedFields?.find((entry) => isOperator(entry.manager ?? ''));
  const owner = object?.metadata.ownerReferences?.find((reference) => OWNERS.has(reference.kind));
  return manager?.manager ?? owner?.kind;
}

/** Whether a field manager is one of HyperShift's operators. */
export function isOperator(manager: string): boolean {
  return MANAGERS.has(manager);
}

/** Whether to watch only: the one who writes instead, or undefined when `object` is ours to write. */
export function observedIn(mode: OwnershipMode, object: KubeObject | undefined): string | undefined {
  if (mode === 'own') return undefined;
  const operator = operatorOf(object);
  return mode === 'observe' ? (operator ?? 'another operator') : operator;
}

/** Why an object of a dump decides nothing, the end of a sentence. */
export const OWNERSHIP_UNKNOWN: string =
  'does not say who writes it, so that nothing is planned: dump it with kubectl get --show-managed-fields, or set mode to "own"';

/**
 * Whether the writer of an object is unknown, and may be an operator: `kubectl get -o yaml` omits managedFields by default.
 * An API server always has them; a mark of ours or an operator as owner is evidence enough.
 */
export function isOwnershipUnknown(mode: OwnershipMode, object: KubeObject | undefined): boolean {
  if (mode !== 'auto' || object === undefined || object.metadata.managedFields !== undefined) return false;
  const labels = object.metadata.labels ?? {};
  const isOurs =
    labels['pullwright.dev/owner'] !== undefined || labels['app.kubernetes.io/part-of'] === 'pullwright';
  return !isOurs && operatorOf(object) === undefined;
}

/**
 * Names of the global pull secret system, as HyperShift and its users know them.
 *
 * Source: requirement "Global Pull Secret for Hosted Control Planes"; HyperShift's `globalps` controller.
 */
export const GLOBAL_PULL_SECRET = {
  namespace: 'kube-system',
  /** Guest namespace whose pull secret the syncer's Role may read. */
  configNamespace: 'openshift-config',
  /** Copy of the HostedCluster's pull secret. */
  original: 'original-pull-secret',
  /** What the tenant adds. */
  additional: 'additional-pull-secret',
  /** The merge of both. */
  global: 'global-pull-secret',
  /** Secret in the control plane namespace that holds the platform's credentials. */
  platform: 'pull-secret',
  dataKey: '.dockerconfigjson',
  /** Beside it, in what the reconciler writes: the mark of a document whose removals are checked. */
  judgedKey: 'pullwright-judged',
  secretType: 'kubernetes.io/dockerconfigjson',
  /** DaemonSet, its ServiceAccount, its Roles and RoleBindings. */
  syncer: 'global-pull-secret-syncer',
  /** Lease in which the agents book their turn at the restart. */
  turns: 'global-pull-secret-syncer-turns',
  nodeLabel: 'hypershift.openshift.io/nodepool-globalps-enabled',
  machineLabel: 'managed.hypershift.openshift.io.hypershift.openshift.io/nodepool-globalps-enabled',
  /** On a Machine: `<namespace>/<NodePool>`. */
  nodePoolAnnotation: 'hypershift.openshift.io/nodePool',
  kubeletFile: '/var/lib/kubelet/config.json',
} as const;

/** Label of the PullStatuses that agents keep about their nodes, by which the reconciler finds them among all others. */
export const NODE_REPORT_LABEL = 'pullwright.dev/reports';
/** Its value. */
export const NODE_REPORT = 'node';

/**
 * Ports of the agent on the node's network. No local user can bind that of the probes first: it is below 1024. OpenShift's registry of host ports leaves 9000 to 9999 to what other machines reach,
 * and wants all else outside of it; both are free there.
 */
export const AGENT_PORTS = { probes: 947, metrics: 9547 } as const;
