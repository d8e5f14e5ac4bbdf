/**
 * A whole Kubernetes node: kubelet 1.36 and CRI-O as units of a systemd of its own, a control plane with scheduler and
 * controller manager, and registries with passwords. Only inside {@link runInside}.
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type ControlPlane, startControlPlane } from '../../control-plane/control-plane.ts';
import type { CrdName } from '../../control-plane/crds.ts';
import { Daemon } from '../../control-plane/daemon.ts';
import { eventually } from '../../control-plane/eventually.ts';
import { SERVICE_ADDRESS } from '../../control-plane/flags.ts';
import type { TestObject } from '../../control-plane/resource-path.ts';
import { Authority } from '../../control-plane/x509.ts';
import { meta } from '../../support/meta.ts';
import { type NodeBinaries, nodeBinaries } from './build.ts';
import { ADDRESS, joiningFiles } from './joining.ts';
import type { LayoutName } from './layouts.ts';
import { machineFolder } from './namespaces.ts';
import { TestRegistry, waiterImage } from './registries.ts';
import { startDns } from './services.ts';
import { NodeSystem } from './system.ts';

export { ADDRESS } from './joining.ts';

export const NODE_NAME = 'node1';
const CAP_SYS_RESOURCE = 24n;

export interface NodeOptions {
  /** @default {'kubeadm'} */
  readonly layout?: LayoutName;
  /** Registries besides the platform's `registry.example.com`: host to user. */
  readonly registries?: Readonly<Record<string, string>>;
  /** Size of the disk under /var/lib/kubelet, such as `64m`. @default {that of this machine} */
  readonly kubeletDisk?: string;
  /** Further definitions in the cluster. @default {[]} */
  readonly crds?: readonly CrdName[];
  readonly progress?: (line: string) => void;
}

export class NodeMachine {
  readonly folder: string;
  readonly plane: ControlPlane;
  readonly binaries: NodeBinaries;
  readonly #registries: ReadonlyMap<string, TestRegistry>;
  readonly system: NodeSystem;

  private constructor(parts: {
    folder: string;
    plane: ControlPlane;
    binaries: NodeBinaries;
    registries: ReadonlyMap<string, TestRegistry>;
    system: NodeSystem;
  }) {
    this.folder = parts.folder;
    this.plane = parts.plane;
    this.binaries = parts.binaries;
    this.#registries = parts.registries;
    this.system = parts.system;
  }

  /** Boots, and waits until the node is Ready: about ten seconds when everything is built. */
  static async start(options: NodeOptions = {}): Promise<NodeMachine> {
    const folder = machineFolder();
    if (folder === undefined) throw new Error('A node is started inside of runInside() only');
    const binaries = await nodeBinaries(options.progress);
    const users = { 'registry.example.com': 'platform', ...options.registries };
    const addresses = Object.fromEntries(
      Object.keys(users).map((host, index) => [host, `10.99.0.${11 + index}`]),
    );
    execFileSync(
      join(import.meta.dirname, 'boot.sh'),
      [folder, basename(folder), ADDRESS, ...Object.values(addresses)],
      {
        stdio: ['ignore', 'inherit', 'inherit'],
        env: { ...process.env, KUBELET_DISK: options.kubeletDisk ?? '' },
      },
    );
    const names = Object.entries(addresses).map(([host, address]) => `${address} ${host}\n`);
    writeFileSync('/etc/hosts', `127.0.0.1 localhost\n${ADDRESS} ${NODE_NAME}\n${names.join('')}`);
    await startDns(ADDRESS, { ...addresses, [NODE_NAME]: ADDRESS });
    const registries = await startRegistries({ folder, users, addresses, binaries });
    const plane = await startControlPlane({
      controllerManager: true,
      nodeAddress: ADDRESS,
      crds: options.crds ?? [],
      // Without kube-proxy, the API server calls webhooks at the addresses of their pods.
      apiServerFlags: ['--enable-aggregator-routing=true'],
    });
    await startScheduler(plane, binaries);
    await installNode({ folder, binaries, plane, layout: options.layout ?? 'kubeadm', registries });
    const system = new NodeSystem(folder);
    system.boot();
    const node = new NodeMachine({ folder, plane, binaries, registries, system });
    await node.ready();
    return node;
  }

  registry(host: string): TestRegistry {
    const found = this.#registries.get(host);
    if (found === undefined) throw new Error(`The machine has no registry ${host}`);
    return found;
  }

  /** PEM of the CA of the registries. */
  get registryAuthority(): string {
    return readFileSync('/etc/containers/certs.d/registry.example.com/ca.crt', 'utf8');
  }

  /** Pushes an image of the program that waits to `host/repository:tag`; another tag is another image. Returns its name. */
  image(host: string, repository: string, tag: string): string {
    const mark = `${host}-${repository}-${tag}`.replaceAll(/[^\w.-]/g, '-');
    this.registry(host).push(waiterImage(this.folder, this.binaries.waiter, mark), `${repository}:${tag}`);
    return `${host}/${repository}:${tag}`;
  }

