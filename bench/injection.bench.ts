/**
 * Distribution against a bare parallel client with the reconciler's account, on one API server, in one run: the first distribution, a rotation, a restart,
 * a new namespace, and memory beside unrelated Secrets. Beside it the server's limit: an administrator's client that keeps it busy with as plain
 * requests as there are. `NAMESPACES` (5000) and `UNRELATED` (20000) scale it, `EXECUTABLE=dist/bin/pullwright` measures what ships instead of Node
 * with the sources.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { HttpKubeClient } from '../runtime/kube/http-client.ts';
import { loadConnection } from '../runtime/kube/kubeconfig.ts';
import { type ControlPlane, startControlPlane } from '../test/control-plane/control-plane.ts';
import type { TestObject } from '../test/control-plane/resource-path.ts';
import {
  grantObject,
  namespaceObject,
  profileObject,
  reconcilerUser,
  sourceObject,
  startPlane,
  startReconciler,
} from '../test/pull-secret-injection/live.ts';
import { parallel as inParallel, memoryOf, processorMs, quiet, Witness } from './injection-measures.ts';
import { ms, percentile, printTable, ratio } from './measure.ts';

const NAMESPACES = Number(process.env['NAMESPACES'] ?? 5000);
const UNRELATED = Number(process.env['UNRELATED'] ?? 20_000);
const LATENCIES = 200;
/** The long rounds are run so often, ours and the bare client's in turn. */
const ROUNDS = Number(process.env['ROUNDS'] ?? 3);
/** Requests that the bare client has under way at once. */
const PARALLEL = 16;
/** More than these make the server no faster. */
const LIMIT_PARALLEL = 32;

const names = Array.from({ length: NAMESPACES }, (_, at) => `ns-${at}`);
const plane = await startPlane({}, startControlPlane);
// Its controllers would compete for the two cores with what is measured.
await plane.controllerManager?.terminate();
const connection = await loadConnection(plane.kubeconfig, {});
const client = new HttpKubeClient({
  connection,
  userAgent: 'bench',
});
const user = await reconcilerUser(plane);

/** Same as {@link inParallel}, with as many requests in flight as the bare client has. */
const parallel = (
  items: readonly string[],
  work: (name: string) => Promise<unknown>,
  workers: number = PARALLEL,
): Promise<number> => inParallel(items, work, workers);

async function post(object: TestObject, by: typeof plane.client = plane.client): Promise<void> {
  const path = `/api/v1/namespaces/${object.metadata.namespace}/secrets`;
  const { status } = await by.request('POST', path, object);
  if (status !== 201) throw new Error(`POST ${path}: ${status}`);
}

/** Request of the bare client for a new or changed copy, with the rights of the reconciler and under its guard policy. */
const postBare = (object: TestObject): Promise<void> => post(object, user.client);
async function patchBare(object: TestObject): Promise<void> {
  const { namespace, name } = object.metadata;
  const path = `/api/v1/namespaces/${namespace}/secrets/${name}`;
  const { status } = await user.client.request('PATCH', path, object, 'application/merge-patch+json');
  if (status !== 200) throw new Error(`PATCH ${path}: ${status}`);
}

/** Upper bound of the server: an administrator's creates and updates, without a guard policy and without a read first. */
async function putBare(object: TestObject): Promise<void> {
  const { namespace, name } = object.metadata;
  const path = `/api/v1/namespaces/${namespace}/secrets/${name}`;
  const { status } = await plane.client.request('PUT', path, object);
  if (status !== 200) throw new Error(`PUT ${path}: ${status}`);
}

process.stderr.write(`${NAMESPACES} namespaces\n`);
await parallel(names, (name) =>
  plane.client.request('POST', '/api/v1/namespaces', namespaceObject(name, { team: 'a' })),
);
await plane.apply(namespaceObject('platform'));
await plane.apply(sourceObject('platform', 'quay', ['quay.io']));
await plane.apply(grantObject('platform', ['quay']));

