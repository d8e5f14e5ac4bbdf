/**
 * Node agent and installer as nodes run them: compiled, on a real systemd. How long from the swap of the mounted secret to the file, and to
 * the restarted kubelet; how long a credential takes that is given, taken away or removed with its Secret in the API server; how long
 * an entry of CRIOCredentialProviderConfig takes to the kubelet; what the agent costs at rest; how soon after its start it has looked.
 *
 * Needs root and systemd. `PULLWRIGHT_EXECUTABLE` names another executable to be measured.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { agentRbac } from '../runtime/global-pull-secret/daemon-set.ts';
import { connectBus } from '../runtime/node/systemd.ts';
import { missingControlPlane } from '../test/control-plane/build.ts';
import { startControlPlane } from '../test/control-plane/control-plane.ts';
import {
  GOOD_VERSIONS,
  InstallerCluster,
  InstallerNode,
  inSync,
} from '../test/credential-provider/support/installer-scene.ts';
import { agentAccount, agentSecret } from '../test/support/agent-plane.ts';
import { NEW, OLD, secret, startNode } from '../test/support/agent-scene.ts';
import type { RunningAgent } from '../test/support/node-agent.ts';
import { missingSystemd, until } from '../test/support/systemd.ts';
import { ms, printTable, ratio, spread } from './measure.ts';

const SWAPS = 25;
const REST_S = 60;

const missing = missingSystemd();
if (missing !== undefined) {
  process.stderr.write(`skipped: ${missing}\n`);
  process.exit(0);
}

const node = await startNode();
const { machine } = node;
node.original.swap(OLD);

/** Milliseconds until `holds`, looked at every half millisecond. */
async function timeUntil(holds: () => boolean): Promise<number> {
  const from = performance.now();
  while (!holds()) await delay(0.5);
  return performance.now() - from;
}

/** systemd's own time: a restart by a bare D-Bus call, until the kubelet has read its file. */
async function bareRestart(): Promise<number> {
  const bus = await connectBus(machine.bus, 5000);
  const before = machine.starts().length;
  const read = timeUntil(() => machine.starts().length > before);
  await bus.call(
    {
      destination: 'org.freedesktop.systemd1',
      path: '/org/freedesktop/systemd1',
      interface: 'org.freedesktop.systemd1.Manager',
      member: 'RestartUnit',
      signature: 'ss',
      body: ['kubelet.service', 'replace'],
    },
    5000,
  );
  bus.close();
  return read;
}

async function swaps(): Promise<void> {
  const agent = node.agent(['--settle=100ms']);
  await until('the agent is in sync', () => agent.reason() === 'InSync');
  const toDisk: number[] = [];
  const toRead: number[] = [];
  const bare: number[] = [];
  for (let at = 0; at < SWAPS; at += 1) {
    bare.push(await bareRestart());
    await until('the bare restart is over', () => machine.activeState() === 'active');
    const content = secret(`registry-${at}.example.com`, 'old.example.com');
    const before = machine.starts().length;
    node.original.swap(content);
    const [disk, read] = await Promise.all([
      timeUntil(() => readFileSync(machine.config, 'utf8') === content),
      timeUntil(() => machine.starts().length > before),
    ]);
    toDisk.push(disk);
    toRead.push(read);
    await until(
      'the agent is in sync',
      () => agent.events('restarted').length === at + 1 && agent.reason() === 'InSync',
    );
  }
  await agent.stop();
  const own = spread(bare);
  printTable('node agent: from the swap of the mounted secret', [
    row('to the file on disk', toDisk, own.median),
    row('to the kubelet that has read it', toRead, own.median),
    row('a bare RestartUnit, to the kubelet that has read it', bare, own.median),
  ]);
}

function row(what: string, values: readonly number[], of: number): Record<string, string> {
  const { median, max } = spread(values);
  return { what, 'median ms': ms(median), 'max ms': ms(max), 'to bare restart': ratio(median, of) };
}

