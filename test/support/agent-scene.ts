/** Inputs and waits for tests of a node agent on a private systemd. */
import { readFileSync, writeFileSync } from 'node:fs';
import { plantedAuth } from './canary.ts';
import { type RunningAgent, TestNode } from './node-agent.ts';
import { digestOf, PrivateSystemd, until } from './systemd.ts';

/** A docker config for these registries. */
export const secret = (...registries: readonly string[]): string =>
  JSON.stringify({
    auths: Object.fromEntries(registries.map((name) => [name, { auth: plantedAuth(name) }])),
  });

export const OLD: string = secret('old.example.com');
export const NEW: string = secret('new.example.com', 'old.example.com');

/** A node whose kubelet runs with {@link OLD}. */
export async function startNode(): Promise<TestNode> {
  const machine = await PrivateSystemd.start({ kubelet: false });
  writeFileSync(machine.config, OLD, { mode: 0o600 });
  machine.systemctl('start', 'kubelet.service');
  return TestNode.on(machine);
}

/** An agent that runs with {@link OLD}, has nothing to do, and says so. */
export async function settle(node: TestNode, flags?: readonly string[]): Promise<RunningAgent> {
  node.original.swap(OLD);
  const agent = node.agent(flags);
  await inSync(agent);
  return agent;
}

/** Brings {@link NEW} and waits until the kubelet's second start has begun. */
export async function restarting(node: TestNode): Promise<void> {
  node.original.swap(NEW);
  await until('the kubelet starts', () => node.machine.starts().length === 2);
}

export async function inSync(agent: RunningAgent): Promise<void> {
  await until('the agent is in sync', () => agent.reason() === 'InSync');
}

export async function gaveUp(agent: RunningAgent): Promise<void> {
  await until('the breaker is open', () => agent.reason() === 'BreakerOpen');
}

/** The content is on disk, the kubelet's last start read it, and the agent says that it is done. */
export async function settled(
  node: TestNode,
  agent: RunningAgent,
  content: string,
  ms: number = 60_000,
): Promise<void> {
  await until(
    'the content is on disk, read and settled',
    () =>
      readFileSync(node.machine.config, 'utf8') === content &&
      node.machine.starts().at(-1) === digestOf(content) &&
      agent.reason() === 'InSync',
    ms,
  );
}