  /** Waits until the node is Ready by a heartbeat of the kubelet at `since` or later. */
  async ready(since = 0, name: string = NODE_NAME): Promise<void> {
    // Times have whole seconds, and without a change the kubelet sends a heartbeat every five minutes.
    const second = Math.floor(since / 1000) * 1000;
    try {
      await eventually(
        async () => {
          const node = await this.plane.get(meta('v1 Node', { name }));
          const { conditions = [] } = (node?.['status'] ?? {}) as { conditions?: readonly Condition[] };
          const { status, lastHeartbeatTime = '' } = conditions.find(({ type }) => type === 'Ready') ?? {};
          if (status !== 'True' || (since > 0 && !(Date.parse(lastHeartbeatTime) >= second)))
            throw new Error('the node is not Ready');
        },
        { withinMs: 120_000, everyMs: 200 },
      );
    } catch (error) {
      if (error instanceof Error) error.message += `\n${this.logs()}`;
      throw error;
    }
  }

  /** Resets and boots the node, and waits until it is Ready again. */
  async reboot(): Promise<void> {
    await this.system.lose();
    const since = Date.now();
    this.system.boot();
    await this.ready(since);
  }

  /** Last log lines of systemd, CRI-O and the kubelet. */
  logs(): string {
    const files = [this.system.logPath, '/var/log/crio.log', '/var/log/kubelet.log'];
    return files
      .filter((file) => existsSync(file))
      .map((file) => `--- ${file}\n${readFileSync(file, 'utf8').split('\n').slice(-15).join('\n')}`)
      .join('\n');
  }

  /** Runs a program on the node. Throws with its output. */
  run(program: string, ...args: readonly string[]): string {
    return this.system.run(program, ...args);
  }

  /** Identifies a start of the unit. */
  invocation(unit = 'kubelet.service'): string {
    return this.run('/usr/bin/systemctl', 'show', '-P', 'InvocationID', unit);
  }

  async stop(): Promise<void> {
    this.system.end();
    for (const registry of this.#registries.values()) await registry.stop();
    await this.plane.stop();
  }
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly lastHeartbeatTime?: string;
}

async function startRegistries(input: {
  folder: string;
  users: Readonly<Record<string, string>>;
  addresses: Readonly<Record<string, string>>;
  binaries: NodeBinaries;
}): Promise<ReadonlyMap<string, TestRegistry>> {
  const { folder, users, addresses, binaries } = input;
  const authority = new Authority('test-registries');
  const registries = new Map<string, TestRegistry>();
  for (const [host, user] of Object.entries(users)) {
    const registry = new TestRegistry(
      { host, user, address: addresses[host] ?? '' },
      join(folder, 'registries'),
      authority,
    );
    await registry.start();
    registries.set(host, registry);
  }
  registries
    .get('registry.example.com')
    ?.push(waiterImage(folder, binaries.waiter, 'pause'), 'infra/pause:1');
  return registries;
}

async function startScheduler(
  { folder, kubeconfig }: ControlPlane,
  { scheduler }: NodeBinaries,
): Promise<void> {
  const command = [scheduler, `--kubeconfig=${kubeconfig}`, '--leader-elect=false', '--secure-port=0'];
  await new Daemon({ name: 'kube-scheduler', folder, command, ready: () => Promise.resolve(true) }).start();
}

async function installNode(input: {
  folder: string;
  binaries: NodeBinaries;
  plane: ControlPlane;
  layout: LayoutName;
  registries: ReadonlyMap<string, TestRegistry>;
}): Promise<void> {
  const { folder, binaries, plane, layout, registries } = input;
  const port = new URL(plane.server).port;
  // In place of kube-proxy, for the only Service in use.
  for (const chain of ['PREROUTING', 'OUTPUT'])
    execFileSync(
      'iptables',
      `-t nat -A ${chain} -d ${SERVICE_ADDRESS} -p tcp --dport 443 -j DNAT --to-destination ${ADDRESS}:${port}`.split(
        ' ',
      ),
    );
  const files = await joiningFiles(plane, {
    name: layout,
    node: NODE_NAME,
    address: ADDRESS,
    pods: '10.244.0.0/24',
    cgroup: basename(folder),
    pauseAuth: registries.get('registry.example.com')?.config() ?? '{}',
  });
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    if (text.startsWith('#!')) chmodSync(path, 0o755);
  }
  installPrograms(binaries);
  if (layout === 'openshift') execFileSync('mount', ['-o', 'remount,ro', '/usr']);
}

function installPrograms({ kubelet, crio }: NodeBinaries): void {
  const own = (name: string): string => join(import.meta.dirname, name);
  for (const [path, target] of [
    ['/usr/bin/kubelet', kubelet],
    ['/usr/bin/crio', crio],
  ] as const)
    symlinkSync(target, path);
  copyFileSync(own('pinns'), '/usr/bin/pinns');
  copyFileSync('/usr/sbin/runc', '/usr/bin/runc.real');
  if (hasCapability(CAP_SYS_RESOURCE)) copyFileSync('/usr/sbin/runc', '/usr/bin/runc');
  else copyFileSync(own('runc-without-resource'), '/usr/bin/runc');
  for (const name of ['pinns', 'runc', 'runc.real']) chmodSync(`/usr/bin/${name}`, 0o755);
}

function hasCapability(number: bigint): boolean {
  const line = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  return ((BigInt(`0x${line}`) >> number) & 1n) === 1n;
}

/** A pod of one container that pulls each time, in `namespace`. */
export function podOf(name: string, image: string, namespace = 'default', spec: object = {}): TestObject {
  return {
    ...meta('v1 Pod', { name, namespace }),
    spec: {
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      containers: [{ name: 'main', image, imagePullPolicy: 'Always' }],
      ...spec,
    },
  };
}
