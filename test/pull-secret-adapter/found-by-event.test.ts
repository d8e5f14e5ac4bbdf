/** Sentinel with rule `dependencies` and the adapter, five clusters at once: who finds them. */
import assert from 'node:assert/strict';
import { createLogger } from '../../runtime/core/logger.ts';
import { createMetrics } from '../../runtime/engine/metrics.ts';
import { openHttpClient } from '../../runtime/http/open.ts';
import { HyperfleetApi } from '../../runtime/pull-secret-adapter/hyperfleet-api.ts';
import { DEFAULT_SENTINEL } from '../../runtime/pull-secret-adapter/sentinel/options.ts';
import { runSentinel } from '../../runtime/pull-secret-adapter/sentinel/process.ts';
import { Sentinel } from '../../runtime/pull-secret-adapter/sentinel/sentinel.ts';
import { eventually } from '../control-plane/eventually.ts';
import { suite } from '../support/suite.ts';
import { HyperfleetDouble } from './doubles/hyperfleet-api.ts';
import { available, ids, NEVER, startAdapter, within } from './running-adapter.ts';
import { goodSpec } from './scene.ts';

const test = suite('found by event');
const SETTINGS = { ...DEFAULT_SENTINEL, rule: 'dependencies', debounceSeconds: 1800 } as const;

function clientOf(api: HyperfleetDouble): HyperfleetApi {
  return new HyperfleetApi({
    baseUrl: api.url,
    http: openHttpClient({}, [api.url]),
    userAgent: 'sentinel',
    pause: () => Promise.resolve(),
  });
}

test('five clusters whose dependencies become ready at once: each is found by its event, not by going over them', async () => {
  const { api, cluster, handle, log, stop } = await startAdapter({ sweepSeconds: 600 });
  const [sentinelLog, over] = [[] as string[], new AbortController()];
  const publish = async ({ body }: { readonly body: string }): Promise<void> => {
    assert.equal((await handle({ body: Buffer.from(body), attributes: {} })).outcome, 'done');
  };
  for (const id of ids(5)) api.add(id, goodSpec(id), false);
  const sentinel = runSentinel({
    sentinel: new Sentinel(clientOf(api), { publish }, SETTINGS),
    connected: () => true,
    logger: createLogger({ write: (line) => sentinelLog.push(line), level: () => 'debug' }),
    metrics: createMetrics(),
    signal: over.signal,
    // Whoever waits for it would be found by nothing but the short pause.
    pauseMs: NEVER,
    once: false,
    ports: { health: undefined, metrics: undefined },
  });
  await eventually(
    () => assert.ok(sentinelLog.filter((line) => line.includes('"polled"')).length > 2),
    within,
  );
  assert.deepEqual(cluster.started, []);
  const ready = performance.now();
  for (const id of ids(5)) api.dependenciesReady(id);
  await eventually(() => assert.equal(cluster.started.length, 5), { ...within, everyMs: 1 });
  process.stdout.write(`  five Jobs ${Math.round(performance.now() - ready)} ms after the dependencies\n`);
  await eventually(() => {
    for (const id of ids(5)) assert.equal(available(api, id), 'True SecretAvailable');
  }, within);
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
  const sentinel = new Sentinel(clientOf(api), { publish: () => Promise.resolve() }, SETTINGS);
  const began = Date.now();
  const waiting = async (seconds: number): Promise<unknown> =>
    (await sentinel.poll(new Date(began + seconds * 1000))).waiting;
  assert.equal(await waiting(1), 2);
  api.dependenciesReady('cls-0');
  assert.equal(await waiting(2), 1);
  assert.equal(await waiting(600), 1);
  assert.equal(await waiting(602), undefined, 'nobody expects it at any moment');
  api.patch('cls-1', goodSpec('changed'));
  api.clusters.get('cls-1')?.reports.clear();
  assert.equal(await waiting(603), 1, 'another state is another wait');
  await api.close();
});

test.run();
