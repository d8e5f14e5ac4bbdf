/**
 * The live reconciler on a real API server: latency of a change, throughput of writes, and what 200 hosted clusters cost.
 * `node bench/reconcile.bench.ts latency|throughput|hosted` runs one part.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createLogger } from '../runtime/core/logger.ts';
import { inParallel } from '../runtime/core/parallel.ts';
import { ClusterCache } from '../runtime/engine/cache.ts';
import { Cluster } from '../runtime/engine/cluster.ts';
import type { Reconciler, Result } from '../runtime/engine/contract.ts';
import { FactCache, noLookUp } from '../runtime/engine/lookups.ts';
import { Manager } from '../runtime/engine/manager.ts';
import { createMetrics } from '../runtime/engine/metrics.ts';
import { systemQueueClock } from '../runtime/engine/queue.ts';
import { EventRecorder } from '../runtime/kube/events.ts';
import { HttpKubeClient } from '../runtime/kube/http-client.ts';
import { loadConnection } from '../runtime/kube/kubeconfig.ts';
import { type ControlPlane, startControlPlane } from '../test/control-plane/control-plane.ts';
import { eventually } from '../test/control-plane/eventually.ts';
import type { TestObject } from '../test/control-plane/resource-path.ts';
import { NODE, ReconcilerProcess } from '../test/reconcile/process.ts';
import { additional, furnish, GLOBAL, registriesOf } from '../test/reconcile/scene.ts';
import { executable } from '../test/support/executable.ts';
import { HostedStub } from './hosted-stub.ts';
import { interleaved, ms, percentile, printTable } from './measure.ts';

const CHANGES = 200;
const OBJECTS = 500;
const PARALLEL = 16;
const HOSTED = 200;

async function latency(program: readonly string[]): Promise<readonly number[]> {
  const plane = await startControlPlane({ crds: ['pullstatuses.pullwright.dev'] });
  await furnish(plane, 'quay.io');
  await plane.apply(additional('first.example.com'));
  const reconciler = new ReconcilerProcess(program, ['--kubeconfig', plane.kubeconfig]);
  await eventually(async () => {
    if (registriesOf(await plane.get(GLOBAL)).length !== 2) throw new Error('not merged');
  });
  const client = await clientOf(plane);
  const collection = { apiVersion: 'v1', kind: 'Secret', namespace: 'kube-system' };
  const selector = { fieldSelector: 'metadata.name=global-pull-secret' };
  const { resourceVersion } = await client.list(collection, selector);
  const stop = new AbortController();
  const events = await client.watch(collection, {
    ...selector,
    resourceVersion,
    seconds: 600,
    signal: stop.signal,
  });
  const times: number[] = [];
  for (let index = 0; index < CHANGES; index++) {
    await plane.apply(additional(`change-${index}.example.com`));
    const written = performance.now();
    await events.next();
    times.push(performance.now() - written);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  await events.return(undefined);
  client.close();
  await reconciler.stop();
  await plane.stop();
  return times.sort((a, b) => a - b);
}

/** Metadata of the same length as the engine's marks, without their meaning. */
const MARKS_ALIKE = {
  labels: { 'app.kubernetes.io/managed-by': 'somebody00', 'bare-client.ex/owner': 'bench-writer' },
  annotations: { 'bare-client.ex/key': 'local||all' },
};

async function clientOf(plane: ControlPlane): Promise<HttpKubeClient> {
  const connection = await loadConnection(plane.kubeconfig, {});
  return new HttpKubeClient({ connection, userAgent: 'bench' });
}

function configMap(index: number, value: string): TestObject {
  const data = { value, pad: 'x'.repeat(500) };
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `object-${index}`, namespace: 'default' },
    data,
  };
}

/**
 * Milliseconds to change the same objects: by the engine, by a bare parallel client with labels and annotations of the same
 * length as the engine's marks, and by one without: what is larger costs the API server more, whoever sends it.
 */
async function throughput(): Promise<Readonly<Record<'engine' | 'bare' | 'unmarked', number>>> {
  const plane = await startControlPlane();
  const client = await clientOf(plane);
  const indices = Array.from({ length: OBJECTS }, (_, index) => index);
  let passes = 0;
  const metrics = createMetrics();
  const counting = {
    ...metrics,
    reconciled: () => {
      passes += 1;
    },
  };
  const manager = new Manager({
    reconcilers: [writer()],
    facts: new FactCache(noLookUp),
    log: createLogger({ write: () => undefined, level: () => 'error' }),
    metrics: counting,
    clock: systemQueueClock,
  });
  const cluster = new Cluster({
    server: plane.server,
    client,
    cache: new ClusterCache(client),
    events: new EventRecorder({ client, controller: 'bench', instance: 'bench', now: () => Date.now() }),
    mayWrite: () => true,
  });
  manager.add({ name: 'local', controlPlaneNamespace: 'default' }, { hosted: cluster, management: cluster });
  manager.work();
  let round = 0;
  const engine = async (): Promise<void> => {
    const before = passes;
    round += 1;
    await plane.apply({
      ...configMap(0, String(round)),
      metadata: { name: 'trigger', namespace: 'default' },
    });
    await eventually(
      () => {
        if (passes === before) throw new Error('no pass');
      },
      { withinMs: 60_000, everyMs: 1 },
    );
  };
  const write = (prefix: string, marks: object): Promise<unknown> => {
    round += 1;
    return inParallel(indices, PARALLEL, (index) => {
      const name = `${prefix}-${index}`;
      return plane.client.request(
        'PATCH',
        `/api/v1/namespaces/default/configmaps/${name}?fieldManager=bare-client&force=true`,
        { ...configMap(index, String(round)), metadata: { name, namespace: 'default', ...marks } },
        'application/apply-patch+yaml',
      );
    });
  };
  const bare = (): Promise<unknown> => write('marked', MARKS_ALIKE);
  const unmarked = (): Promise<unknown> => write('bare', {});
  await engine();
  await bare();
  await unmarked();
  const times = await interleaved({ bare, engine, unmarked }, 7);
  await manager.stop();
  cluster.close();
  await plane.stop();
  return { bare: times.bare.median, engine: times.engine.median, unmarked: times.unmarked.median };
}

