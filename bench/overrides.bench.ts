/**
 * One change of a mirror set reaches every hosted cluster of a management cluster: our reconciler against a bare client that
 * sends the same number of patches, on one API server, in one run. `CLUSTERS` (500) scales it.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { openKubeconfig } from '../runtime/commands/reconcile/live.ts';
import { createLogger } from '../runtime/core/logger.ts';
import { FactCache, noLookUp } from '../runtime/engine/lookups.ts';
import { Manager } from '../runtime/engine/manager.ts';
import { createMetrics } from '../runtime/engine/metrics.ts';
import { systemQueueClock } from '../runtime/engine/queue.ts';
import { HttpKubeClient } from '../runtime/kube/http-client.ts';
import { loadConnection } from '../runtime/kube/kubeconfig.ts';
import { reconcilers } from '../runtime/registry-overrides/reconciler/reconcile.ts';
import { missingControlPlane } from '../test/control-plane/build.ts';
import { startControlPlane } from '../test/control-plane/control-plane.ts';
import type { TestObject } from '../test/control-plane/resource-path.ts';
import { ms, printTable, ratio, spread } from './measure.ts';

const CLUSTERS = Number(process.env['CLUSTERS'] ?? 500);
const PARALLEL = 16;
const ROUNDS = 5;

const missing = missingControlPlane();
if (missing !== undefined) {
  process.stderr.write(`skipped: ${missing}\n`);
  process.exit(0);
}

const plane = await startControlPlane({
  crds: [
    'hostedclusters.hypershift.openshift.io',
    'imagedigestmirrorsets.config.openshift.io',
    'pullstatuses.pullwright.dev',
  ],
});
const names = Array.from({ length: CLUSTERS }, (_, at) => `c${at}`);

async function parallel(work: (name: string) => Promise<unknown>): Promise<number> {
  const started = performance.now();
  const queue = [...names];
  const worker = async (): Promise<void> => {
    for (let name = queue.pop(); name !== undefined; name = queue.pop()) await work(name);
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  return performance.now() - started;
}

const TARGETS = ['control-plane-operator', 'ignition-server'];

function deployment(namespace: string, name: string): TestObject {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name, image: 'quay.io/ocp/x:1' }] } };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace },
    spec: { replicas: 0, selector: { matchLabels: labels }, template },
  };
}

function mirrorSet(round: string): TestObject {
  const imageDigestMirrors = Array.from({ length: 20 }, (_, at) => ({
    source: `quay.io/s${at}`,
    mirrors: [`m-${round}.example.com/s${at}`],
  }));
  return {
    apiVersion: 'config.openshift.io/v1',
    kind: 'ImageDigestMirrorSet',
    metadata: { name: 'release' },
    spec: { imageDigestMirrors },
  };
}

function hostedCluster(name: string): TestObject {
  const services = ['APIServer', 'OAuthServer', 'Konnectivity', 'Ignition'].map((service) => ({
    service,
    servicePublishingStrategy: { type: 'Route' },
  }));
  const spec = {
    release: { image: 'quay.io/ocp/release:4.22.0' },
    pullSecret: { name: 'p' },
    sshKey: { name: 's' },
    platform: { type: 'None' },
    services,
  };
  return {
    apiVersion: 'hypershift.openshift.io/v1beta1',
    kind: 'HostedCluster',
    metadata: { name, namespace: 'clusters' },
    spec,
  };
}

/** Deployments that carry each round, read through a separate watch. */
const carriers = new Map<string, Set<string>>();

async function watchDeployments(): Promise<void> {
  const connection = await loadConnection(plane.kubeconfig, {});
  const client = new HttpKubeClient({
    connection,
    userAgent: 'bench',
  });
  const kind = { apiVersion: 'apps/v1', kind: 'Deployment' };
  const { resourceVersion } = await client.list(kind, { limit: 1 });
  const events = await client.watch(kind, {
    resourceVersion,
    seconds: 3000,
    signal: new AbortController().signal,
  });
  void (async () => {
    for await (const event of events) {
      if (event.type === 'BOOKMARK') continue;
      const round = /quay\.io\/s0=m-(\w+)\./.exec(JSON.stringify(event.object.spec))?.[1] ?? '';
      const { namespace, name } = event.object.metadata;
      const known = carriers.get(round) ?? new Set();
      carriers.set(round, known.add(`${namespace}/${name}`));
    }
  })();
}

