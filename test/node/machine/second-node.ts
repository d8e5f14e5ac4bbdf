/** A second node of a test machine, of kubeadm: a systemd with kubelet and CRI-O in further namespaces, on the same network. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ADDRESS, joiningFiles } from './joining.ts';
import type { NodeMachine } from './node.ts';
import { NodeSystem } from './system.ts';

export const SECOND_NAME = 'node2';
const SECOND_ADDRESS = '10.99.0.30';
const PODS = '10.244.1.0/24';

/** Joins, also after a loss of power, and waits until the node is Ready. */
export async function startSecondNode(machine: NodeMachine): Promise<NodeSystem> {
  const folder = join(machine.folder, SECOND_NAME);
  const cgroup = `${basename(machine.folder)}/${SECOND_NAME}`;
  const files = await joiningFiles(machine.plane, {
    name: 'kubeadm',
    node: SECOND_NAME,
    address: SECOND_ADDRESS,
    pods: PODS,
    cgroup,
    pauseAuth: machine.registry('registry.example.com').config(),
  });
  for (const [path, text] of Object.entries(files)) {
    const file = join(folder, 'files', path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text, { mode: text.startsWith('#!') ? 0o755 : 0o644 });
  }
  const script = join(import.meta.dirname, 'second-node.sh');
  const system = new NodeSystem(folder, {
    namespaces: ['--net', '--uts', '--ipc', '--propagation', 'private'],
    prepare: [script, folder, cgroup, SECOND_ADDRESS, SECOND_NAME, ADDRESS].join(' '),
  });
  const since = Date.now();
  system.boot();
  const ip = (...args: readonly string[]): unknown => execFileSync('ip', args);
  // The network interface of a reset machine is removed some time later.
  if (existsSync('/sys/class/net/second0')) ip('link', 'delete', 'second0');
  ip('link', 'add', 'second0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', await system.pid());
  ip('link', 'set', 'second0', 'master', 'node0', 'up');
  ip('route', 'replace', PODS, 'via', SECOND_ADDRESS);
  await machine.ready(since, SECOND_NAME);
  return system;
}