/** Applies {@link OBJECTS} objects with the value of the object `trigger`. */
function writer(): Reconciler {
  const read = { role: 'hosted', apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default' } as const;
  return {
    name: 'bench-writer',
    watches: [read],
    requestsFor: ({ name }, reader) =>
      name === 'trigger' ? [{ scope: reader.scope.name, name: 'all' }] : [],
    reconcile: (reader): Result => {
      const trigger = reader.get({ ...read, name: 'trigger' })?.['data'] as { value: string } | undefined;
      if (trigger === undefined) return {};
      return {
        apply: Array.from({ length: OBJECTS }, (_, index) => ({
          role: 'hosted' as const,
          object: configMap(index, trigger.value),
        })),
      };
    },
  };
}

interface Cost {
  readonly megabytes: number;
  readonly cpuShare: number;
  readonly requests: number;
}

/** Memory, processor time and requests of one process over ten quiet seconds. */
async function cost(stub: HostedStub, program: readonly string[], clusters: number): Promise<Cost> {
  stub.clusters = clusters;
  const [command = '', ...rest] = program;
  const args = [
    ...rest,
    'reconcile',
    `--kubeconfig=${stub.kubeconfig}`,
    '--discover',
    '--allow-address=127.0.0.0/8',
    `--config=${stub.config}`,
  ];
  const child = spawn(command, args, { stdio: 'ignore' });
  process.once('exit', () => child.kill('SIGKILL'));
  const pid = child.pid ?? 0;
  await eventually(
    () => {
      if (stub.merged < clusters) throw new Error(`${stub.merged} of ${clusters} are done`);
    },
    { withinMs: 120_000, everyMs: 200 },
  );
  await new Promise((resolve) => setTimeout(resolve, 5000));
  const [cpu, requests] = [cpuSeconds(pid), stub.requests];
  await new Promise((resolve) => setTimeout(resolve, 10_000));
  const result = {
    megabytes: residentMegabytes(pid),
    cpuShare: (cpuSeconds(pid) - cpu) / 10,
    requests: stub.requests - requests,
  };
  child.kill('SIGKILL');
  stub.forget();
  return result;
}

function residentMegabytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

type Runs = readonly (readonly [runtime: string, program: readonly string[]])[];

async function printLatency(runs: Runs): Promise<void> {
  const rows = [];
  for (const [name, program] of runs) {
    const times = await latency(program);
    rows.push({
      runtime: name,
      changes: times.length,
      'median ms': ms(percentile(times, 0.5)),
      'p99 ms': ms(percentile(times, 0.99)),
    });
  }
  printTable('Change of additional-pull-secret to global-pull-secret written', rows);
}

async function printThroughput(): Promise<void> {
  const { bare, engine, unmarked } = await throughput();
  const share = (time: number): string => `${((bare / time) * 100).toFixed(0)} %`;
  printTable(`Server-side apply of ${OBJECTS} changed objects, ${PARALLEL} at a time`, [
    { writer: 'bare parallel client, the same objects', ms: ms(bare), share: '100 %' },
    { writer: 'engine', ms: ms(engine), share: share(engine) },
    { writer: "bare client, objects without the engine's marks", ms: ms(unmarked), share: share(unmarked) },
  ]);
}

async function printCosts(runs: Runs): Promise<void> {
  const stub = await HostedStub.start();
  const rows = [];
  for (const [name, program] of runs) {
    const one = await cost(stub, program, 1);
    const many = await cost(stub, program, HOSTED);
    rows.push({
      runtime: name,
      'MB with 1': one.megabytes.toFixed(0),
      [`MB with ${HOSTED}`]: many.megabytes.toFixed(0),
      'MB per hosted cluster': ((many.megabytes - one.megabytes) / (HOSTED - 1)).toFixed(2),
      'CPU at rest': `${(many.cpuShare * 100).toFixed(1)} %`,
      'requests in 10 s at rest': many.requests,
    });
  }
  await stub.stop();
  printTable(`One process, ${HOSTED} simulated hosted clusters`, rows);
}

// One part, or all of them.
const [part] = process.argv.slice(2);
const programs: Runs =
  part === 'throughput'
    ? []
    : [
        ['node', NODE],
        ['executable', [await executable()]],
      ];
if (part === undefined || part === 'latency') await printLatency(programs);
if (part === undefined || part === 'throughput') await printThroughput();
if (part === undefined || part === 'hosted') await printCosts(programs);