const hosts = (round: number): string[] => ['quay.io', `round-${round}.example`];
/** The same Secret as a copy: as many labels and annotations of the same length. */
const bareCopy = (name: string, round: number, called = 'bare'): TestObject => {
  const { metadata, ...rest } = sourceObject(name, called, hosts(round));
  return {
    ...rest,
    metadata: {
      name: metadata.name,
      namespace: name,
      labels: {
        'app.kubernetes.io/managed-by': 'bare-bench',
        'pullwright.dev/owner': 'bare-secret-injection',
      },
      annotations: {
        'argocd.argoproj.io/compare-options': 'IgnoreExtraneous',
        'argocd.argoproj.io/sync-options': 'Prune=false',
        'kustomize.toolkit.fluxcd.io/prune': 'disabled',
        'bare-bench.dev/profile': 'team',
        'bare-bench.dev/sources': 'platform/quay',
        'bare-bench.dev/key': `local|${name}|namespace`,
      },
    },
  };
};
const rows: Record<string, string | number>[] = [];
const row = (what: string, [bare, ours]: readonly [bare: number, ours: number], rest: object): void => {
  rows.push({
    what,
    'bare client': `${ms(bare)} ms`,
    pullwright: `${ms(ours)} ms`,
    ratio: ratio(ours, bare),
    ...rest,
  });
};

const witness = new Witness(client);
await witness.start('reg');
const executable = process.env['EXECUTABLE'];
const start = (): ReturnType<typeof startReconciler> =>
  startReconciler(plane, user, { audit: false }, executable === undefined ? undefined : [executable]);
let reconciler = start();
await delay(3000);

const bareWitness = new Witness(client);
await bareWitness.start('bare');
/** Until a watch has told of every one, as with ours. */
const bare = async (work: (name: string) => Promise<unknown>): Promise<number> => {
  const started = performance.now();
  const before = bareWitness.writes;
  await parallel(names, work);
  await bareWitness.until(before + NAMESPACES);
  return performance.now() - started;
};

const total = { bare: 0, limit: 0, ours: 0, processor: 0, writes: 0 };
const addRow = (what: string): void => {
  row(what, [total.bare / ROUNDS, total.ours / ROUNDS], {
    [`limit, ${LIMIT_PARALLEL} workers`]: `${ms(total.limit / ROUNDS)} ms`,
    'ratio to the limit': ratio(total.ours, total.limit),
    'processor time per copy': `${(total.processor / ROUNDS / NAMESPACES).toFixed(2)} ms`,
    writes: `${total.writes / ROUNDS}`,
  });
  Object.assign(total, { bare: 0, limit: 0, ours: 0, processor: 0, writes: 0 });
};
/** One round of ours, from the change that asks for it to the last copy, and the writes until all was quiet. */
const ours = async (change: TestObject): Promise<void> => {
  const started = performance.now();
  const at = witness.writes;
  const processor = processorMs(reconciler);
  await plane.apply(change);
  await witness.until(at + NAMESPACES);
  total.ours += performance.now() - started;
  await quiet(witness);
  total.processor += processorMs(reconciler) - processor;
  total.writes += witness.writes - at;
};
const teamProfile = profileObject('team', {
  namespaceSelector: { matchLabels: { team: 'a' } },
  selector: {},
  mode: 'Distribute',
  secrets: [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }],
});

// In turns, so that a busy moment of the machine hits both.
for (let round = 0; round < ROUNDS; round += 1) {
  total.bare += await bare((name) => postBare(bareCopy(name, 0)));
  total.limit += await parallel(names, (name) => post(bareCopy(name, 0, 'limit')), LIMIT_PARALLEL);
  await ours(teamProfile);
  if (round === ROUNDS - 1) break;
  await plane.remove(teamProfile);
  for (const left of ['bare', 'limit'])
    await parallel(names, (name) =>
      plane.client.request('DELETE', `/api/v1/namespaces/${name}/secrets/${left}`),
    );
  await quiet(witness);
}
addRow('first distribution');
const memoryAlone = memoryOf(reconciler);

