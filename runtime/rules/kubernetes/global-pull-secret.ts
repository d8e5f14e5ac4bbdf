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
  /** Beside it, in what the reconciler writes: the mark of a document whose removals are judged. */
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
 * Ports of the agent on the node's network. OpenShift's registry of host ports leaves 9000 to 9999 to what other machines reach,
 * and wants all else outside of it; both are free there, and in none of the ranges that Linux and NodePorts give out.
 */
export const AGENT_PORTS = { probes: 29_447, metrics: 9547 } as const;
