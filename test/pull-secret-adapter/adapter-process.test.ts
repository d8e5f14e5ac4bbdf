/**
 * The adapter as `runAdapter` runs it, without a broker: the double of the API and a cluster whose Jobs end by themselves. What the leader sees
 * by itself, what it repeats and what it does not, and what an event of Sentinel brings it.
 */
import assert from 'node:assert/strict';
import { createLogger } from '../../runtime/core/logger.ts';
import { createMetrics, type Metrics } from '../../runtime/engine/metrics.ts';
import type { HttpKubeClient } from '../../runtime/kube/http-client.ts';
import { reconcileCluster } from '../../runtime/pull-secret-adapter/adapter/reconcile-cluster.ts';
import type { Handler } from '../../runtime/pull-secret-adapter/broker/broker.ts';
import { type AdapterSettings, DEFAULT_SETTINGS } from '../../runtime/pull-secret-adapter/options.ts';
import { DEFAULT_SENTINEL } from '../../runtime/pull-secret-adapter/sentinel/options.ts';
import { runSentinel, Sentinel } from '../../runtime/pull-secret-adapter/sentinel/sentinel.ts';
import { eventually } from '../control-plane/eventually.ts';
import { findPlanted } from '../support/canary.ts';
import { test } from '../support/suite.ts';
import { HyperfleetDouble } from './doubles/hyperfleet-api.ts';
import { JobCluster } from './doubles/job-cluster.ts';
import { clientOf, eventFor, goodSpec, kubeOf, runHere } from './scene.ts';

const NEVER = 1_000_000;

interface Running {
  readonly api: HyperfleetDouble;
  readonly cluster: JobCluster;
  readonly handle: Handler;
  readonly log: readonly string[];
  readonly metrics: Metrics;
  /** Gives the exit code. */
  readonly stop: () => Promise<number>;
}

/** Starts it; its first go over the clusters is over. */
async function startAdapter(
  settings: Partial<AdapterSettings> = {},
  prepare: (api: HyperfleetDouble, cluster: JobCluster) => void = () => undefined,
): Promise<Running> {
  const [api, cluster] = [await HyperfleetDouble.start(), await JobCluster.start()];
  prepare(api, cluster);
  const kube = await kubeOf(cluster.kubeconfig);
  const log: string[] = [];
  const run = runHere(api, kube, { repeatSeconds: NEVER, sweepSeconds: NEVER, ...settings }, log);
  const handle = await run.handle;
  // The leader has gone over the clusters once: from here on it knows only what it is told.
  await eventually(() => assert.ok(api.requests.some((one) => one.endsWith('/clusters'))));
  const end = async (): Promise<number> => {
    const code = await run.stop();
    kube.close();
    await api.close();
    await cluster.close();
    assert.deepEqual([api.violations, api.refused], [[], []]);
    assert.equal(findPlanted(log.join('') + JSON.stringify(api.reported)), undefined);
    return code;
  };
  return { api, cluster, handle, log, metrics: run.metrics, stop: end };
}

/** Status and reason of the last report. */
function available(api: HyperfleetDouble, id: string): string {
  const found = api.last(id)?.conditions.find((one) => one.type === 'Available');
  return `${found?.status} ${found?.reason}`;
}

function ids(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `cls-${index}`);
}

test('a Job that ends is reported without any event or sweep, within a second', async () => {
  const { api, cluster, handle, stop } = await startAdapter();
  cluster.jobMs = 1500;
  for (const id of ids(10)) api.add(id, goodSpec(id));
  await Promise.all(ids(10).map((id) => handle(eventFor(id, id))));
  await eventually(() => {
    for (const id of ids(10)) assert.equal(available(api, id), 'True SecretAvailable');
  });
  const delays = ids(10).map((id) => {
    const told = api.reported.find((one) => one.cluster === id && one.conditions[0]?.status === 'True');
    return (told?.at ?? Number.NaN) - (cluster.ended.get(`pullsecret-${id}-gen1`) ?? Number.NaN);
  });
  // The fastest of ten: a busy machine may hold up some, but not all of them.
  assert.ok(Math.min(...delays) < 1000, `the fastest took ${Math.min(...delays)} ms`);
  assert.deepEqual(cluster.all('secrets'), [], 'the temporary Secrets have gone');
  assert.equal(await stop(), 0);
});

