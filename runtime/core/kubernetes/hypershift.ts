/**
 * Which objects HyperShift's operators write. By default, Pullwright only observes those.
 *
 * Source of the rule: the user agents that HyperShift's operators set (`HCCOUserAgent` in its `support/config`, and the `main.go`
 * of the other two), which become their field managers, and the owners they set in a control plane namespace.
 */
import type { KubeObject } from './object.ts';

/**
 * If a client sets no field manager, the API server derives it from the user agent. Each operator sets a user agent for its main
 * client. Its other clients, and older releases, have the name of the executable.
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

const apiVersion = 'hypershift.openshift.io/v1beta1';

export const HOSTED_CLUSTER = { apiVersion, kind: 'HostedCluster' } as const;
export const NODE_POOL = { apiVersion, kind: 'NodePool' } as const;
export const PLANES = { apiVersion, kind: 'HostedControlPlane' };

/** `auto`: observe objects that an operator of HyperShift writes, own all others. */
export type OwnershipMode = 'auto' | 'own' | 'observe';

/** The operator that writes `object`: its field manager, or the kind of its owner; undefined if none is found. */
export function operatorOf(object: KubeObject | undefined): string | undefined {
  const manager = object?.metadata.managedFields?.find((entry) => isOperator(entry.manager ?? ''));
  const owner = object?.metadata.ownerReferences?.find((reference) => OWNERS.has(reference.kind));
  return manager?.manager ?? owner?.kind;
}

/** Whether a field manager is one of HyperShift's operators. */
export function isOperator(manager: string): boolean {
  return MANAGERS.has(manager);
}

/** The operator that writes `object` if Pullwright only observes it; undefined if Pullwright owns it. */
export function observedIn(mode: OwnershipMode, object: KubeObject | undefined): string | undefined {
  if (mode === 'own') return undefined;
  const operator = operatorOf(object);
  return mode === 'observe' ? (operator ?? 'another operator') : operator;
}

/** Why nothing is planned for an object of a dump; completes a sentence. */
export const OWNERSHIP_UNKNOWN: string =
  'has no managedFields, so nothing is planned: dump it with kubectl get --show-managed-fields, or set mode to "own"';

/**
 * Whether an operator may write the object although nothing shows it: `kubectl get -o yaml` omits managedFields by default.
 * An API server always returns them. A label of Pullwright or an operator as owner is sufficient evidence.
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
  /** Pull secret of the tenant. */
  additional: 'additional-pull-secret',
  /** The merge of both. */
  global: 'global-pull-secret',
  /** Secret in the control plane namespace that holds the platform's credentials. */
  platform: 'pull-secret',
  dataKey: '.dockerconfigjson',
  /** Second key, set by the reconciler: marks a document whose removed entries were checked. */
  judgedKey: 'pullwright-judged',
  secretType: 'kubernetes.io/dockerconfigjson',
  /** DaemonSet, its ServiceAccount, its Roles and RoleBindings. */
  syncer: 'global-pull-secret-syncer',
  /** Lease with which the agents take turns at restarts. */
  turns: 'global-pull-secret-syncer-turns',
  nodeLabel: 'hypershift.openshift.io/nodepool-globalps-enabled',
  machineLabel: 'managed.hypershift.openshift.io.hypershift.openshift.io/nodepool-globalps-enabled',
  /** On a Machine: `<namespace>/<NodePool>`. */
  nodePoolAnnotation: 'hypershift.openshift.io/nodePool',
  kubeletFile: '/var/lib/kubelet/config.json',
} as const;

/** Label of the PullStatuses that agents write about their nodes; the reconciler selects them by it. */
export const NODE_REPORT_LABEL = 'pullwright.dev/reports';
/** Value of {@link NODE_REPORT_LABEL}. */
export const NODE_REPORT = 'node';

/**
 * Ports of the agent on the node's network. The probe port is below 1024, so that no unprivileged user can bind it first.
 * OpenShift's registry of host ports reserves 9000 to 9999 for access from other machines; both ports are free there.
 */
export const AGENT_PORTS = { probes: 947, metrics: 9547 } as const;
