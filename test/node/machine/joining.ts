/** Input of a node that joins a control plane of this machine. */
import { readFileSync } from 'node:fs';
import type { ControlPlane } from '../../control-plane/control-plane.ts';
import { type Files, type LayoutInput, layoutFiles } from './layouts.ts';

/** Paths and addresses of the machine's programs, its DNS and the tests' servers. */
export const ADDRESS = '10.99.0.10';

type Joining = Pick<LayoutInput, 'name' | 'node' | 'address' | 'pods' | 'cgroup' | 'pauseAuth'>;

/** Files of the node, with a kubelet certificate for its name. */
export async function joiningFiles(plane: ControlPlane, node: Joining): Promise<Files> {
  const { port } = new URL(plane.server);
  const account = await plane.user({ name: `system:node:${node.node}`, groups: ['system:nodes'] });
  const kubeconfig = readFileSync(account.kubeconfig, 'utf8');
  return layoutFiles({
    ...node,
    dns: ADDRESS,
    ca: plane.ca,
    kubeconfig: kubeconfig.replaceAll(plane.server, `https://${ADDRESS}:${port}`),
    pauseImage: 'registry.example.com/infra/pause:1',
  });
}
