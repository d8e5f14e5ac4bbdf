// deadline: 300 s
// needs: systemd
/** The compiled agent when what it talks to fails: the bus, systemd, and itself. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { NEW, OLD, restarting, secret, settle, settled } from '../support/agent-scene.ts';
import { test } from '../support/agent-test.ts';
import { digestOf, entriesOf, kubeletUnit, until } from '../support/systemd.ts';

test('bus killed before the call', async (node) => {
  const agent = await settle(node);
  node.machine.signalBus('SIGKILL');
  node.original.swap(NEW);
  await settled(node, agent, NEW);
});

test('bus killed while the job runs: the unit itself is asked, and is not restarted twice', async (node) => {
  const agent = await settle(node);
  node.machine.behave({ slow: 1 });
  await restarting(node);
  node.machine.signalBus('SIGKILL');
  await settled(node, agent, NEW);
  assert.deepEqual(node.machine.starts(), [OLD, NEW].map(digestOf));
});

test('bus killed after the job, while the unit settles', async (node) => {
  const agent = await settle(node, ['--settle=1s']);
  await restarting(node);
  await until('the kubelet has started again', () => node.machine.starts().length === 2);
  node.machine.signalBus('SIGKILL');
  await settled(node, agent, NEW);
});

test('bus that stands still for two seconds', async (node) => {
  const agent = await settle(node);
  node.machine.signalBus('SIGSTOP');
  node.original.swap(NEW);
  await until('the new content is on disk', () => readFileSync(node.machine.config, 'utf8') === NEW);
  await delay(2000);
  node.machine.signalBus('SIGCONT');
  await settled(node, agent, NEW);
  assert.deepEqual(node.machine.starts(), [OLD, NEW].map(digestOf));
});

test('bus that is not there: rolled back without a restart, and tried again when it is', async (node) => {
  node.original.swap(NEW);
  const agent = node.agent(['--bus-socket=/nonexistent/bus']);
  await until(
    'the breaker is open',
    () => agent.reason() === 'BreakerOpen' || agent.events('recover-failed').length > 0,
  );
  assert.equal(readFileSync(node.machine.config, 'utf8'), OLD);
  assert.match(String(agent.events('restart-failed')[0]?.['error']), /Mount the folder of the socket/);
  await agent.stop();
  // With the bus back, the recovery ends, and the content is held back for a minute, not for ever.
  const second = node.agent();
  await until('the breaker is open', () => second.reason() === 'BreakerOpen');
  assert.equal(node.machine.starts().length, 1);
  assert.match(second.text(), /retried later/);
});

test('systemd that executes itself anew while the job runs', async (node) => {
  const agent = await settle(node);
  node.machine.behave({ slow: 1 });
  await restarting(node);
  node.machine.systemctl('daemon-reexec');
  await settled(node, agent, NEW);
});

test('SIGTERM in the middle of a restart ends the agent at once; the next one does not restart again', async (node) => {
  const agent = await settle(node);
  node.machine.unit(kubeletUnit(node.machine.state).replace('TimeoutStartSec=2', 'TimeoutStartSec=60'));
  node.machine.behave({ slow: 10 });
  await restarting(node);
  assert.equal((await agent.stop()).code, 0);
  assert.notEqual(node.machine.activeState(), 'active', 'it did not wait for the kubelet');
  await until('the kubelet is up', () => node.machine.activeState() === 'active');
  await settled(node, node.agent(), NEW);
  assert.deepEqual(node.machine.starts(), [OLD, NEW].map(digestOf));
});

test('a hundred swaps a second: the last one counts, and the kubelet is not restarted for each', async (node) => {
  const agent = await settle(node);
  let last = OLD;
  for (let at = 0; at < 200; at += 1) {
    last = secret(`registry-${at}.example.com`);
    node.original.swap(last);
    await delay(10);
  }
  await settled(node, agent, last);
  assert.ok(node.machine.starts().length < 20, `${node.machine.starts().length} starts`);
});

test('at rest it runs without the timers of its runtime, under the process id that the pod knows', async (node) => {
  const agent = await settle(node);
  const environment = readFileSync(`/proc/${agent.child.pid}/environ`, 'utf8').split('\0');
  assert.ok(environment.includes('BUN_GC_TIMER_DISABLE=1') && environment.includes('MIMALLOC_SCAVENGER=0'));
  const threads = entriesOf(`/proc/${agent.child.pid}/task`).map((task) =>
    readFileSync(`/proc/${agent.child.pid}/task/${task}/comm`, 'utf8').trim(),
  );
  assert.ok(!threads.includes('mi-scavenger'), threads.join());
});
