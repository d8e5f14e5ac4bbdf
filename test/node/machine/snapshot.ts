/** Snapshots of a node and a cluster, for comparison. */
import type { NodeMachine } from './node.ts';
import { ok } from './product.ts';

/** State of kubelet and CRI-O, which changes while they run. */
const THEIRS = [
  'pods',
  'pki',
  'plugins',
  'plugins_registry',
  'pod-resources',
  'device-plugins',
  'image_manager',
  'checkpoints',
  'actuated_pods_state',
  'allocated_pods_state',
  'cpu_manager_state',
  'memory_manager_state',
  'dra_manager_state',
].map((name) => `/var/lib/kubelet/${name}`);
const FOLDERS = ['/etc', '/usr/libexec', '/usr/lib/systemd/system', '/var/lib/kubelet'];

/** Every file and folder that our programs could write to, one per line: type, mode, owner, path and hash of the content. */
export function nodeFiles(node: NodeMachine): ReadonlySet<string> {
  const pruned = THEIRS.map((path) => `-path ${path}`).join(' -o ');
  const script = `find ${FOLDERS.join(' ')} \\( ${pruned} \\) -prune -o -printf '%y %m %U:%G %p\\n'
    find ${FOLDERS.join(' ')} \\( ${pruned} \\) -prune -o -type f -print0 | xargs -0 sha256sum`;
  return new Set(node.run('/bin/bash', '-c', script).split('\n'));
}

/** Kinds that controllers of the cluster create, and Events. */
const DERIVED =
  'Event Lease Pod ReplicaSet ControllerRevision EndpointSlice Endpoints Job ComponentStatus'.split(' ');

/** Every object of the cluster, one per line: kind, namespace and name. */
export async function clusterObjects(node: NodeMachine): Promise<ReadonlySet<string>> {
  const text = await ok(
    node,
    `kubectl get "$(kubectl api-resources --verbs=list -o name | paste -sd,)" -A --no-headers \\
       -o custom-columns=K:.kind,NS:.metadata.namespace,N:.metadata.name`,
  );
  const lines = text.split('\n').map((line) => line.trim().replaceAll(/ +/g, ' '));
  return new Set(lines.filter((line) => line !== '' && !DERIVED.includes(line.split(' ')[0] ?? '')));
}

/** Added and removed lines, sorted. */
export function changes(before: ReadonlySet<string>, after: ReadonlySet<string>): readonly string[] {
  return [
    ...[...before].filter((line) => !after.has(line)).map((line) => `- ${line}`),
    ...[...after].filter((line) => !before.has(line)).map((line) => `+ ${line}`),
  ].sort();
}