test('1,000 redeliveries, out of order: one Job, and two reports for each cluster', async () => {
  const { api, cluster, handle, metrics, stop } = await startAdapter();
  cluster.jobMs = 200;
  for (const id of ids(20)) api.add(id, goodSpec(id));
  const deliveries = Array.from({ length: 1000 }, (_, index) => {
    const id = `cls-${(index * 7) % 20}`;
    // Every third is the same event again, the others are events of their own.
    return eventFor(id, index % 3 === 0 ? id : `${id}-${index}`);
  });
  const outcomes = await Promise.all(deliveries.map((message) => handle(message)));
  assert.ok(outcomes.every((one) => one.outcome === 'done'));
  await eventually(() => {
    for (const id of ids(20)) assert.equal(available(api, id), 'True SecretAvailable');
  });
  for (let again = 0; again < 5; again += 1) await handle(eventFor('cls-1', `late-${again}`));
  assert.equal(cluster.started.length, 20);
  for (const id of ids(20))
    assert.deepEqual(
      api.reported.filter((one) => one.cluster === id).map((one) => one.conditions[0]?.reason),
      ['JobInProgress', 'SecretAvailable'],
    );
  assert.match((await metrics.render()).text, /pullwright_adapter_events_total\{outcome="done"\} \d+/);
  await stop();
});

test('the trace of an event goes on into Job and log', async () => {
  const { api, cluster, handle, log, stop } = await startAdapter();
  api.add('cls-1', goodSpec('trace'));
  const event = JSON.parse(Buffer.from(eventFor('cls-1', '1').body).toString()) as object;
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  await handle({ body: Buffer.from(JSON.stringify({ ...event, traceparent })), attributes: {} });
  assert.match(JSON.stringify(cluster.all('jobs')), new RegExp(`"TRACEPARENT","value":"${traceparent}"`));
  assert.ok(log.some((line) => line.includes('"reconciled"') && line.includes(traceparent)));
  await stop();
});

test('an event of an older generation after the newer one changes nothing', async () => {
  const { api, cluster, handle, stop } = await startAdapter();
  api.add('cls-1', goodSpec('old'));
  api.patch('cls-1', goodSpec('new'));
  await handle(eventFor('cls-1', 'second', 2));
  await eventually(() => assert.equal(available(api, 'cls-1'), 'True SecretAvailable'));
  await handle(eventFor('cls-1', 'first', 1));
  assert.deepEqual(cluster.started, ['pullsecret-cls-1-gen2']);
  assert.equal(api.last('cls-1')?.observed_generation, 2);
  await stop();
});

test('a replica that read an older generation cannot put the older secret under the newer Job', async () => {
  // The slow one has read the cluster, and is held up at its first write until the fast one has done everything.
  const { api, cluster, handle, stop } = await startAdapter();
  cluster.jobMs = 60_000;
  api.add('cls-1', goodSpec('old'));
  const kube = await kubeOf(cluster.kubeconfig);
  const client = clientOf(api.url);
  let held = 0;
  const overtaken = async (): Promise<void> => {
    held += 1;
    if (held > 1) return;
    api.patch('cls-1', goodSpec('new'));
    await handle(eventFor('cls-1', 'fast', 2));
  };
  const slow: Pick<HttpKubeClient, 'get' | 'list' | 'apply' | 'create' | 'mergePatch' | 'remove'> = {
    get: (ref) => kube.get(ref),
    list: (collection, options) => kube.list(collection, options),
    remove: (ref, options) => kube.remove(ref, options),
    create: async (object, manager) => {
      await overtaken();
      return kube.create(object, manager);
    },
    mergePatch: (ref, patch, manager) => kube.mergePatch(ref, patch, manager),
    apply: async (object, options) => {
      await overtaken();
      return kube.apply(object, options);
    },
  };
  const settings = { ...DEFAULT_SETTINGS, repeatSeconds: NEVER };
  await reconcileCluster('cls-1', { api: client, kube: slow, settings, now: () => new Date() }, true);
  assert.ok(held > 0);
  assert.deepEqual(cluster.started, ['pullsecret-cls-1-gen2']);
  const secret = cluster.all('secrets')[0];
  assert.equal(secret?.metadata.annotations?.['hyperfleet.io/generation'], '2');
  const { data } = secret as unknown as { readonly data: Record<string, string> };
  const stored = Buffer.from(Object.values(data)[0] ?? '', 'base64').toString();
  assert.equal(stored, (goodSpec('new')['pullSecret'] as { data: string }).data);
  kube.close();
  await stop();
});

