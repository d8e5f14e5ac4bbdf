/**
 * The pull secret adapter behind RabbitMQ on loopback: throughput, latency, memory, and what a second replica is worth. The HyperFleet API
 * and the cluster are doubles in this process; Jobs end at once.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from 'rabbitmq-client';
import { inParallel } from '../runtime/core/parallel.ts';
import { redact } from '../runtime/core/redacted.ts';
import { rabbitMqTopology } from '../runtime/pull-secret-adapter/broker/broker.ts';
import { publishRabbitMq } from '../runtime/pull-secret-adapter/broker/rabbitmq.ts';
import { type RabbitMqNode, startRabbitMq } from '../test/brokers/rabbitmq-node.ts';
import { eventually } from '../test/control-plane/eventually.ts';
import { HyperfleetDouble } from '../test/pull-secret-adapter/doubles/hyperfleet-api.ts';
import { JobCluster } from '../test/pull-secret-adapter/doubles/job-cluster.ts';
import { eventFor, goodSpec } from '../test/pull-secret-adapter/scene.ts';
import { executable } from '../test/support/executable.ts';
import { freePort } from '../test/support/loopback.ts';
import { RunningProgram } from '../test/support/running-program.ts';
import { ms, percentile, printTable, ratio } from './measure.ts';

const topology = rabbitMqTopology({
  topic: 'hyperfleet-clusters',
  subscription: 'pullsecret',
});

interface Load {
  readonly events: number;
  readonly clusters: number;
  readonly replicas: number;
  /** The API answers this late. */
  readonly apiMs: number;
  /** Clusters that a replica looks at at the same time. @default {20} */
  readonly concurrency?: number;
}

/** Answer to the first poll of the clusters: an empty list, since events deliver them here. */
const EMPTY = JSON.stringify({ page: 1, size: 100, total: 0, items: [] });

interface Outcome {
  readonly seconds: number;
  /** Resident memory of the first replica after each quarter of the events, in MiB. */
  readonly memory: readonly number[];
}

class Replica extends RunningProgram {
  readonly #port: number;

  constructor(program: readonly string[], port: number, args: readonly string[]) {
    const flags = ['--metrics-port', String(port), '--health-port', 'off', '--log-level', 'error'];
    super([...program, 'adapter', ...flags, ...args]);
    this.#port = port;
  }

  /** Events that it has finished with. */
  async handled(): Promise<number> {
    try {
      const text = await (await fetch(`http://127.0.0.1:${this.#port}/metrics`)).text();
      const counts = text.matchAll(
        /^pullwright_adapter_events_total\{outcome="(?:done|duplicate)"\} (\d+)$/gm,
      );
      return [...counts].reduce((sum, match) => sum + Number(match[1]), 0);
    } catch {
      return 0;
    }
  }

