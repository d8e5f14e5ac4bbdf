/** Upstream's credential provider on nodes with OpenShift's layout, as in the platform's image. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CrdName } from '../../control-plane/crds.ts';
import type { TestObject } from '../../control-plane/resource-path.ts';
import { reconcile } from '../../credential-provider/support/reconcile-once.ts';
import type { NodeMachine } from './node.ts';

export const PLUGINS = '/usr/libexec/kubelet-image-credential-provider-plugins';
export const PLUGIN: string = `${PLUGINS}/crio-credential-provider`;
/** Definitions of the Machine Config Operator. */
export const OPERATOR_CRDS: readonly CrdName[] = [
  'machineconfigs.machineconfiguration.openshift.io',
  'machineconfigpools.machineconfiguration.openshift.io',
];
/** The pool of the one node. */
export const WORKER_POOL: TestObject = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfigPool',
  metadata: { name: 'worker' },
  spec: { nodeSelector: { matchLabels: { 'node-role.kubernetes.io/worker': '' } } },
};
const MIRROR =
  '[[registry]]\nprefix = "quay.example.com"\nlocation = "quay.example.com"\n[[registry.mirror]]\nlocation = "mirror.example.com"\n';

/** Stand-in for podman with the calls of the rendered script. */
const PODMAN = `#!/bin/bash
set -euo pipefail
store=/run/podman-of-the-test
case "$1" in
  pull) mkdir -p "$store"; skopeo copy -q --authfile "$4" "docker://$5" "dir:$store/image" ;;
  create) echo c0ffee ;;
  cp) for layer in "$store"/image/*; do
        if tar -xOf "$layer" "\${2#*:/}" > "$3" 2> /dev/null || tar -xOf "$layer" "./\${2#*:/}" > "$3" 2> /dev/null; then exit 0; fi
      done; exit 125 ;;
  rm) rm -rf "$store" ;;
  *) exit 125 ;;
esac
`;

/** The desired state of the node, as input of the reconciler. */
export const NODE_SHAPE = {
  platform: 'BareMetal',
  pools: ['worker'],
  nodes: [{ name: 'node1', pool: 'worker', kubelet: 'v1.36.3', runtime: 'cri-o://1.36.1' }],
  matchImages: ['quay.example.com'],
} as const;

/** The MachineConfig of its pool. */
export function kubeletConfig(): TestObject {
  return reconcile(NODE_SHAPE).configs[0] as TestObject;
}

/** As in the platform's image: upstream's provider in its folder, and `/usr/local` as a link into `/var`. */
export function furnish(node: NodeMachine): void {
  const mount = (...args: readonly string[]): unknown => execFileSync('mount', args);
  mount('-o', 'remount,rw', '/usr');
  mkdirSync(PLUGINS, { recursive: true });
  copyFileSync(node.binaries.originalProvider, PLUGIN);
  writeFileSync(`${PLUGINS}/ecr-credential-provider`, '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  writeFileSync('/usr/bin/podman', PODMAN, { mode: 0o755 });
  const local = join(node.folder, 'usrlocal');
  cpSync('/usr/local/bin/kubenswrapper', join(local, 'bin/kubenswrapper'), { recursive: true });
  mount('-o', 'remount,ro', '/usr');
  mount('--bind', local, '/usr/local');
  const { port } = new URL(node.plane.server);
  writeFileSync(
    '/etc/kubernetes/apiserver-url.env',
    `KUBERNETES_SERVICE_HOST='10.99.0.10'\nKUBERNETES_SERVICE_PORT='${port}'\n`,
  );
  writeFileSync('/etc/containers/registries.conf.d/10-mirrors.conf', MIRROR);
  writeFileSync('/var/lib/kubelet/config.json', node.registry('registry.example.com').config());
}
