// deadline: 180 s
/** Restart slots on a real API server, with exactly the rights that the charts give: three nodes, one slot. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { agentRbac } from '../../charts/global-pull-secret/objects.ts';
import { missingControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import type { Rule } from '../control-plane/users.ts';
import { NEW, OLD, settled } from '../support/agent-scene.ts';
import { type RunningAgent, TestNode } from '../support/node-agent.ts';
import { suite } from '../support/suite.ts';
import { PrivateSystemd, systemdMissing, until } from '../support/systemd.ts';

const test = suite('restart slots');
const missing = systemdMissing() ?? missingControlPlane();

interface Restart {
  readonly from: number;
  readonly to: number;
}

/** From the first attempt to the end of the last. */
function restartOf(agent: RunningAgent): Restart {
  const time = (event: string): number => Date.parse(String(agent.events(event)[0]?.['time']));
  return { from: time('restarting'), to: time('restarted') };
}

if (missing !== undefined) test.skip('three nodes, one slot', missing);
else {
  const plane = await startControlPlane();
  const machines: PrivateSystemd[] = [];
  const agents: RunningAgent[] = [];

  /** A node with an agent whose pod has the ServiceAccount's folder. */
  async function node(
    name: string,
    account: string,
    port: string,
    flags: readonly string[],
  ): Promise<[TestNode, RunningAgent]> {
    const machine = await PrivateSystemd.start({ kubelet: false });
    machines.push(machine);
    writeFileSync(machine.config, OLD, { mode: 0o600 });
    machine.systemctl('start', 'kubelet.service');
    machine.behave({ slow: 0.5 });
    const made = await TestNode.on(machine);
    made.original.swap(NEW);
    const agent = made.agent(
      [`--node-name=${name}`, '--restart-slots=1', `--service-account-dir=${account}`, ...flags],
      { ...process.env, KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: port },
    );
    agents.push(agent);
    return [made, agent];
  }

  const { port } = new URL(plane.server);
  const objects = agentRbac({ restartSlots: 1 });
  const role = objects.find(({ kind, metadata }) => kind === 'Role' && metadata.namespace === 'kube-system');
  const user = await plane.user({
    name: 'agent',
    by: 'token',
    namespaces: { 'kube-system': (role as unknown as { rules: readonly Rule[] }).rules },
  });
  const account = join(plane.folder, 'account');
  mkdirSync(account);
  writeFileSync(join(account, 'ca.crt'), plane.ca);
  symlinkSync(user.tokenFile, join(account, 'token'));

  test('three nodes, one slot: all get the content, one restarts at a time', async () => {
    for (const lease of objects.filter(({ kind }) => kind === 'Lease')) await plane.apply(lease);
    const nodes = await Promise.all(
      ['a', 'b', 'c'].map((name) => node(name, account, port, ['--restart-window=2m'])),
    );
    for (const [made] of nodes)
      await until('the file is written at once', () => readFileSync(made.machine.config, 'utf8') === NEW);
    for (const [made, agent] of nodes) await settled(made, agent, NEW, 60_000);
    const restarts = nodes.map(([, agent]) => restartOf(agent)).sort((a, b) => a.from - b.from);
    for (const [index, { from }] of restarts.entries())
      if (index > 0) assert.ok(from >= (restarts[index - 1]?.to ?? 0), JSON.stringify(restarts));
    for (const [, agent] of nodes) assert.equal((await agent.stop()).code, 0);
  });

  test('no right to the Lease: after the window the restart happens all the same', async () => {
    await user.revoke();
    const [made, agent] = await node('d', account, port, ['--restart-window=2s']);
    await settled(made, agent, NEW, 30_000);
    assert.equal(agent.events('slot-failed').length, 1, agent.text());
  });

  test.lastly('everything stops', async () => {
    for (const agent of agents) await agent.kill();
    for (const machine of machines) await machine.stop();
    await plane.stop();
  });
}

test.run();
