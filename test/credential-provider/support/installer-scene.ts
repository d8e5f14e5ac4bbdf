/** The compiled installer with a real systemd and API server, and exactly the permissions of the charts. */
import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type InstallerOptions, installerObjects } from '../../../charts/credential-provider/installer.ts';
import { credentialProviderCrd } from '../../../runtime/credential-provider/kind.ts';
import { type ControlPlane, startControlPlane } from '../../control-plane/control-plane.ts';
import { eventually } from '../../control-plane/eventually.ts';
import type { TestObject } from '../../control-plane/resource-path.ts';
import type { Rule } from '../../control-plane/users.ts';
import { executable } from '../../support/executable.ts';
import { meta } from '../../support/meta.ts';
import { RunningAgent } from '../../support/node-agent.ts';
import type { TestSuite } from '../../support/suite.ts';
import { entriesOf, PrivateSystemd, until } from '../../support/systemd.ts';

/** Logs its arguments. With arguments, exits before it is ready when `refuse` exists or its file holds `poison` or is missing. */
const KUBELET = `#!/bin/bash
echo "start \${*:-plain}" >> STATE/log
trap 'exit 0' TERM
[ -n "$*" ] && [ -e STATE/refuse ] && exit 1
for arg in "$@"; do
  case $arg in --image-credential-provider-config=*) grep -q poison "\${arg#*=}" && exit 1; [ -e "\${arg#*=}" ] || exit 1;; esac
done
systemd-notify --ready
while :; do sleep 1000 & wait $!; done
`;

const OBJECT: TestObject = meta('config.openshift.io/v1 CRIOCredentialProviderConfig', { name: 'cluster' });

/** API server for installers. */
export class InstallerCluster {
  readonly plane: ControlPlane;
  readonly account: string;
  readonly program: string;
  #count = 0;

  private constructor(plane: ControlPlane, account: string, program: string) {
    this.plane = plane;
    this.account = account;
    this.program = program;
  }

  static async start(chart: Partial<InstallerOptions> = {}): Promise<InstallerCluster> {
    const plane = await startControlPlane({ crds: ['pullstatuses.pullwright.dev'] });
    await plane.apply(credentialProviderCrd());
    const rights = rightsOf(installerObjects({ image: 'registry.example.com/pullwright:1', ...chart }));
    const user = await plane.user({ name: 'installer', by: 'token', ...rights });
    const account = join(plane.folder, 'account');
    mkdirSync(account);
    writeFileSync(join(account, 'ca.crt'), plane.ca);
    symlinkSync(user.tokenFile, join(account, 'token'));
    return new InstallerCluster(plane, account, await executable());
  }

  get env(): NodeJS.ProcessEnv {
    const { port } = new URL(this.plane.server);
    return { ...process.env, KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: port };
  }

  /** Arguments with which the executable finds this API server without a kubeconfig. */
  providerArgs(state: string): readonly string[] {
    const env = join(state, 'apiserver-url.env');
    const { port } = new URL(this.plane.server);
    writeFileSync(env, `KUBERNETES_SERVICE_HOST=127.0.0.1\nKUBERNETES_SERVICE_PORT=${port}\n`);
    return [`--apiserver-env=${env}`, `--ca-file=${this.account}/ca.crt`, `--auth-dir=${state}/auth`].map(
      (arg) => `--provider-arg=${arg}`,
    );
  }

  /** Sets the entries; none removes the object. */
  async entries(...matchImages: readonly string[]): Promise<void> {
    if (matchImages.length === 0) await this.plane.remove(OBJECT);
    else await eventually(() => this.plane.apply({ ...OBJECT, spec: { matchImages } }));
  }

  /** Adds a Node; returns its name. */
  async node(kubelet: string, runtime: string, metadata: Record<string, unknown> = {}): Promise<string> {
    const name = `node-${(this.#count += 1)}`;
    await this.plane.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name, ...metadata } });
    await this.versions(name, kubelet, runtime);
    return name;
  }

  /** Sets the versions in the status of a Node. */
  async versions(name: string, kubelet: string, runtime: string): Promise<void> {
    const unknown = ['machineID', 'systemUUID', 'bootID', 'kernelVersion', 'osImage'];
    const rest = ['kubeProxyVersion', 'operatingSystem', 'architecture'];
    const blank = Object.fromEntries([...unknown, ...rest].map((field) => [field, '']));
    const nodeInfo = { ...blank, kubeletVersion: kubelet, containerRuntimeVersion: runtime };
    const patched = await this.plane.client.request(
      'PATCH',
      `/api/v1/nodes/${name}/status`,
      { status: { nodeInfo } },
      'application/merge-patch+json',
    );
    assert.equal(patched.status, 200, JSON.stringify(patched.body));
  }
}