async function until(round: string, count: number): Promise<void> {
  while ((carriers.get(round)?.size ?? 0) < count) await delay(5);
}

process.stderr.write(`${CLUSTERS} hosted clusters\n`);
await plane.client.request('POST', '/api/v1/namespaces', { metadata: { name: 'clusters' } });
await plane.apply(mirrorSet('start'));
await parallel(async (name) => {
  await plane.client.request('POST', '/api/v1/namespaces', { metadata: { name: `clusters-${name}` } });
  for (const target of TARGETS) await plane.apply(deployment(`clusters-${name}`, target), 'somebody');
  await plane.apply(hostedCluster(name));
});

await watchDeployments();
const metrics = createMetrics();
let requests = 0;
const io = {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: {},
  cwd: process.cwd(),
  signal: new AbortController().signal,
};
const counting = {
  ...metrics,
  request: (seen: Parameters<typeof metrics.request>[0]): void => {
    requests += 1;
    metrics.request(seen);
  },
};
const opener = { io, metrics: counting, instance: 'bench', mayWrite: () => true };
const main = await openKubeconfig(plane.kubeconfig, opener);
const manager = new Manager({
  reconcilers: reconcilers({ catalogs: false }),
  facts: new FactCache(noLookUp),
  log: createLogger({ write: () => undefined, format: 'json', level: () => 'error' }),
  metrics,
  clock: systemQueueClock,
});
const heapBefore = heapUsed();
const started = performance.now();
for (const name of names)
  manager.add(
    {
      name: `clusters/${name}`,
      controlPlaneNamespace: `clusters-${name}`,
      hostedCluster: { namespace: 'clusters', name },
    },
    { hosted: main, management: main },
  );
manager.work();
const all = CLUSTERS * TARGETS.length;
await until('start', all);
const first = performance.now() - started;
await delay(3000);
const perCluster = (heapUsed() - heapBefore) / CLUSTERS;
requests = 0;
await delay(10_000);
const atRest = requests;

/** Bytes in use; garbage is collected first where the process may ask for it. */
function heapUsed(): number {
  (globalThis as { gc?: () => void }).gc?.();
  return process.memoryUsage().heapUsed;
}

const ours: number[] = [];
const bare: number[] = [];
for (let round = 0; round < ROUNDS; round += 1) {
  const from = performance.now();
  await plane.apply(mirrorSet(`r${round}`));
  await until(`r${round}`, all);
  ours.push(performance.now() - from);
  await delay(3000);
  bare.push(await parallel((name) => bareWrites(name, round)));
}

/** Minimal writes of one change per hosted cluster: two Deployments, the document, the status. */
async function bareWrites(name: string, round: number): Promise<void> {
  const namespace = `clusters-${name}`;
  for (const target of TARGETS) {
    const containers = [{ name: target, env: [{ name: 'BARE', value: `${round}-${'x'.repeat(800)}` }] }];
    await plane.apply(
      { ...deployment(namespace, target), spec: { template: { spec: { containers } } } },
      'bare',
    );
  }
  await plane.apply(
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'bare', namespace },
      data: { text: `${round}-${'x'.repeat(1500)}` },
    },
    'bare',
  );
  await plane.apply(
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'bare-status', namespace },
      data: { text: `${round}` },
    },
    'bare',
  );
}

printTable(`One change of a mirror set to ${CLUSTERS} hosted clusters (${all} Deployments)`, [
  { what: 'first start', 'median ms': ms(first), ratio: '' },
  { what: 'bare client, 16 at once', 'median ms': ms(spread(bare).median), ratio: '1.00x' },
  {
    what: 'pullwright',
    'median ms': ms(spread(ours).median),
    ratio: ratio(spread(ours).median, spread(bare).median),
  },
]);
printTable(`The reconciler of ${CLUSTERS} hosted clusters`, [
  {
    'KB of heap per hosted cluster': (perCluster / 1024).toFixed(0),
    'requests in 10 s at rest': atRest,
  },
]);
main.close();
await plane.stop();
process.exit(0);
