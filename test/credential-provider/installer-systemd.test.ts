// deadline: 180 s
/** The compiled installer on a real systemd and a real API server, with exactly the rights that the charts give. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { credentialProviderCrd } from '../../charts/credential-provider/crd.ts';
import { installerObjects } from '../../charts/credential-provider/installer.ts';
import { missingControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { Rule } from '../control-plane/users.ts';
import { executable } from '../support/executable.ts';
import { RunningAgent } from '../support/node-agent.ts';
import { suite } from '../support/suite.ts';
import { entriesOf, PrivateSystemd, systemdMissing, until } from '../support/systemd.ts';

const test = suite('installer of the credential provider');
const missing = systemdMissing() ?? missingControlPlane();

/** Logs its arguments; ends before it is ready when it has some and `refuse` is there. */
const KUBELET = `#!/bin/bash
echo "start \${*:-plain}" >> STATE/log
trap 'exit 0' TERM
[ -n "$*" ] && [ -e STATE/refuse ] && exit 1
systemd-notify --ready
while :; do sleep 1000 & wait $!; done
`;

if (missing !== undefined) test.skip('a node', missing);
else {
  const plane = await startControlPlane();
  const program = await executable();
  const objects = installerObjects({ image: 'registry.example.com/pullwright:1' });
  const rules = (objects.find(({ kind }) => kind === 'ClusterRole') as unknown as { rules: readonly Rule[] })
    .rules;
  const user = await plane.user({ name: 'installer', by: 'token', cluster: rules });
  const account = join(plane.folder, 'account');
  mkdirSync(account);
  writeFileSync(join(account, 'ca.crt'), plane.ca);
  symlinkSync(user.tokenFile, join(account, 'token'));
  const { port } = new URL(plane.server);
  await plane.apply(credentialProviderCrd());

  async function entries(...matchImages: readonly string[]): Promise<void> {
    await eventually(() =>
      plane.apply({
        apiVersion: 'config.openshift.io/v1',
        kind: 'CRIOCredentialProviderConfig',
        metadata: { name: 'cluster' },
        spec: { matchImages },
      }),
    );
  }

  class Scene {
    readonly machine: PrivateSystemd;
    readonly agents: RunningAgent[] = [];
    readonly node: string;
    constructor(machine: PrivateSystemd, node: string) {
      this.machine = machine;
      this.node = node;
    }
    get units(): string {
      return join(this.machine.state, '../units');
    }
    get dropIn(): string {
      return join(this.units, 'kubelet.service.d/40-kubelet-crio-image-credential-provider.conf');
    }
    get configs(): readonly string[] {
      return entriesOf(join(this.machine.state, 'providers')).filter((name) => name.endsWith('.yaml'));
    }
    get plugin(): string {
      return join(this.machine.state, 'plugins/crio-credential-provider');
    }
    run(flags: readonly string[] = []): RunningAgent {
      const { state } = this.machine;
      const agent = new RunningAgent(
        [
          program,
          'install-provider',
          `--unit-path=${this.units}`,
          `--drop-in-dir=${this.units}/kubelet.service.d`,
          `--config-dir=${state}/providers`,
          `--bin-dir=${state}/plugins`,
          `--bus-socket=${this.machine.bus}`,
          `--node-name=${this.node}`,
          '--restart-window=0',
          '--settle=0.3',
          '--kubelet-healthz=off',
          '--health-port=off',
          '--poll=0.2',
          `--service-account-dir=${account}`,
          ...flags,
        ],
        { ...process.env, KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: port },
      );
      this.agents.push(agent);
      return agent;
    }
    /** Arguments of the kubelet, start by start. */
    starts(): readonly string[] {
      return this.machine.starts();
    }
  }

  let count = 0;
  function scene(
    name: string,
    versions: readonly [string, string],
    body: (scene: Scene) => Promise<void>,
  ): void {
    test(name, async () => {
      const node = `node-${(count += 1)}`;
      await plane.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: node } });
      const status = {
        nodeInfo: {
          kubeletVersion: versions[0],
          containerRuntimeVersion: versions[1],
          machineID: '',
          systemUUID: '',
          bootID: '',
          kernelVersion: '',
          osImage: '',
          kubeProxyVersion: '',
          operatingSystem: '',
          architecture: '',
        },
      };
      const patched = await plane.client.request(
        'PATCH',
        `/api/v1/nodes/${node}/status`,
        { apiVersion: 'v1', kind: 'Node', status },
        'application/merge-patch+json',
      );
      assert.equal(patched.status, 200, JSON.stringify(patched.body));
      const machine = await PrivateSystemd.start({ kubelet: false });
      const made = new Scene(machine, node);
      try {
        writeFileSync(join(machine.state, 'kubelet'), KUBELET.replaceAll('STATE', machine.state));
        machine.systemctl('start', 'kubelet.service');
        await body(made);
      } catch (error) {
        if (error instanceof Error)
          error.message += `\n${made.agents.map((agent) => agent.text()).join('---\n')}`;
        throw error;
      } finally {
        for (const agent of made.agents) await agent.kill();
        await machine.stop();
      }
    });
  }
  const inSync = (agent: RunningAgent): Promise<void> =>
    until('in sync', () => agent.reason() === 'InSync', 20_000);

  scene(
    'installs, restarts the kubelet with the flags, follows the entries, and takes everything back',
    ['v1.34.2', 'cri-o://1.34.1'],
    async (node) => {
      await entries('docker.io', '*.example.io');
      const agent = node.run();
      await inSync(agent);
      const [config = ''] = node.configs;
      assert.deepEqual(node.starts(), [
        'plain',
        `--image-credential-provider-bin-dir=${node.machine.state}/plugins --image-credential-provider-config=${node.machine.state}/providers/${config}`,
      ]);
      const document = parse(readFileSync(join(node.machine.state, 'providers', config), 'utf8')) as {
        providers: { matchImages: string[] }[];
      };
      assert.deepEqual(document.providers[0]?.matchImages, ['*.example.io', 'docker.io']);
      assert.equal(statSync(node.plugin).mode & 0o777, 0o755);
      assert.deepEqual(readFileSync(node.plugin), readFileSync(program));
      await entries('quay.io');
      await until('the kubelet runs with the new file', () => node.starts().length === 3);
      await until('the old file is gone', () => node.configs.length === 1 && node.configs[0] !== config);
      assert.ok(node.starts()[2]?.endsWith(node.configs[0] ?? '-'));
      await agent.stop();
      const second = node.run(['--once']);
      assert.equal(await second.ended, 0);
      assert.equal(node.starts().length, 3, 'nothing to do restarts nothing');
      await plane.remove({
        apiVersion: 'config.openshift.io/v1',
        kind: 'CRIOCredentialProviderConfig',
        metadata: { name: 'cluster' },
      });
      assert.equal(await node.run(['--once']).ended, 0);
      assert.deepEqual([node.starts().at(-1), node.configs], ['plain', []]);
    },
  );

  scene(
    'a kubelet that does not come up: the old state is back, the kubelet runs, the same is not tried again',
    ['v1.35.0', 'cri-o://1.34.0'],
    async (node) => {
      await entries('docker.io');
      writeFileSync(join(node.machine.state, 'refuse'), '');
      const agent = node.run();
      await until('it gives up', () => agent.reason() === 'BreakerOpen', 60_000);
      assert.equal(existsSync(node.dropIn), false);
      assert.equal(node.machine.activeState(), 'active');
      assert.equal(node.starts().at(-1), 'plain');
      const starts = node.starts().length;
      await agent.stop();
      assert.equal(await node.run(['--once']).ended, 1);
      assert.equal(node.starts().length, starts);
      rmSync(join(node.machine.state, 'refuse'));
      await entries('quay.io');
      assert.equal(await node.run(['--once']).ended, 0);
      await entries('docker.io');
      writeFileSync(join(node.machine.state, 'refuse'), '');
    },
  );

  for (const versions of [
    ['v1.33.9', 'cri-o://1.34.0'],
    ['v1.34.0', 'cri-o://1.33.4'],
    ['v1.34.0', 'containerd://2.0.0'],
  ] as const) {
    scene(
      `kubelet ${versions[0]} with ${versions[1]}: nothing is written, and why`,
      versions,
      async (node) => {
        await entries('docker.io');
        const agent = node.run(['--once']);
        assert.equal(await agent.ended, 1);
        assert.equal(agent.reason(), 'UnsupportedVersion');
        assert.match(agent.text(), new RegExp(`there is ${node.node} \\(kubelet ${versions[0]}`));
        assert.deepEqual(
          [existsSync(node.dropIn), node.configs, existsSync(node.plugin), node.starts()],
          [false, [], false, ['plain']],
        );
      },
    );
  }
  test.lastly('the control plane stops', () => plane.stop());
}
test.run();
