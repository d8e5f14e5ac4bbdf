// deadline: 480 s
// needs: Go
/** Sentinel, Pub/Sub and the adapter as programs, run by Node and compiled: an event, garbage, and a kill while an event is handled. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { startPubSub } from '../brokers/pubsub-node.ts';
import { eventually } from '../control-plane/eventually.ts';
import { findPlanted } from '../support/canary.ts';
import { executable } from '../support/executable.ts';
import { test } from '../support/suite.ts';
import { NODE } from './container.ts';
import { HyperfleetDouble } from './doubles/hyperfleet-api.ts';
import { JobCluster } from './doubles/job-cluster.ts';
import { goodSpec } from './scene.ts';

/** What the first go over the clusters is told after the kill: only the message can bring the cluster back. */
const NO_CLUSTERS = JSON.stringify({ page: 1, size: 100, total: 0, items: [] });
const children = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

const compiled = [await executable()];
for (const [name, program] of [
  ['Node', NODE],
  ['the executable', compiled],
] as const)
  test(`an event becomes a status, garbage a dead letter, and a kill loses nothing: ${name}`, () =>
    flow(program));

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
  const start = (): ChildProcess =>
    run('adapter', ['--kubeconfig', cluster.kubeconfig, '--sweep', '100000', ...ports]);
  let adapter = start();
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
  const sentinel = run('sentinel', ['--once', '--debounce', '0']);
  const [code] = (await once(sentinel, 'exit')) as [number];
  assert.equal(code, 0, output);
  const available = (id: string): unknown =>
    api.last(id)?.conditions.find((one) => one.type === 'Available')?.reason;
  await eventually(() => assert.equal(available('cls-1'), 'SecretAvailable', output), { withinMs: 90_000 });
  const letters = await deadLetters(server.host);
  await letters.publish('garbage');
  await eventually(() => assert.deepEqual(letters.got, ['garbage: the body is not JSON in UTF-8']), {
    withinMs: 90_000,
  });
  await letters.close();
  // Killed in the middle of a look: the message was not acknowledged, and comes again.
  api.add('cls-2', goodSpec('kill'));
  api.faults = [{ on: /clusters\/cls-2/, delayMs: 8000, times: Number.POSITIVE_INFINITY }];
  const second = run('sentinel', ['--once', '--debounce', '0']);
  await once(second, 'exit');
  await eventually(() => assert.ok(api.requests.some((one) => one.endsWith('/cls-2'))), { withinMs: 90_000 });
  adapter.kill('SIGKILL');
  await once(adapter, 'exit');
  api.faults = [{ on: /\/clusters\?/, status: 200, body: NO_CLUSTERS }];
  adapter = start();
  await eventually(() => assert.equal(available('cls-2'), 'SecretAvailable', output), { withinMs: 90_000 });
  adapter.kill('SIGTERM');
  const [end] = (await once(adapter, 'exit')) as [number];
  assert.equal(end, 0, output);
  assert.equal(findPlanted(output), undefined);
  assert.deepEqual(
    [api.violations, api.refused, cluster.started],
    [[], [], ['pullsecret-cls-1-gen1', 'pullsecret-cls-2-gen1']],
  );
  server.stop();
  await api.close();
  await cluster.close();
}

interface DeadLetters {
  /** Text and reason of each. */
  readonly got: readonly string[];
  /** Into the topic that the adapter reads. */
  readonly publish: (text: string) => Promise<unknown>;
  readonly close: () => Promise<void>;
}

async function deadLetters(host: string): Promise<DeadLetters> {
  process.env['PUBSUB_EMULATOR_HOST'] = host;
  const { PubSub } = await import('@google-cloud/pubsub');
  const client = new PubSub({ projectId: 'proj' });
  const [subscription] = await client.createSubscription('pullsecret-dlq', 'letters');
  const got: string[] = [];
  subscription.on('message', (message) => {
    got.push(`${message.data.toString()}: ${message.attributes['x-pullwright-reason']}`);
    message.ack();
  });
  return {
    got,
    publish: (text) => client.topic('hyperfleet-clusters').publishMessage({ data: Buffer.from(text) }),
    close: async () => {
      await subscription.close();
      await client.close();
    },
  };
}
