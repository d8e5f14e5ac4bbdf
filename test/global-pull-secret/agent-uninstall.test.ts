// deadline: 180 s
// needs: systemd
/** `agent --uninstall` on a real systemd: what is under way is finished, the state goes, config.json and kubelet stay. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gaveUp, inSync, NEW, OLD, secret, settle } from '../support/agent-scene.ts';
import { test } from '../support/agent-test.ts';
import type { RunningAgent, TestNode } from '../support/node-agent.ts';
import { digestOf, until } from '../support/systemd.ts';

const stateOf = (node: TestNode): string => join(node.machine.state, '.pullwright');
const config = (node: TestNode): string => readFileSync(node.machine.config, 'utf8');

async function uninstalled(node: TestNode, agent: RunningAgent): Promise<void> {
  await until('the agent has left', () => agent.reason() === 'Uninstalled', 60_000);
  assert.equal(existsSync(stateOf(node)), false);
}

test('the state goes, the file and the kubelet stay, and later secrets change nothing', async (node) => {
  node.original.swap(NEW);
  const before = node.agent();
  await inSync(before);
  await before.stop();
  const starts = node.machine.starts().length;
  const agent = node.agent(['--uninstall', '--poll=200ms']);
  await uninstalled(node, agent);
  node.original.swap(OLD);
  // Several looks' worth of log lines would show a write.
  const other = node.agent(['--once', '--dry-run']);
  assert.equal(await other.ended, 1, 'another program sees the difference');
  assert.equal(config(node), NEW);
  assert.equal(node.machine.starts().length, starts);
  assert.equal(node.machine.activeState(), 'active');
  const { code } = await agent.stop();
  assert.equal(code, 0);
  assert.equal(existsSync(stateOf(node)), false);
});

test('a change that a kill interrupted is finished first', async (node) => {
  const first = await settle(node);
  await first.stop();
  const killed = node.agent(['--restart-window=1h']);
  node.original.swap(NEW);
  // Its place in the window of an hour is in the journal: who uninstalls does not wait for that.
  await until('the restart waits', () => killed.reason() === 'Spread', 30_000);
  assert.equal(config(node), NEW);
  await killed.kill();
  const agent = node.agent(['--uninstall']);
  await uninstalled(node, agent);
  assert.equal(config(node), NEW);
  assert.equal(node.machine.starts().at(-1), digestOf(NEW), 'the kubelet read what is on disk');
});

test('with an open breaker the last good file stays', async (node) => {
  const first = await settle(node);
  node.machine.behave('picky');
  node.original.swap(secret('POISON.example.com'));
  await gaveUp(first);
  await first.stop();
  const agent = node.agent(['--uninstall', '--once']);
  assert.equal(await agent.ended, 0);
  assert.equal(existsSync(stateOf(node)), false);
  assert.equal(config(node), OLD);
  assert.equal(node.machine.activeState(), 'active');
});

test('it waits for an agent that still works on the node', async (node) => {
  const first = await settle(node);
  const agent = node.agent(['--uninstall']);
  await until('it sees the other', () => agent.reason() === 'AnotherAgent', 30_000);
  assert.equal(existsSync(stateOf(node)), true);
  await first.stop();
  await uninstalled(node, agent);
});