test('an unchanged report is repeated for an event once it has the age of Sentinel’s debounce', async () => {
  const { api, handle, stop } = await startAdapter({ repeatSeconds: 1 });
  api.add('cls-1', goodSpec('one'));
  await handle(eventFor('cls-1', 'first'));
  await eventually(() => assert.equal(available(api, 'cls-1'), 'True SecretAvailable'));
  const before = api.reported.length;
  await eventually(async () => {
    await handle(eventFor('cls-1', `more-${performance.now()}`));
    assert.equal(api.reported.length, before + 1);
  });
  const gap =
    Date.parse(api.last('cls-1')?.observed_time ?? '') -
    Date.parse(api.reported[before - 1]?.observed_time ?? '');
  assert.ok(gap >= 1000, `repeated after ${gap} ms`);
  await stop();
});

test('the API is down when the Job ends: the end is reported when it is back', async () => {
  const { api, cluster, handle, log, stop } = await startAdapter();
  cluster.jobMs = 300;
  api.add('cls-1', goodSpec('one'));
  await handle(eventFor('cls-1', 'only'));
  api.faults = [{ status: 503, times: NEVER }];
  await eventually(() => assert.ok(log.some((line) => line.includes('could not be reconciled'))));
  api.faults = [];
  await eventually(() => assert.equal(available(api, 'cls-1'), 'True SecretAvailable'));
  await stop();
});

test('what no event has brought is found by going over the clusters, and said once', async () => {
  const { api, cluster, stop } = await startAdapter({ sweepSeconds: 1 }, (double) => {
    for (const id of ids(3)) double.add(id, goodSpec(id));
    double.add('cls-bad', { provider: 'gcp', gcp: { projectId: 'cust' } });
  });
  await eventually(() => {
    for (const id of ids(3)) assert.equal(available(api, id), 'True SecretAvailable');
    assert.equal(available(api, 'cls-bad'), 'False PreconditionNotMet');
  });
  const goes = (): number => api.requests.filter((one) => one.endsWith('/clusters')).length;
  const visits = (): number => api.requests.filter((one) => /clusters\/cls-[0-9]/.test(one)).length;
  const pass = async (times: number, from = goes()): Promise<void> =>
    eventually(() => assert.ok(goes() >= from + times));
  // A pass that began before the last report may visit once more.
  await pass(2);
  const [visited, count] = [visits(), api.reported.length];
  await pass(3);
  assert.equal(api.reported.length, count, 'nothing is reported on a timer');
  assert.equal(cluster.started.length, 3);
  assert.equal(visits(), visited, 'a cluster in order is not visited again');
  api.patch(ids(3)[0] ?? '', goodSpec('changed'));
  await eventually(() => assert.equal(cluster.started.length, 4));
  await stop();
});

test('what failed for good is not tried again until the secret changes', async () => {
  const { api, cluster, handle, stop } = await startAdapter({}, (_, jobs) => {
    jobs.end = () => ({ status: 'failure', reason: 'SecretNotOwned', message: 'Not ours', details: {} });
  });
  api.add('cls-1', goodSpec('one'));
  await handle(eventFor('cls-1', 'first'));
  await eventually(() => assert.equal(available(api, 'cls-1'), 'False SecretNotOwned'));
  for (let again = 0; again < 20; again += 1) await handle(eventFor('cls-1', `more-${again}`));
  assert.equal(cluster.started.length, 1);
  cluster.end = () => ({ status: 'success', reason: 'SecretStored', message: 'Stored', details: {} });
  api.patch('cls-1', goodSpec('changed'));
  await handle(eventFor('cls-1', 'changed', 2));
  await eventually(() => assert.equal(available(api, 'cls-1'), 'True SecretAvailable'));
  assert.deepEqual(cluster.started, ['pullsecret-cls-1-gen1', 'pullsecret-cls-1-gen2']);
  await stop();
});

