/**
 * Adapter and Sentinel as programs, each with a line of its own to a real broker, and what becomes of them when the lines break. Every
 * cluster has one event and no other trigger, so a dropped event fails the test.
 */
import assert from 'node:assert/strict';
import { type Line, openLine } from '../brokers/line.ts';
import { eventually } from '../control-plane/eventually.ts';
import { findPlanted } from '../support/canary.ts';
import { freePort } from '../support/loopback.ts';
import { RunningProgram } from '../support/running-program.ts';
import type { TestSuite } from '../support/suite.ts';
import { HyperfleetDouble } from './doubles/hyperfleet-api.ts';
import { JobCluster } from './doubles/job-cluster.ts';
import { goodSpec } from './scene.ts';

export interface Broker {
  /** `host:port` */
  readonly address: string;
  /** Flags and variables that lead to the broker at another address. */
  readonly at: (host: string) => {
    readonly flags: readonly string[];
    readonly env: Readonly<Record<string, string>>;
  };
  readonly stop: () => Promise<void> | void;
  /** Program of the first leader: the sources run by Node, or the executable. The adapter that takes over is the other one. */
  readonly first: readonly string[];
  readonly second: readonly string[];
}

interface Program {
  readonly run: RunningProgram;
  readonly line: Line;
  readonly port: number;
}

class Scene {
  readonly api: HyperfleetDouble;
  readonly cluster: JobCluster;
  readonly broker: Broker;
  readonly lines: Line[] = [];

  constructor(api: HyperfleetDouble, cluster: JobCluster, broker: Broker) {
    this.api = api;
    this.cluster = cluster;
    this.broker = broker;
  }

  adapter(program: readonly string[]): Promise<Program> {
    const { kubeconfig } = this.cluster;
    return this.#run([...program, 'adapter', '--kubeconfig', kubeconfig, '--sweep', '100000']);
  }

  /** Says each thing once. */
  sentinel(): Promise<Program> {
    return this.#run([
      ...this.broker.first,
      'sentinel',
      '--poll',
      '1s',
      '--rule',
      'dependencies',
      '--debounce',
      '100000',
      '--max-age',
      '100000',
    ]);
  }

  async #run(command: readonly string[]): Promise<Program> {
    const line = await openLine(this.broker.address);
    this.lines.push(line);
    const { flags, env } = this.broker.at(line.host);
    const port = await freePort();
    const ports = ['--health-port', String(port), '--metrics-port', 'off'];
    const run = new RunningProgram([...command, '--api', this.api.url, ...ports, ...flags], env);
    return { run, line, port };
  }

  available(id: string): unknown {
    return this.api.last(id)?.conditions.find((one) => one.type === 'Available')?.reason;
  }

  async add(id: string): Promise<void> {
    this.api.add(id, goodSpec(id));
  }
}

async function ready({ port }: Program): Promise<number> {
  return (await fetch(`http://127.0.0.1:${port}/readyz`)).status;
}

async function is(program: Program, status: 200 | 503): Promise<void> {
  await eventually(async () => assert.equal(await ready(program), status, program.run.log.slice(-1500)));
}

async function ends({ run }: Program): Promise<void> {
  assert.equal(await run.stop(), 0, run.log.slice(-1500));
}