function rightsOf(objects: readonly { readonly kind: string }[]): {
  readonly cluster: readonly Rule[];
  readonly namespaces: Readonly<Record<string, readonly Rule[]>>;
} {
  const rulesOf = (kind: string): readonly Rule[] =>
    objects.filter((one) => one.kind === kind).flatMap((one) => (one as { rules?: Rule[] }).rules ?? []);
  const own = rulesOf('Role');
  return {
    cluster: rulesOf('ClusterRole'),
    namespaces: own.length === 0 ? {} : { 'kube-system': own },
  };
}

/** A node with a kubelet, and installers that come and go. */
export class InstallerNode {
  readonly machine: PrivateSystemd;
  readonly name: string;
  readonly agents: RunningAgent[] = [];
  readonly #cluster: InstallerCluster;

  private constructor(machine: PrivateSystemd, name: string, cluster: InstallerCluster) {
    this.machine = machine;
    this.name = name;
    this.#cluster = cluster;
  }

  /** With a running kubelet. */
  static async start(cluster: InstallerCluster, versions: readonly [string, string]): Promise<InstallerNode> {
    const name = await cluster.node(...versions);
    const machine = await PrivateSystemd.start({ kubelet: false });
    writeFileSync(join(machine.state, 'kubelet'), KUBELET.replaceAll('STATE', machine.state));
    machine.systemctl('start', 'kubelet.service');
    return new InstallerNode(machine, name, cluster);
  }

  get units(): string {
    return join(this.machine.state, '../units');
  }

  get dropIn(): string {
    return join(this.units, 'kubelet.service.d/40-kubelet-crio-image-credential-provider.conf');
  }

  /** Folder of the kubelet's files. */
  get folder(): string {
    return join(this.machine.state, 'providers');
  }

  get configs(): readonly string[] {
    return entriesOf(this.folder).filter((name) => name.endsWith('.yaml'));
  }

  get plugin(): string {
    return join(this.machine.state, 'plugins/crio-credential-provider');
  }

  /** Arguments of the kubelet, start by start. */
  starts(): readonly string[] {
    return this.machine.starts();
  }

  get env(): NodeJS.ProcessEnv {
    return this.#cluster.env;
  }

  flags(): readonly string[] {
    const { state } = this.machine;
    return [
      `--unit-path=${this.units}`,
      `--drop-in-dir=${this.units}/kubelet.service.d`,
      `--config-dir=${state}/providers`,
      `--bin-dir=${state}/plugins`,
      `--bus-socket=${this.machine.bus}`,
      `--node-name=${this.name}`,
      `--auth-dir=${state}/auth`,
      ...this.#cluster.providerArgs(state),
      '--restart-window=0',
      '--max-restarts=0',
      '--settle=300ms',
      '--kubelet-healthz=off',
      '--health-port=off',
      '--poll=200ms',
      `--service-account-dir=${this.#cluster.account}`,
    ];
  }

  command(flags: readonly string[] = []): readonly string[] {
    const named = flags.map((flag) => flag.split('=')[0]);
    const defaults = this.flags().filter((flag) => !named.includes(flag.split('=')[0]));
    return [this.#cluster.program, 'install-provider', ...defaults, ...flags];
  }

  run(flags: readonly string[] = []): RunningAgent {
    const agent = new RunningAgent(this.command(flags), this.#cluster.env);
    this.agents.push(agent);
    return agent;
  }
}

/** A test with a node of its own, which is always removed; a failure shows the logs of the installers. */
export function installerScene(
  { test, cluster }: { readonly test: TestSuite; readonly cluster: InstallerCluster },
  name: string,
  versions: readonly [string, string],
  body: (node: InstallerNode) => Promise<void>,
): void {
  test(name, async () => {
    const made = await InstallerNode.start(cluster, versions);
    try {
      await body(made);
    } catch (error) {
      const said = made.agents.slice(-3).map((agent) => agent.text());
      if (error instanceof Error) error.message += `\n${said.join('---\n')}`;
      throw error;
    } finally {
      for (const agent of made.agents) await agent.kill();
      await made.machine.stop();
    }
  });
}

/** Versions that accept the file. */
export const GOOD_VERSIONS: readonly [string, string] = ['v1.34.2', 'cri-o://1.34.1'];

export const inSync = (agent: RunningAgent): Promise<void> =>
  until('in sync', () => agent.reason() === 'InSync', 60_000);
