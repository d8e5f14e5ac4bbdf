/**
 * Whether another system manages the kubelet of a node, so that the installer changes nothing. Pure.
 *
 * On a node of the Machine Config Operator the installer would overwrite a drop-in of the same name, the operator would put it
 * back and mark the node as degraded, and each would restart the kubelet.
 */
import type { KubeObject } from '../../core/kubernetes/object.ts';

/** Files of the host that only nodes of the Machine Config Operator have. */
export const MANAGED_MARKS: readonly string[] = [
  '/etc/machine-config-daemon/currentconfig',
  '/etc/machine-config-daemon/node-annotations.json',
  '/etc/ignition-machine-config-encapsulated.json',
];

const CURRENT = 'machineconfiguration.openshift.io/currentConfig';
const DESIRED = 'machineconfiguration.openshift.io/desiredConfig';
const NODE_POOL = 'hypershift.openshift.io/nodePool';

/**
 * Who manages the node's kubelet and how that shows, as the end of a sentence; undefined for none. `marks`: those of
 * {@link MANAGED_MARKS} that are on the host.
 *
 * Source of the rule: the Machine Config Daemon's annotations and state files, the label that HyperShift puts on nodes of a
 * NodePool.
 */
export function managedBy({ metadata }: KubeObject, marks: readonly string[]): string | undefined {
  const pool = metadata.labels?.[NODE_POOL];
  if (pool !== undefined) return `NodePool "${pool}" manages this node (label ${NODE_POOL})`;
  const operator = 'the Machine Config Operator manages this node';
  for (const key of [CURRENT, DESIRED]) {
    const value = metadata.annotations?.[key];
    if (value !== undefined) return `${operator} (annotation ${key} is "${String(value)}")`;
  }
  return marks[0] === undefined ? undefined : `${operator} (it has the file ${marks[0]})`;
}

/** A drop-in without effect: the unit's own command line counts again. */
export const NEUTRAL: string = '# No image pattern is configured\n';

/** Name of the kubelet's file that an installer wrote: its digest is in it. */
export const OWN_FILE: RegExp = /^pullwright-[0-9a-f]{16}\.(?:yaml|env)$/;

/** What a killed run left of such a file. */
export const OWN_LEFTOVER: RegExp = /^\.pullwright-[0-9a-f]{16}\.(?:yaml|env)\.tmp-[0-9a-f-]+$/;

/** Whether a drop-in is one that an installer wrote: it points at a file of ours, or has no effect. */
export function isOwnDropIn(text: string): boolean {
  return (
    text === NEUTRAL || /--image-credential-provider-config=\S*\/pullwright-[0-9a-f]{16}\.yaml\b/.test(text)
  );
}
