/** Sentinel against the double of the API: which events it sends, and that nothing makes it send too many or too few. */
import assert from 'node:assert/strict';
import { createLogger } from '../../runtime/core/logger.ts';
import { createMetrics } from '../../runtime/engine/metrics.ts';
import { codeOf } from '../../runtime/pull-secret-adapter/broker/broker.ts';
import { parseCloudEvent } from '../../runtime/pull-secret-adapter/cloud-event.ts';
import { clusterDocument } from '../../runtime/pull-secret-adapter/cluster.ts';
import {
  DEFAULT_SENTINEL,
  type SentinelSettings,
  sentinelSettings,
} from '../../runtime/pull-secret-adapter/sentinel/options.ts';
import {
  runSentinel,
  Sentinel,
  type SentinelCount,
} from '../../runtime/pull-secret-adapter/sentinel/sentinel.ts';
import { test } from '../support/suite.ts';
import { HyperfleetDouble } from './doubles/hyperfleet-api.ts';
import { clientOf, goodSpec } from './scene.ts';

class Stage {
  readonly api: HyperfleetDouble;
  readonly sentinel: Sentinel;
  /** Type and cluster of every event. */
  sent: string[] = [];
  brokerDown = false;
  /** Seconds after the start. */
  time = 0;
  readonly #began = Date.now();

  constructor(api: HyperfleetDouble, settings: Partial<SentinelSettings>) {
    this.api = api;
    const client = clientOf(api.url, { tries: 1 });
    const publish = async ({ body }: { readonly body: string }): Promise<void> => {
      if (this.brokerDown) throw Object.assign(new Error('no connection'), { code: 'amqp://user:word@host' });
      const read = parseCloudEvent({ body: new TextEncoder().encode(body), attributes: {} });
      assert.ok(read.ok);
      this.sent.push(`${read.event.type} ${(read.event.data as { id: string }).id}`);
    };
    this.sentinel = new Sentinel(client, { publish }, { ...DEFAULT_SENTINEL, ...settings });
  }

  static async start(settings: Partial<SentinelSettings> = {}, clusters = 0, ready = true): Promise<Stage> {
    const api = await HyperfleetDouble.start();
    for (let index = 0; index < clusters; index += 1) api.add(`cls-${index}`, goodSpec('sentinel'), ready);
    return new Stage(api, settings);
  }

