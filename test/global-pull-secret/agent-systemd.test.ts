// deadline: 300 s
// needs: systemd
/** The compiled agent on a real systemd: what the kubelet read, start by start, and what is on disk at the end. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gaveUp, inSync, NEW, OLD, secret, settle, settled } from '../support/agent-scene.ts';
import { test } from '../support/agent-test.ts';
import type { TestNode } from '../support/node-agent.ts';
import { digestOf, entriesOf, kubeletUnit, until } from '../support/systemd.ts';

function leavesNothingBehind(node: TestNode): void {
  assert.deepEqual(
    entriesOf(node.machine.state).filter((name) => name.startsWith('.config.json.tmp-')),
    [],
  );
  assert.deepEqual(
    entriesOf(join(node.machine.state, '.pullwright')).filter(
      (name) => !['journal.json', 'lock'].includes(name),
    ),
    [],
    'the saved copy holds credentials and must go',
  );
}

test('a changed secret is on disk, read by a restarted kubelet, and nothing is left behind', async (node) => {
  const agent = await settle(node);
  assert.deepEqual(node.machine.starts(), [digestOf(OLD)], 'the same content restarts nothing');
  node.global.swap(NEW);
  await until('the new content is on disk', () => readFileSync(node.machine.config, 'utf8') === NEW);
  await until('the kubelet has read it', () => node.machine.starts().at(-1) === digestOf(NEW));
  await until('the agent is in sync again', () => agent.reason() === 'InSync');
  node.global.swap(undefined);
  await until('the original is back', () => node.machine.starts().length === 3);
  await inSync(agent);
  assert.deepEqual(node.machine.starts(), [OLD, NEW, OLD].map(digestOf));
  assert.equal(statSync(node.machine.config).mode & 0o7777, 0o600);
  leavesNothingBehind(node);
  assert.equal((await agent.stop()).code, 0);
});

test('white space, order of keys and a line end restart nothing', async (node) => {
  node.original.swap(`${JSON.stringify(JSON.parse(OLD), undefined, 4)}\n`);
  const agent = node.agent();
  await inSync(agent);
  assert.equal(readFileSync(node.machine.config, 'utf8'), OLD);
  assert.deepEqual(node.machine.starts(), [digestOf(OLD)]);
});

test('a kubelet that fails: three attempts, the old file back, the kubelet up with it, no fourth round', async (node) => {
  const agent = await settle(node);
  node.machine.behave('picky');
  const POISON = secret('POISON.example.com');
  node.original.swap(POISON);
  await gaveUp(agent);
  assert.equal(readFileSync(node.machine.config, 'utf8'), OLD);
  assert.deepEqual(node.machine.starts(), [OLD, POISON, POISON, POISON, OLD].map(digestOf));
  assert.equal(node.machine.activeState(), 'active');
  leavesNothingBehind(node);
  // A new agent on the node knows of the breaker.
  await agent.stop();
  const second = node.agent();
  await gaveUp(second);
  assert.equal(node.machine.starts().length, 5, 'the same bad content restarted the kubelet again');
  node.original.swap(NEW);
  await inSync(second);
  assert.equal(node.machine.starts().at(-1), digestOf(NEW));
});

test('no file before, and a kubelet that fails: there is no file afterwards', async (node) => {
  node.machine.systemctl('stop', 'kubelet.service');
  rmSync(node.machine.config);
  node.machine.behave('picky');
  node.machine.systemctl('start', 'kubelet.service');
  const POISON = secret('POISON.example.com');
  node.original.swap(POISON);
  await gaveUp(node.agent());
  assert.deepEqual(node.machine.starts().slice(-2), [digestOf(POISON), 'absent']);
  assert.equal(entriesOf(node.machine.state).includes('config.json'), false);
  assert.equal(node.machine.activeState(), 'active');
});

test('a kubelet that hangs in its start: the time-out of the unit counts as a failure', async (node) => {
  const agent = await settle(node);
  node.machine.unit(kubeletUnit(node.machine.state).replace('TimeoutStartSec=2', 'TimeoutStartSec=1'));
  node.machine.behave('hangs');
  node.original.swap(NEW);
  await until('the second attempt runs', () => agent.events('restarting').length === 2, 15_000);
  node.machine.behave('works');
  await inSync(agent);
  assert.match(String(agent.events('restart-failed')[0]?.['error']), /its job ended with "(failed|timeout)"/);
  assert.equal(node.machine.starts().at(-1), digestOf(NEW));
});

test('a kubelet that takes long to start is waited for', async (node) => {
  const agent = await settle(node);
  node.machine.unit(kubeletUnit(node.machine.state).replace('TimeoutStartSec=2', 'TimeoutStartSec=60'));
  node.machine.behave({ slow: 20 });
  node.original.swap(NEW);
  await until(
    'the agent is in sync',
    () => agent.reason() === 'InSync' && agent.events('restarted').length > 0,
    40_000,
  );
  assert.deepEqual(node.machine.starts(), [OLD, NEW].map(digestOf), 'one start, no second attempt');
});

test('a kubelet that dies a moment after its job is done does not count as restarted', async (node) => {
  const agent = await settle(node);
  node.machine.behave('flaps');
  node.original.swap(NEW);
  await until('two attempts failed', () => agent.events('restart-failed').length === 2, 15_000);
  assert.match(
    String(agent.events('restart-failed')[0]?.['error']),
    /it is (failed|inactive) \(\w+\) after the job, expected active/,
  );
  node.machine.behave('works');
  await inSync(agent);
  assert.equal(node.machine.starts().at(-1), digestOf(NEW));
});

test('a kubelet that systemd restarts by itself, again and again, does not count as restarted', async (node) => {
  const agent = await settle(node);
  node.machine.unit(kubeletUnit(node.machine.state, 'Restart=always\nRestartSec=50ms\n'));
  node.machine.behave('flaps');
  node.original.swap(NEW);
  await until('an attempt failed', () => agent.events('restart-failed').length > 0, 15_000);
  node.machine.behave('works');
  await inSync(agent);
});

for (const [name, spoil, words] of [
  ['masked', (node: TestNode) => node.machine.mask(), /masked/i],
  ['missing', (node: TestNode) => node.machine.unit(undefined), /not found/i],
] as const) {
  test(`a kubelet unit that is ${name}: the reason is said, the old file was restored`, async (node) => {
    node.original.swap(OLD);
    const agent = node.agent();
    await inSync(agent);
    node.machine.systemctl('stop', 'kubelet.service');
    spoil(node);
    node.original.swap(NEW);
    await until('the file is rolled back', () => agent.events('rolled-back').length === 1, 20_000);
    assert.match(String(agent.events('restart-failed')[0]?.['error']), words);
    assert.equal(readFileSync(node.machine.config, 'utf8'), OLD);
    // When the unit is back, the agent goes on by itself.
    node.machine.unit(kubeletUnit(node.machine.state));
    await until('the kubelet is up', () => node.machine.activeState() === 'active', 20_000);
  });
}

test('--restart-window: the file is written at once, the restart waits, SIGTERM ends the wait', async (node) => {
  node.original.swap(NEW);
  const agent = node.agent(['--restart-window=1h', '--node-name=worker-7']);
  await until('the restart waits for its turn', () => agent.reason() === 'Spread');
  assert.equal(readFileSync(node.machine.config, 'utf8'), NEW);
  assert.equal(node.machine.starts().length, 1);
  assert.equal((await agent.stop()).code, 0);
  // The next one, without a window, finishes what the first began.
  await until('the lock is free', () => !entriesOf(join(node.machine.state, '.pullwright')).includes('lock'));
});

test('two agents on one node: one works, the other waits and takes over when the first is killed', async (node) => {
  const first = await settle(node);
  const second = node.agent();
  await until('the second one waits', () => second.reason() === 'AnotherAgent');
  node.original.swap(NEW);
  await settled(node, first, NEW);
  assert.deepEqual(second.events('written'), []);
  await first.kill();
  await inSync(second);
  node.original.swap(OLD);
  await until('the second one works', () => second.events('restarted').length === 1);
  assert.deepEqual(node.machine.starts(), [OLD, NEW, OLD].map(digestOf));
});
