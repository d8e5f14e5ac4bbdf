/** Scenes with a node agent on a private systemd: a kubelet that runs with {@link OLD}, and whatever happens next. */
import { readFileSync, writeFileSync } from 'node:fs';
import { plantedAuth } from './canary.ts';
import { type RunningAgent, TestNode } from './node-agent.ts';
import type { TestSuite } from './suite.ts';
import { digestOf, PrivateSystemd, until } from './systemd.ts';

/** A docker config for these registries. */
export const secret = (...registries: readonly string[]): string =>
  JSON.stringify({
    auths: Object.fromEntries(registries.map((name) => [name, { auth: plantedAuth(name) }])),
  });

export const OLD: string = secret('old.example.com');
export const NEW: string = secret('new.example.com', 'old.example.com');

/** Adds a test with a node of its own. Whatever happens, it is taken down; a failure shows what the agents said. */
export function scene(
  test: TestSuite,
  name: string,
  body: (node: TestNode, agents: Agents) => Promise<void>,
): void {
  test(name, async () => {
    const machine = await PrivateSystemd.start({ kubelet: false });
    const agents = new Agents();
    try {
      writeFileSync(machine.config, OLD, { mode: 0o600 });
      machine.systemctl('start', 'kubelet.service');
      await body(await TestNode.on(machine), agents);
    } catch (error) {
      if (error instanceof Error) error.message += `\n${agents.text()}`;
      throw error;
    } finally {
      await agents.killAll();
      await machine.stop();
    }
  });
}

/** The same, with an agent that runs, has nothing to do, and says so. */
export function settledScene(
  test: TestSuite,
  name: string,
  body: (node: TestNode, agent: RunningAgent, agents: Agents) => Promise<void>,
  flags: readonly string[] = [],
): void {
  scene(test, name, async (node, agents) => {
    node.original.swap(OLD);
    const agent = agents.run(node, flags);
    await inSync(agent);
    await body(node, agent, agents);
  });
}

/** Brings {@link NEW} and waits until the kubelet's second start has begun. */
export async function restarting(node: TestNode): Promise<void> {
  node.original.swap(NEW);
  await until('the kubelet starts', () => node.machine.starts().length === 2);
}

export class Agents {
  readonly #all: RunningAgent[] = [];

  run(node: TestNode, flags: readonly string[] = []): RunningAgent {
    const agent = node.agent(flags);
    this.#all.push(agent);
    return agent;
  }

  text(): string {
    return this.#all.map((agent) => agent.text()).join('---\n');
  }

  async killAll(): Promise<void> {
    for (const agent of this.#all) await agent.kill();
  }
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