test('deletion passes although the others have torn down, and is said to be final', async () => {
  const { api, cluster, handle, stop } = await startAdapter();
  api.add('cls-1', goodSpec('one'));
  await handle(eventFor('cls-1', 'first'));
  await eventually(() => assert.equal(available(api, 'cls-1'), 'True SecretAvailable'));
  api.delete('cls-1');
  await handle(eventFor('cls-1', 'deleted', 2));
  await eventually(() => assert.ok(!api.clusters.has('cls-1')));
  await eventually(() =>
    assert.deepEqual(
      [...cluster.objects.keys()].filter((path) => !path.includes('/leases/')),
      [],
    ),
  );
  await stop();
});

// Sentinel with rule `dependencies` and the adapter, five clusters at once: who finds them.

const BY_DEPENDENCIES = { ...DEFAULT_SENTINEL, rule: 'dependencies', debounceSeconds: 1800 } as const;

test('five clusters whose dependencies become ready at once: each is found by its event, not by going over them', async () => {
  const { api, cluster, handle, log, stop } = await startAdapter({ sweepSeconds: 600 });
  const [sentinelLog, over] = [[] as string[], new AbortController()];
  const publish = async ({ body }: { readonly body: string }): Promise<void> => {
    assert.equal((await handle({ body: Buffer.from(body), attributes: {} })).outcome, 'done');
  };
  for (const id of ids(5)) api.add(id, goodSpec(id), false);
  const sentinel = runSentinel({
    sentinel: new Sentinel(clientOf(api.url), { publish }, BY_DEPENDENCIES),
    connected: () => true,
    logger: createLogger({ write: (line) => sentinelLog.push(line), level: () => 'debug' }),
    metrics: createMetrics(),
    signal: over.signal,
    // With a long pause, only the event can trigger the reconcile.
    pauseMs: NEVER,
    once: false,
    ports: { health: undefined, metrics: undefined },
  });
  await eventually(() => assert.ok(sentinelLog.filter((line) => line.includes('"polled"')).length > 2));
  assert.deepEqual(cluster.started, []);
  const ready = performance.now();
  for (const id of ids(5)) api.dependenciesReady(id);
  await eventually(() => assert.equal(cluster.started.length, 5), { everyMs: 1 });
  process.stdout.write(`  five Jobs ${Math.round(performance.now() - ready)} ms after the dependencies\n`);
  await eventually(() => {
    for (const id of ids(5)) assert.equal(available(api, id), 'True SecretAvailable');
  });
  const passes = log
    .map((line) => JSON.parse(line) as Readonly<Record<string, string>>)
    .filter(({ msg }) => msg === 'reconciled');
  for (const id of ids(5)) assert.equal(passes.find((one) => one['cluster'] === id)?.['by'], 'event', id);
  over.abort();
  await sentinel;
  await stop();
});

test('who waits for its dependencies is counted for ten minutes, so that the next go comes soon', async () => {
  const api = await HyperfleetDouble.start();
  for (const id of ids(2)) api.add(id, goodSpec(id), false);
  const sentinel = new Sentinel(clientOf(api.url), { publish: () => Promise.resolve() }, BY_DEPENDENCIES);
  const began = Date.now();
  const waiting = async (seconds: number): Promise<unknown> =>
    (await sentinel.poll(new Date(began + seconds * 1000))).waiting;
  assert.equal(await waiting(1), 2);
  api.dependenciesReady('cls-0');
  assert.equal(await waiting(2), 1);
  assert.equal(await waiting(600), 1);
  assert.equal(await waiting(602), 0, 'nobody expects it at any moment');
  api.patch('cls-1', goodSpec('changed'));
  api.clusters.get('cls-1')?.reports.clear();
  assert.equal(await waiting(603), 1, 'another state is another wait');
  await api.close();
});
