// deadline: 480 s
/** Sentinel, Pub/Sub and the adapter as programs, run by Node and compiled: the flow is the same as with RabbitMQ. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { missingPubSub, startPubSub } from '../brokers/pubsub-node.ts';
import { eventually } from '../control-plane/eventually.ts';
import { findPlanted } from '../support/canary.ts';
import { executable } from '../support/executable.ts';
import { suite } from '../support/suite.ts';
import { HyperfleetDouble } from './doubles/hyperfleet-api.ts';
import { JobCluster } from './doubles/job-cluster.ts';
import { goodSpec } from './scene.ts';
import { NODE } from './stage.ts';

const test = suite('pull secret adapter with Pub/Sub');
const missing = await missingPubSub();
const children = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

if (missing !== undefined) test.skip('Node and the executable', missing);
else {
  const compiled = [await executable()];
  for (const [name, program] of [
    ['Node', NODE],
    ['the executable', compiled],
  ] as const)
    test(`an event of Sentinel becomes a Job and a status: ${name}`, () => flow(program));
}

async function flow(program: readonly string[]): Promise<void> {
  const [server, api, cluster] = [
    await startPubSub(),
    await HyperfleetDouble.start(),
    await JobCluster.start(),
  ];
  let output = '';
  const run = (command: string, flags: readonly string[]): ChildProcess => {
    const [file = '', ...rest] = program;
    const broker = ['--broker', 'pubsub', '--gcp-project', 'proj', '--create-topics'];
    const child = spawn(file, [...rest, command, '--api', api.url, ...broker, ...flags], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, PUBSUB_EMULATOR_HOST: server.host },
    });
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    children.add(child);
    return child;
  };
  const ports = ['--health-port', 'off', '--metrics-port', 'off'];
  const adapter = run('adapter', ['--kubeconfig', cluster.kubeconfig, '--sweep-seconds', '100000', ...ports]);
  await eventually(() => assert.match(output, /Consuming from Pub\/Sub/), { withinMs: 90_000 });
  // Only what is added now is not found by the first go over the clusters.
  await eventually(
    () =>
      assert.ok(
        api.requests.some((one) => one.endsWith('/clusters')),
        output,
      ),
    {
      withinMs: 90_000,
    },
  );
  api.add('cls-1', goodSpec('pubsub'));
  const sentinel = run('sentinel', ['--once', '--debounce-seconds', '0']);
  const [code] = (await once(sentinel, 'exit')) as [number];
  assert.equal(code, 0, output);
  const available = (): unknown =>
    api.last('cls-1')?.conditions.find((one) => one.type === 'Available')?.reason;
  await eventually(() => assert.equal(available(), 'SecretAvailable', output), { withinMs: 90_000 });
  adapter.kill('SIGTERM');
  const [end] = (await once(adapter, 'exit')) as [number];
  assert.equal(end, 0, output);
  assert.equal(findPlanted(output), undefined);
  assert.deepEqual([api.violations, api.refused, cluster.started], [[], [], ['pullsecret-cls-1-gen1']]);
  server.stop();
  await api.close();
  await cluster.close();
}

test.run();