  get megabytes(): number {
    return (
      Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${this.process.pid}/status`, 'utf8'))?.[1]) / 1024
    );
  }
}

async function scene(load: Load): Promise<{ api: HyperfleetDouble; cluster: JobCluster }> {
  const [api, cluster] = [await HyperfleetDouble.start(), await JobCluster.start()];
  api.strict = false;
  api.delayMs = load.apiMs;
  api.faults = [{ on: /\/clusters\?/, status: 200, body: EMPTY, times: Number.POSITIVE_INFINITY }];
  for (let index = 0; index < load.clusters; index += 1) api.add(`cls-${index}`, goodSpec('bench'));
  return { api, cluster };
}

function argsOf(api: HyperfleetDouble, cluster: JobCluster): readonly string[] {
  return ['--api', api.url, '--broker-url-file', urlFile, '--kubeconfig', cluster.kubeconfig];
}

/** All events wait in the queue before the adapter starts; timed from the first that is handled to the last. */
async function burst(program: readonly string[], load: Load): Promise<Outcome> {
  const { api, cluster } = await scene(load);
  await inParallel(
    Array.from({ length: load.events }, (_, index) => index),
    200,
    async (index) => {
      const id = `cls-${(index * 7919) % load.clusters}`;
      const body = Buffer.from(eventFor(id, `${id}-${index}`).body).toString();
      await publisher.publish({ id: String(index), body });
    },
  );
  const pace = ['--concurrency', String(load.concurrency ?? 20)];
  const replicas: Replica[] = [];
  for (let count = 0; count < load.replicas; count += 1)
    replicas.push(new Replica(program, await freePort(), [...argsOf(api, cluster), ...pace]));
  const handled = async (): Promise<number> =>
    (await Promise.all(replicas.map((one) => one.handled()))).reduce((sum, one) => sum + one, 0);
  const reached = async (wanted: number): Promise<number> =>
    eventually(
      async () => {
        if ((await handled()) < wanted) throw new Error('not yet');
        return performance.now();
      },
      { withinMs: 200_000, everyMs: 50 },
    );
  const began = await reached(1);
  const first = await handled();
  const memory: number[] = [];
  let ended = began;
  for (const share of [0.25, 0.5, 0.75, 1]) {
    ended = await reached(load.events * share);
    memory.push(replicas[0]?.megabytes ?? 0);
  }
  const seconds = ((ended - began) / 1000) * (load.events / (load.events - first));
  await Promise.all(replicas.map((one) => one.stop()));
  await api.close();
  await cluster.close();
  return { seconds, memory };
}

/** New clusters at a steady pace: from the event to the first report, and from a Job's end to its report. */
async function steady(
  program: readonly string[],
  perSecond: number,
  count: number,
): Promise<[number[], number[]]> {
  const { api, cluster } = await scene({ events: 0, clusters: count, replicas: 1, apiMs: 0 });
  cluster.jobMs = 200;
  const replica = new Replica(program, await freePort(), argsOf(api, cluster));
  await eventually(
    async () => {
      const { consumerCount } = await probe.queueDeclare({ queue: topology.queue, passive: true });
      if (consumerCount !== 1 || cluster.all('leases').length === 0) throw new Error('not yet');
    },
    { withinMs: 60_000 },
  );
  const sent = new Map<string, number>();
  for (let index = 0; index < count; index += 1) {
    const id = `cls-${index}`;
    sent.set(id, performance.now());
    const body = Buffer.from(eventFor(id, id).body).toString();
    await publisher.publish({ id, body });
    await new Promise((resolve) => setTimeout(resolve, 1000 / perSecond));
  }
  const done = (): number => api.reported.filter((one) => one.conditions[0]?.status === 'True').length;
  await eventually(
    () => {
      if (done() < count) throw new Error(`${done()} of ${count}`);
    },
    { withinMs: 60_000, everyMs: 50 },
  );
  const [toStatus, toEnd]: [number[], number[]] = [[], []];
  for (const { cluster: id, at, conditions } of api.reported) {
    if (conditions[0]?.status === 'True') toEnd.push(at - (cluster.ended.get(`pullsecret-${id}-gen1`) ?? 0));
    else toStatus.push(at - (sent.get(id) ?? 0));
  }
  await replica.stop();
  await api.close();
  await cluster.close();
  return [toStatus.sort((a, b) => a - b), toEnd.sort((a, b) => a - b)];
}

/** The queue has to be there before anything is published: an exchange without a queue drops it. */
async function declareQueue(): Promise<void> {
  const { exchange, exchangeType: type, queue, routingKey } = topology;
  await probe.exchangeDeclare({ exchange, type, durable: true });
  await probe.queueDeclare({ queue, durable: true });
  await probe.queueBind({ exchange, queue, routingKey });
}

const compiled = [await executable()];
const node = [process.execPath, new URL('../main.ts', import.meta.url).pathname];
const rabbit: RabbitMqNode = await startRabbitMq();
const folder = mkdtempSync(join(tmpdir(), 'pullwright-bench-'));
const urlFile = join(folder, 'broker-url');
writeFileSync(urlFile, rabbit.url, { mode: 0o600 });
const probe = new Connection(rabbit.url);
const publisher = publishRabbitMq({ url: redact(rabbit.url), topology, note: () => undefined });
await declareQueue();

{
  const rows = [];
  for (const [runtime, program, events, clusters] of [
    ['executable', compiled, 10_000, 2000],
    ['node', node, 2500, 500],
  ] as const) {
    const { seconds, memory } = await burst(program, { events, clusters, replicas: 1, apiMs: 0 });
    const [first = 0, , , last = 0] = memory;
    rows.push({
      runtime,
      events,
      clusters,
      'events a second': (events / seconds).toFixed(0),
      'MiB after each quarter': memory.map((one) => one.toFixed(0)).join(', '),
      'last / first': ratio(last, first),
    });
  }
  printTable('pull secret adapter: events for new clusters, one replica', rows);
}

{
  const rows = [];
  for (const [api, load] of [
    ['answers in 50 ms', { events: 500, clusters: 100, apiMs: 50, concurrency: 5 }],
    ['answers in 50 ms', { events: 1500, clusters: 300, apiMs: 50, concurrency: 20 }],
    ['answers at once', { events: 4000, clusters: 800, apiMs: 0, concurrency: 20 }],
  ] as const) {
    const one = await burst(compiled, { ...load, replicas: 1 });
    const two = await burst(compiled, { ...load, replicas: 2 });
    rows.push({
      'the API': api,
      'looks at a time': load.concurrency,
      'events a second, one replica': (load.events / one.seconds).toFixed(0),
      'two replicas': (load.events / two.seconds).toFixed(0),
      'two / one': ratio(one.seconds, two.seconds),
    });
  }
  printTable('pull secret adapter: what a second replica is worth', rows);
}

{
  const perSecond = 25;
  const [toStatus, toEnd] = await steady(compiled, perSecond, 250);
  const row = (what: string, times: readonly number[]): Record<string, string> => ({
    what,
    'median ms': ms(percentile(times, 0.5)),
    'p99 ms': ms(percentile(times, 0.99)),
  });
  printTable(`pull secret adapter: ${perSecond} new clusters a second`, [
    row('from the event to its status', toStatus),
    row('from the end of a Job to its status', toEnd),
  ]);
}

await publisher.close();
await probe.close();
await rabbit.stop();
rmSync(folder, { recursive: true });