/** Events that Sentinel says it has sent. */
function published({ run }: Program): number {
  return [...run.log.matchAll(/"published":(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** The cases, for one broker. */
export function brokenBroker(test: TestSuite, start: () => Promise<Broker>): void {
  let scene: Scene;
  let adapter: Program;
  let sentinel: Program;

  test('both are ready only once the broker answers', async () => {
    const broker = await start();
    scene = new Scene(await HyperfleetDouble.start(), await JobCluster.start(), broker);
    [adapter, sentinel] = [await scene.adapter(broker.first), await scene.sentinel()];
    for (const program of [adapter, sentinel]) await is(program, 200);
    // The leader has finished its sweep: from here on only an event triggers a reconcile.
    await eventually(() => assert.match(adapter.run.log, /became leader/));
    await eventually(() =>
      assert.ok(scene.api.requests.filter((one) => one.endsWith('/clusters')).length > 1),
    );
    await scene.add('cls-0');
    await eventually(() => assert.equal(scene.available('cls-0'), 'SecretAvailable'));
  });

  for (const fault of ['cut', 'hang'] as const)
    test(`${fault}: neither is ready, both come back, and no event is lost`, async () => {
      for (const { line } of [adapter, sentinel]) line[fault]();
      for (const program of [adapter, sentinel]) await is(program, 503);
      const before = published(sentinel);
      await scene.add(`cls-${fault}-held-up`);
      sentinel.line.repair();
      await is(sentinel, 200);
      await eventually(() => assert.equal(published(sentinel), before + 1, sentinel.run.log));
      // This event waits at the broker for the adapter.
      await scene.add(`cls-${fault}-waits`);
      await eventually(() => assert.equal(published(sentinel), before + 2, sentinel.run.log));
      assert.equal(scene.available(`cls-${fault}-waits`), undefined);
      adapter.line.repair();
      await is(adapter, 200);
      for (const id of [`cls-${fault}-held-up`, `cls-${fault}-waits`])
        await eventually(() => assert.equal(scene.available(id), 'SecretAvailable', adapter.run.log));
    });

  for (const fault of ['halfClose', 'forget'] as const)
    test(`${fault}: both make new connections by themselves, and no event is lost`, async () => {
      const [one, two] = [adapter.line.connections(), sentinel.line.connections()];
      for (const { line } of [adapter, sentinel]) line[fault]();
      const id = `cls-${fault.toLowerCase()}`;
      await scene.add(id);
      await eventually(() => assert.ok(adapter.line.connections() > one));
      await eventually(() => assert.ok(sentinel.line.connections() > two));
      for (const program of [adapter, sentinel]) await is(program, 200);
      await eventually(() => assert.equal(scene.available(id), 'SecretAvailable'));
    });

  test('killed while it handles a message: the other adapter gets it', async () => {
    // The other adapter leads and does not sweep again, so only the message triggers this cluster.
    adapter.line.cut();
    await is(adapter, 503);
    const killed = await scene.adapter(scene.broker.second);
    await is(killed, 200);
    scene.api.faults = [{ on: /GET .*\/clusters\/cls-killed$/, delayMs: 10_000 }];
    await scene.add('cls-killed');
    await eventually(() => assert.ok(scene.api.requests.some((one) => one.endsWith('/cls-killed'))));
    await killed.run.stop('SIGKILL');
    adapter.line.repair();
    await eventually(() =>
      assert.equal(scene.available('cls-killed'), 'SecretAvailable', adapter.run.log.slice(-1500)),
    );
  });

  test('ended while the line hangs: what is being handled is finished, the rest waits, and the process ends', async () => {
    scene.api.faults = [{ on: /GET .*\/clusters\/cls-drained$/, delayMs: 3000 }];
    await scene.add('cls-drained');
    await eventually(() => assert.ok(scene.api.requests.some((one) => one.endsWith('/cls-drained'))));
    adapter.line.hang();
    await ends(adapter);
    assert.deepEqual(scene.cluster.started.filter((one) => one.includes('drained')).length, 1);
    sentinel.line.hang();
    await scene.add('cls-late');
    await eventually(() => assert.equal(scene.available('cls-drained'), 'JobInProgress'));
    await ends(sentinel);
  });

  test('the next process gets the message that was not acknowledged, and finishes', async () => {
    adapter = await scene.adapter(scene.broker.second);
    await is(adapter, 200);
    await eventually(() => assert.equal(scene.available('cls-drained'), 'SecretAvailable'));
  });

  test.lastly('everything stops, and nothing was printed that is secret', async () => {
    for (const { run } of [adapter, sentinel]) await run.stop('SIGKILL');
    // Includes the lines of exited processes, which are still open.
    for (const line of scene.lines) line.close();
    assert.equal(findPlanted(adapter.run.log + sentinel.run.log), undefined);
    assert.deepEqual([scene.api.violations, scene.api.refused], [[], []]);
    await scene.api.close();
    await scene.cluster.close();
    await scene.broker.stop();
  });
}
