/** Tests with a node agent on a private systemd: a kubelet that runs, and whatever happens next. */
import { startNode } from './agent-scene.ts';
import type { TestNode } from './node-agent.ts';
import { test as add } from './suite.ts';

/** Adds a test with a node of its own. Whatever happens, it is taken down with its agents; a failure shows what they said. */
export function test(name: string, body: (node: TestNode) => Promise<void>): void {
  add(name, async () => {
    const node = await startNode();
    try {
      await body(node);
    } catch (error) {
      const said = node.agents.map((agent) => agent.text()).join('---\n');
      if (error instanceof Error) error.message += `\n${said}`;
      throw error;
    } finally {
      await node.stop();
    }
  });
}
