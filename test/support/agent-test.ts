/** Tests with a node agent on a private systemd: a kubelet that runs with {@link OLD}, and whatever happens next. */
import { writeFileSync } from 'node:fs';
import { OLD } from './agent-scene.ts';
import { TestNode } from './node-agent.ts';
import { test as add } from './suite.ts';
import { PrivateSystemd } from './systemd.ts';

/** Adds a test with a node of its own. Whatever happens, it is taken down with its agents; a failure shows what they said. */
export function test(name: string, body: (node: TestNode) => Promise<void>): void {
  add(name, async () => {
    const machine = await PrivateSystemd.start({ kubelet: false });
    const node = await TestNode.on(machine);
    try {
      writeFileSync(machine.config, OLD, { mode: 0o600 });
      machine.systemctl('start', 'kubelet.service');
      await body(node);
    } catch (error) {
      const said = node.agents.map((agent) => agent.text()).join('---\n');
      if (error instanceof Error) error.message += `\n${said}`;
      throw error;
    } finally {
      for (const agent of node.agents) await agent.kill();
      await machine.stop();
    }
  });
}
