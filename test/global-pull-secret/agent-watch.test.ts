// deadline: 180 s
// needs: systemd, control plane
/** Watch and turns on a real API server, with exactly the rights that the charts give: three nodes whose mounts stand still. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { agentDaemonSet, agentRbac } from '../../runtime/global-pull-secret/daemon-set.ts';
import { controlPlane } from '../control-plane/live.ts';
import { agentAccount, agentSecret } from '../support/agent-plane.ts';
import { NEW, OLD, secret, settled, startNode } from '../support/agent-scene.ts';
import type { RunningAgent, TestNode } from '../support/node-agent.ts';
import { test } from '../support/suite.ts';
import { until } from '../support/systemd.ts';

const plane = await controlPlane();
const nodes: [TestNode, RunningAgent][] = [];
const { user, flag, env } = await agentAccount(plane);

const time = (agent: RunningAgent, event: string): number =>
  Date.parse(String(agent.events(event).at(-1)?.['time']));

test('three nodes find nothing to do', async () => {
  for (const object of [
    ...agentRbac({}).filter(({ kind }) => kind === 'Lease'),
    agentDaemonSet({ image: 'i' }),
  ])
    await plane.apply(object);
  await plane.client.request(
    'PATCH',
    '/apis/apps/v1/namespaces/kube-system/daemonsets/global-pull-secret-syncer/status',
    {
      status: {
        desiredNumberScheduled: 3,
        currentNumberScheduled: 3,
        numberMisscheduled: 0,
        numberReady: 3,
      },
    },
    'application/merge-patch+json',
  );
  await plane.apply(agentSecret('original-pull-secret', OLD));
  for (const name of ['a', 'b', 'c']) {
    const node = await startNode();
    node.original.swap(OLD);
    const flags = [`--node-name=${name}`, '--watch', '--restart-window=auto', flag];
    nodes.push([node, node.agent(flags, env)]);
  }
  for (const [, agent] of nodes) await until('in sync', () => agent.reason() === 'InSync');
});

test('a new secret reaches all of them past their mounts, and one restarts at a time', async () => {
  await plane.apply(agentSecret('global-pull-secret', NEW));
  for (const [node] of nodes)
    await until('the file is written', () => readFileSync(node.machine.config, 'utf8') === NEW);
  for (const [node, agent] of nodes) await settled(node, agent, NEW, 60_000);
  const restarts = nodes
    .map(([, agent]) => ({ from: time(agent, 'restarting'), to: time(agent, 'restarted') }))
    .sort((one, other) => one.from - other.from);
  for (const [index, { from }] of restarts.entries())
    if (index > 0) assert.ok(from >= (restarts[index - 1]?.to ?? 0), JSON.stringify(restarts));
});

test('an agent that watches, books and has restarted fits into the memory that its pod asks for', () => {
  const { spec } = agentDaemonSet({ image: 'i' }) as unknown as {
    spec: { template: { spec: { containers: { resources: { requests: { memory: string } } }[] } } };
  };
  const asked = Number.parseInt(spec.template.spec.containers[0]?.resources.requests.memory ?? '', 10);
  for (const [, agent] of nodes) {
    const status = readFileSync(`/proc/${agent.child.pid}/status`, 'utf8');
    const used = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
    assert.ok(used > 0 && used <= asked, `uses ${used.toFixed(1)} MiB, asks for ${asked}`);
  }
});

test('a secret that is created again at once costs nobody a credential', async () => {
  await plane.remove(agentSecret('global-pull-secret', NEW));
  await plane.apply(
    agentSecret('global-pull-secret', secret('new.example.com', 'more.example.com', 'old.example.com')),
  );
  for (const [node] of nodes)
    await until('the newest is written', () =>
      readFileSync(node.machine.config, 'utf8').includes('more.example.com'),
    );
  for (const [node, agent] of nodes) {
    await settled(node, agent, readFileSync(node.machine.config, 'utf8'), 60_000);
    assert.equal(agent.events('written').length, 2, agent.text());
  }
});

test('a secret that somebody else empties keeps its nodes, until its annotation confirms that', async () => {
  const before = nodes.map(([node]) => readFileSync(node.machine.config, 'utf8'));
  const emptied = agentSecret('global-pull-secret', '{"auths":{}}', false);
  await plane.remove(emptied);
  await plane.apply(emptied);
  for (const [, agent] of nodes) await until('held', () => agent.reason() === 'RemovalHeld');
  assert.deepEqual(
    nodes.map(([node]) => readFileSync(node.machine.config, 'utf8')),
    before,
  );
  const detail = String(nodes[0]?.[1].lines().findLast(({ reason }) => reason === 'RemovalHeld')?.['detail']);
  const [, hash = ''] = /--confirm-removal=([0-9a-f]{12})/.exec(detail) ?? [];
  await plane.apply({
    ...emptied,
    metadata: { ...emptied.metadata, annotations: { 'pullwright.dev/confirm-removal': hash } },
  });
  for (const [node, agent] of nodes) await settled(node, agent, '{"auths":{}}', 60_000);
});

test('a secret that stays away is taken from the nodes', async () => {
  await plane.remove(agentSecret('global-pull-secret', NEW));
  for (const [node, agent] of nodes) await settled(node, agent, OLD, 60_000);
});

test('without the right to watch the mount counts, and the old content of the watch never comes back', async () => {
  await user.revoke();
  const [node, agent] = nodes[0] as [TestNode, RunningAgent];
  await agent.stop();
  const again = node.agent(['--node-name=a', '--watch', flag], env);
  nodes.push([node, again]);
  node.global.swap(NEW);
  await settled(node, again, NEW, 60_000);
  assert.match(again.text(), /the mounts are read instead/);
});

test.lastly('everything stops', async () => {
  for (const node of new Set(nodes.map(([one]) => one))) await node.stop();
});