/** From the API server's answer to the kubelet that has read the file. */
async function revocations(): Promise<void> {
  const absent = missingControlPlane();
  if (absent !== undefined) {
    process.stderr.write(`skipped: ${absent}\n`);
    return;
  }
  const plane = await startControlPlane();
  const { flag, env } = await agentAccount(plane);
  for (const lease of agentRbac({}).filter(({ kind }) => kind === 'Lease')) await plane.apply(lease);
  await plane.apply(agentSecret('original-pull-secret', OLD));
  node.original.swap(OLD);
  const agent = node.agent(['--node-name=a', '--watch', '--settle=100ms', flag], env);
  await until('the agent is in sync', () => agent.reason() === 'InSync');
  const given: number[] = [];
  const taken: number[] = [];
  const removed: number[] = [];
  const timed = async (times: number[], content: string, change: () => Promise<unknown>): Promise<void> => {
    const before = machine.starts().length;
    await change();
    times.push(
      await timeUntil(
        () => readFileSync(machine.config, 'utf8') === content && machine.starts().length > before,
      ),
    );
    await until('the agent is in sync', () => agent.reason() === 'InSync');
  };
  const more = secret('more.example.com', 'new.example.com', 'old.example.com');
  for (let at = 0; at < SWAPS; at += 1) {
    await timed(given, more, () => plane.apply(agentSecret('global-pull-secret', more)));
    await timed(taken, NEW, () => plane.apply(agentSecret('global-pull-secret', NEW)));
    await timed(removed, OLD, () => plane.remove(agentSecret('global-pull-secret', NEW)));
  }
  await agent.stop();
  await plane.stop();
  const line = (what: string, times: readonly number[]): Record<string, string> => {
    const { median, max } = spread(times);
    return { what, 'median ms': ms(median), 'max ms': ms(max) };
  };
  printTable('node agent: from the Secret in the API server to the kubelet that has read the file', [
    line('a credential given', given),
    line('a credential revoked', taken),
    line('the Secret removed', removed),
  ]);
}

/** From the API server's answer to the kubelet that was started with the new entry. */
async function entries(): Promise<void> {
  if (missingControlPlane() !== undefined) return;
  const cluster = await InstallerCluster.start();
  const provided = await InstallerNode.start(cluster, GOOD_VERSIONS);
  const installer = provided.run(['--poll=10m']);
  const times: number[] = [];
  // The first one installs.
  for (let at = 0; at <= SWAPS; at += 1) {
    const before = provided.starts().length;
    await cluster.entries(`registry-${at}.example.com`);
    const took = await timeUntil(() => provided.starts().length > before);
    if (at > 0) times.push(took);
    await until('it is settled', () => installer.events('restarted').length > at);
    await inSync(installer);
  }
  await installer.stop();
  await provided.machine.stop();
  await cluster.plane.stop();
  const { median, max } = spread(times);
  printTable('installer: from CRIOCredentialProviderConfig in the API server to the kubelet that has it', [
    { what: 'an entry changed', 'median ms': ms(median), 'max ms': ms(max) },
  ]);
}

async function startUp(): Promise<void> {
  const times: number[] = [];
  for (let at = 0; at < SWAPS; at += 1) {
    const from = performance.now();
    const agent = node.agent(['--log-format=logfmt', '--restart=never']);
    await timeUntil(() => agent.text().includes('reason='));
    times.push(performance.now() - from);
    await agent.stop();
  }
  const { min, median, max } = spread(times);
  printTable('node agent: from its start to the end of its first look', [
    { runs: times.length, 'min ms': ms(min), 'median ms': ms(median), 'max ms': ms(max) },
  ]);
}

async function atRest(): Promise<void> {
  const agent = node.agent(['--health-port=0']);
  await until('the agent is in sync', () => agent.reason() === 'InSync');
  await delay(5000);
  const before = switches(agent);
  await delay(REST_S * 1000);
  const perMinute = (between(before, switches(agent)) * 60) / REST_S;
  const memory = readFileSync(`/proc/${agent.child.pid}/smaps_rollup`, 'utf8');
  const mib = (name: string): string =>
    (Number(new RegExp(`^${name}: +(\\d+) kB`, 'm').exec(memory)?.[1] ?? 0) / 1024).toFixed(1);
  printTable('node agent: at rest', [
    {
      'voluntary switches a minute, all threads': perMinute.toFixed(0),
      'resident MiB': mib('Rss'),
      'private clean MiB': mib('Private_Clean'),
      'private dirty MiB': mib('Private_Dirty'),
    },
  ]);
  await agent.stop();
}

/** By thread, how often it gave up the processor by itself. What the machine takes away says something about the machine. */
function switches(agent: RunningAgent): ReadonlyMap<string, number> {
  const tasks = `/proc/${agent.child.pid}/task`;
  return new Map(
    readdirSync(tasks).map((task) => {
      const status = readFileSync(join(tasks, task, 'status'), 'utf8');
      return [task, Number(/^voluntary_ctxt_switches:\s+(\d+)$/m.exec(status)?.[1] ?? 0)];
    }),
  );
}

/** Threads that ended in between are those of the start; they do not count. */
function between(before: ReadonlyMap<string, number>, later: ReadonlyMap<string, number>): number {
  return [...later].reduce((sum, [task, count]) => sum + count - (before.get(task) ?? 0), 0);
}

try {
  await swaps();
  await revocations();
  await entries();
  await startUp();
  await atRest();
} finally {
  await machine.stop();
}