  /** One go, so many seconds after the start. */
  poll(time = this.time): Promise<SentinelCount> {
    this.time = time;
    return this.sentinel.poll(new Date(this.#began + time * 1000));
  }

  /** Clusters that were sent events since the last call, sorted. */
  taken(): readonly string[] {
    const ids = this.sent.map((one) => one.split(' ')[1] ?? '').sort();
    this.sent = [];
    return ids;
  }

  async end(): Promise<void> {
    assert.deepEqual(this.api.violations, []);
    await this.api.close();
  }
}

function ids(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `cls-${index}`).sort();
}

test('by expressions: who they choose is spoken of, in their words; who they have no value for is counted, with the reason', async () => {
  const { messages } = sentinelSettings(
    {},
    {
      message_decision: { result: 'resource.labels.tier == "gold"' },
      message_data: { id: 'resource.id', why: 'reason' },
    },
  );
  const stage = await Stage.start({ messages }, 3);
  const clusters = ['cls-0', 'cls-1'].map((id) => stage.api.clusters.get(id));
  for (const [index, cluster] of clusters.entries()) {
    assert.ok(cluster !== undefined);
    cluster.labels = { tier: index === 0 ? 'gold' : 'none' };
  }
  const { undecidedCause, ...count } = await stage.poll(11);
  assert.deepEqual(count, { clusters: 3, published: 1, held: 0, failed: 0, undecided: 1, waiting: 0 });
  assert.match(
    undecidedCause ?? '',
    /^cluster "cls-2": result evaluation failed: No such key: (labels|tier)$/,
  );
  assert.deepEqual(stage.taken(), ['cls-0']);
  await stage.end();
});

test('all pages, each cluster once', async () => {
  const stage = await Stage.start({}, 250);
  assert.deepEqual(await stage.poll(11), {
    clusters: 250,
    published: 250,
    held: 0,
    failed: 0,
    undecided: 0,
    waiting: 0,
  });
  assert.deepEqual(stage.taken(), ids(250));
  await stage.end();
});

test('clusters that go while the pages are read hide none of the others', async () => {
  const stage = await Stage.start({}, 250);
  const gone = ['cls-249', 'cls-248', 'cls-200'];
  let done = false;
  stage.api.beforePage = (page) => {
    if (page !== 2 || done) return;
    done = true;
    for (const id of gone) stage.api.clusters.delete(id);
  };
  await stage.poll(11);
  const sent = stage.taken();
  assert.equal(new Set(sent).size, sent.length, 'each once');
  assert.deepEqual(
    ids(250).filter((id) => !gone.includes(id) && !sent.includes(id)),
    [],
  );
  await stage.end();
});

test('clusters that come while the pages are read repeat none of the others', async () => {
  const stage = await Stage.start({}, 250);
  let added = 0;
  stage.api.beforePage = () => {
    added += 1;
    if (added <= 3) stage.api.add(`new-${added}`, goodSpec('new'));
  };
  await stage.poll(11);
  const sent = stage.taken();
  assert.equal(new Set(sent).size, sent.length, 'each once');
  assert.deepEqual(
    ids(250).filter((id) => !sent.includes(id)),
    [],
  );
  await stage.end();
});

test('what nobody answers is said ever more rarely: an hour of polls', async () => {
  for (const [repeatLimitSeconds, most] of [
    [60, 70],
    [0, 720],
  ] as const) {
    const stage = await Stage.start({ repeatLimitSeconds }, 1);
    for (let time = 15; time < 3600; time += 5) await stage.poll(time);
    const { length } = stage.taken();
    assert.ok(
      length <= most && length > most * 0.8,
      `${length} events with a limit of ${repeatLimitSeconds} s`,
    );
    await stage.end();
  }
});

test('a report, a new generation and a deletion are said at once, whatever was held back', async () => {
  const stage = await Stage.start({}, 1);
  for (const time of [15, 25, 45]) await stage.poll(time);
  assert.equal(stage.taken().length, 3);
  assert.equal((await stage.poll(50)).held, 1);
  stage.api.patch('cls-0', goodSpec('changed'));
  // The others have not reported at this generation: the cluster is as new.
  stage.api.clusters.get('cls-0')?.reports.clear();
  assert.equal((await stage.poll(55)).published, 1);
  assert.equal((await stage.poll(60)).held, 1);
  stage.api.delete('cls-0');
  assert.equal((await stage.poll(61)).published, 1);
  await stage.end();
});

test('API down: nothing is sent, and nothing piles up', async () => {
  const stage = await Stage.start({}, 120);
  stage.api.faults = [{ status: 503, times: Number.POSITIVE_INFINITY }];
  for (let time = 15; time < 600; time += 5)
    await assert.rejects(stage.poll(time), /HyperFleet API request failed: HTTP 503/);
  assert.deepEqual(stage.taken(), []);
  stage.api.faults = [];
  await stage.poll(600);
  assert.deepEqual(stage.taken(), ids(120), 'one event each');
  await stage.poll(605);
  assert.deepEqual(stage.taken(), [], 'and not another one at the next poll');
  await stage.end();
});

test('the second page fails: what was sent is not sent again at every poll', async () => {
  const stage = await Stage.start({}, 120);
  stage.api.faults = [{ on: /page=2/, status: 500, times: 3 }];
  for (const time of [15, 20, 24]) await assert.rejects(stage.poll(time));
  const first = stage.taken();
  assert.equal(new Set(first).size, first.length);
  await stage.poll(24.5);
  assert.equal(new Set([...first, ...stage.taken()]).size, 120, 'the others follow');
  await stage.end();
});

test('broker down: one group is tried, then the next poll', async () => {
  const stage = await Stage.start({}, 120);
  stage.brokerDown = true;
  const count = await stage.poll(15);
  assert.deepEqual([count.clusters, count.failed], [50, 50]);
  const faults = [count.cause, undefined, null, 'text', { code: '' }, { code: 'ECONNRESET' }, { code: 7 }];
  assert.deepEqual(faults.map(codeOf), [
    'Error',
    'unknown',
    'unknown',
    'unknown',
    'unknown',
    'ECONNRESET',
    7,
  ]);
  stage.brokerDown = false;
  await stage.poll(20);
  assert.deepEqual(stage.taken(), ids(120));
  await stage.end();
});

test('pages of one document, as of a page that is too large, are not waited for one by one', async () => {
  const page = (id: string) => [clusterDocument.parse({ id, generation: 1 })];
  const clusters = async function* () {
    yield* ids(60).map(page);
  };
  let [running, most] = [0, 0];
  const publish = async (): Promise<void> => {
    most = Math.max(most, ++running);
    await new Promise(setImmediate);
    running -= 1;
  };
  const api = { clusters, statuses: () => Promise.resolve([]) };
  const { published } = await new Sentinel(api, { publish }, DEFAULT_SENTINEL).poll(new Date());
  assert.deepEqual([published, most], [60, 50]);
});

test('rule dependencies: no event before all are available at the generation, then cluster.create', async () => {
  const rule = { rule: 'dependencies' } as const;
  const stage = await Stage.start(rule, 1, false);
  // The adapter is not required: only the list of reports contains it, not the cluster.
  stage.api.required = ['validation', 'dns', 'pullsecret'];
  await stage.poll(15);
  stage.api.dependenciesReady('cls-0', ['validation', 'dns']);
  await stage.poll(30);
  assert.deepEqual(stage.sent, []);
  stage.api.dependenciesReady('cls-0', ['placement']);
  await stage.poll(45);
  assert.deepEqual(stage.sent, ['cluster.create cls-0']);
  stage.sent = [];
  const cluster = stage.api.clusters.get('cls-0');
  assert.ok(cluster !== undefined);
  cluster.generation = 2;
  await stage.poll(60);
  assert.deepEqual(stage.sent, [], 'true for generation 1 only');
  stage.api.delete('cls-0');
  await stage.poll(75);
  assert.deepEqual(stage.sent, ['cluster.create cls-0'], 'a deletion waits for nobody');
  await stage.end();
});

test('rule dependencies: the first event comes with the next go, and does not wait for the debounce', async () => {
  const stage = await Stage.start({ rule: 'dependencies' }, 1, false);
  await stage.poll(1);
  assert.deepEqual(stage.sent, []);
  stage.api.dependenciesReady('cls-0');
  await stage.poll(2);
  assert.deepEqual(stage.sent, ['cluster.create cls-0'], 'the reports are a second old');
  for (const time of [3, 4, 5]) await stage.poll(time);
  assert.equal(stage.sent.length, 1, 'said once');
  await stage.poll(30);
  assert.equal(stage.sent.length, 2, 'nobody has reported anything since');
  await stage.end();
});

test('a selector reaches the API as its search', async () => {
  const stage = await Stage.start({ labels: { tier: "o'neil" } }, 3);
  Object.assign(stage.api.clusters.get('cls-1')?.labels ?? {}, { tier: "o'neil" });
  await stage.poll(15);
  assert.deepEqual(stage.taken(), ['cls-1']);
  await stage.end();
});

test('the process: exit code, log and metrics', async () => {
  const stage = await Stage.start({ debounceSeconds: 0 }, 3);
  const metrics = createMetrics();
  const log: string[] = [];
  const run = (once: boolean, signal: AbortSignal): Promise<number> =>
    runSentinel({
      sentinel: stage.sentinel,
      connected: () => true,
      logger: createLogger({ write: (line) => log.push(line) }),
      metrics,
      signal,
      pauseMs: 10,
      once,
      ports: { health: undefined, metrics: undefined },
    });
  assert.equal(await run(true, new AbortController().signal), 0);
  stage.api.faults = [{ status: 500 }];
  assert.equal(await run(true, new AbortController().signal), 1);
  const stop = new AbortController();
  stage.api.beforePage = () => stop.abort();
  assert.equal(await run(false, stop.signal), 0);
  assert.match(log.join(''), /"published":3.*\n.*Cannot poll the clusters.*HTTP 500/);
  const { text } = await metrics.render();
  assert.match(text, /pullwright_sentinel_polls_total\{result="failed"\} 1/);
  assert.match(text, /pullwright_sentinel_events_total\{outcome="published"\} [3-9]/);
  assert.match(text, /pullwright_sentinel_clusters 3/);
  assert.match(text, /pullwright_sentinel_last_poll_timestamp_seconds \d{10}/);
  await stage.end();
});
