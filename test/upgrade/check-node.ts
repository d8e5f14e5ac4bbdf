/** Agents and installers of two versions on one node: settled, in the middle of a change, and back again. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  GOOD_VERSIONS,
  InstallerCluster,
  InstallerNode,
} from '../credential-provider/support/installer-scene.ts';
import { inSync, NEW, OLD, settled, startNode } from '../support/agent-scene.ts';
import { RunningAgent, type TestNode } from '../support/node-agent.ts';
import { digestOf, missingSystemd, until } from '../support/systemd.ts';
import type { Judge, Pair } from './pair.ts';

interface Scene {
  readonly node: TestNode;
  /** Starts an agent of a version; all end with the scene. */
  readonly agent: (program: string) => RunningAgent;
}

async function onNode(body: (scene: Scene) => Promise<string>): Promise<string> {
  const node = await startNode();
  const agent = (program: string): RunningAgent => node.agent([], process.env, program);
  try {
    return await body({ node, agent });
  } finally {
    await node.stop();
  }
}

/** One version has settled; the other takes over without a restart, then carries a change out. */
function takesOver(first: string, second: string): Promise<string> {
  return onNode(async ({ node, agent }) => {
    node.original.swap(OLD);
    const before = agent(first);
    await inSync(before);
    node.original.swap(NEW);
    await settled(node, before, NEW);
    await before.stop();
    const after = agent(second);
    await inSync(after);
    assert.deepEqual(node.machine.starts(), [OLD, NEW].map(digestOf), 'a settled node is not touched');
    node.original.swap(OLD);
    await settled(node, after, OLD);
    assert.equal(after.events('journal-damaged').length, 0, 'its state is understood');
    return `${node.machine.starts().length} starts of the kubelet, the last with the new content`;
  });
}

/** One version is killed while the kubelet restarts; the other finishes. */
function finishes(first: string, second: string): Promise<string> {
  return onNode(async ({ node, agent }) => {
    node.original.swap(OLD);
    const before = agent(first);
    await inSync(before);
    node.machine.behave({ slow: 1 });
    node.original.swap(NEW);
    await until('the kubelet starts', () => node.machine.starts().length === 2);
    await before.kill();
    const after = agent(second);
    await settled(node, after, NEW, 60_000);
    assert.ok(!existsSync(join(node.machine.state, '.pullwright/saved.json')), 'the saved copy is gone');
    return `settled after ${node.machine.starts().length} starts of the kubelet`;
  });
}

/** One version rolled a change back; the other knows that it must not try it again at once. */
function remembers(first: string, second: string): Promise<string> {
  return onNode(async ({ node, agent }) => {
    node.original.swap(OLD);
    const before = agent(first);
    await inSync(before);
    node.machine.behave('picky');
    const poison = JSON.stringify({
      auths: { 'poison.example.com': { auth: 'UE9JU09OOlBPSVNPTg==' } },
      note: 'POISON',
    });
    node.original.swap(poison);
    await until('the breaker is open', () => before.reason() === 'BreakerOpen', 90_000);
    assert.equal(readFileSync(node.machine.config, 'utf8'), OLD, 'the last good content is back');
    await before.stop();
    const starts = node.machine.starts().length;
    const after = agent(second);
    await until('the other version has looked', () => after.reason() !== undefined, 30_000);
    assert.equal(after.reason(), 'BreakerOpen');
    assert.equal(node.machine.starts().length, starts, 'no restart');
    assert.equal(readFileSync(node.machine.config, 'utf8'), OLD);
    return 'the breaker holds; the last good config.json stays';
  });
}

/** Installers of both versions, one after the other; the one that did not install it last takes it back. */
async function reinstalls(first: string, second: string): Promise<string> {
  const cluster = await InstallerCluster.start();
  try {
    await cluster.entries('docker.io');
    const node = await InstallerNode.start(cluster, GOOD_VERSIONS);
    try {
      const run = async (program: string, ...flags: readonly string[]): Promise<void> => {
        const [, ...args] = node.command(['--once', ...flags]);
        const installer = new RunningAgent([program, ...args], node.env);
        assert.equal(await installer.ended, 0, installer.text());
      };
      for (const program of [first, second, first]) {
        await run(program);
        assert.deepEqual(readFileSync(node.plugin), readFileSync(program));
      }
      await run(second, '--uninstall');
      assert.deepEqual([existsSync(node.plugin), node.starts().at(-1)], [false, 'plain']);
      return `${node.starts().length} starts of the kubelet, the last without the provider`;
    } finally {
      await node.machine.stop();
    }
  } finally {
    await cluster.plane.stop();
  }
}

/** Runs the checks of nodes. */
export async function nodeChecks({ older, newer }: Pair, judge: Judge): Promise<void> {
  const missing = missingSystemd();
  const rows: readonly (readonly [string, () => Promise<string>])[] = [
    ['agent: N takes over a settled node of N-1', () => takesOver(older, newer)],
    ['agent: N-1 takes over a settled node of N (downgrade)', () => takesOver(newer, older)],
    ['agent: N finishes a restart that N-1 began', () => finishes(older, newer)],
    ['agent: N-1 finishes a restart that N began (downgrade)', () => finishes(newer, older)],
    ['agent: N remembers what N-1 rolled back', () => remembers(older, newer)],
    ['agent: N-1 remembers what N rolled back (downgrade)', () => remembers(newer, older)],
    ['installer: N takes over from N-1, and N-1 from N; N uninstalls', () => reinstalls(older, newer)],
    ['installer: N-1 takes over from N, and N from N-1; N-1 uninstalls', () => reinstalls(newer, older)],
  ];
  for (const [what, body] of rows)
    await judge({
      what,
      look: () =>
        missing === undefined ? body() : Promise.reject(new Error(`cannot be checked: ${missing}`)),
    });
}