for (let round = 1; round <= ROUNDS; round += 1) {
  total.bare += await bare((name) => patchBare(bareCopy(name, round)));
  total.limit += await parallel(names, (name) => putBare(bareCopy(name, round, 'limit')), LIMIT_PARALLEL);
  await ours(sourceObject('platform', 'quay', hosts(round)));
}
addRow('rotation');

let before = witness.writes;
await plane.apply(sourceObject('platform', 'quay', hosts(ROUNDS + 1)));
await witness.until(before + Math.floor(NAMESPACES / 4));
const overtaking = performance.now();
await plane.apply(sourceObject('platform', 'quay', hosts(ROUNDS + 2)));
await witness.until(before + NAMESPACES);
await quiet(witness);
rows.push({
  what: 'a change during a distribution',
  writes: `${witness.writes - before} for ${NAMESPACES} copies, the last at ${ms(Math.max(...witness.seenAt.values()) - overtaking)} ms`,
});

before = witness.writes;
await reconciler.stop();
reconciler = start();
await delay(10_000);
rows.push({ what: 'restart', writes: `${witness.writes - before}` });

// A bare client that writes the moment it sees the namespace, and the reconciler, each with the other one idle.
async function latencies(label: string, seen: Witness, prefix: string): Promise<number[]> {
  const found: number[] = [];
  for (let at = 0; at < LATENCIES; at++) {
    const namespace = `${prefix}-${at}`;
    const started = performance.now();
    await plane.client.request('POST', '/api/v1/namespaces', namespaceObject(namespace, { [label]: 'a' }));
    found.push((await seen.of(namespace)) - started);
  }
  return found.sort((a, b) => a - b);
}

const oursLatency = await latencies('team', witness, 'new');
const stopBare = new AbortController();
const listed = await client.list({ apiVersion: 'v1', kind: 'Namespace' }, { limit: 1 });
const created = await client.watch(
  { apiVersion: 'v1', kind: 'Namespace' },
  { resourceVersion: listed.resourceVersion, seconds: 3000, signal: stopBare.signal },
);
void (async () => {
  try {
    for await (const event of created)
      if (event.type === 'ADDED' && event.object.metadata.labels?.['bare'] !== undefined)
        await postBare(bareCopy(event.object.metadata.name, 0));
  } catch {
    // Ended below.
  }
})();
const bareLatency = await latencies('bare', bareWitness, 'bare');
stopBare.abort();
for (const [what, p] of [
  ['new namespace to Secret, median', 0.5],
  ['new namespace to Secret, p99', 0.99],
] as const)
  row(what, [percentile(bareLatency, p), percentile(oursLatency, p)], { writes: '1 each' });
bareWitness.stop();

process.stderr.write(`${UNRELATED} unrelated Secrets\n`);
const unrelated = Array.from({ length: UNRELATED }, (_, at) => `unrelated-${at}`);
await parallel(unrelated, (name) =>
  post({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'platform' },
    type: 'Opaque',
    stringData: { a: 'x'.repeat(500) },
  }),
);
await reconciler.stop();
reconciler = start();
await delay(15_000);
rows.push({
  what: 'resident memory',
  'bare client': '',
  pullwright: `${memoryAlone.toFixed(0)} MiB, with ${UNRELATED} unrelated Secrets ${memoryOf(reconciler).toFixed(0)} MiB`,
});

printTable(
  `Distribution to ${NAMESPACES} namespaces, against a bare client with ${PARALLEL} requests under way${executable === undefined ? '' : ', the executable'}`,
  rows,
);
witness.stop();
await reconciler.stop();
client.close();
await (plane satisfies ControlPlane).stop();
