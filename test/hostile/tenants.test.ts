// deadline: 600 s
/**
 * One process looks after many clusters, and the API server of one of them does harm: all others get theirs, and cost no more requests
 * than beside a good one. Work is counted here; `bench/tenants.bench.ts` measures time.
 */
import assert from 'node:assert/strict';
import { HostedStub } from '../../bench/hosted-stub.ts';
import { HOSTILITIES } from '../../bench/hostile-answers.ts';
import { eventually } from '../control-plane/eventually.ts';
import { NODE, ReconcilerProcess } from '../reconcile/process.ts';
import { suite } from '../support/suite.ts';

const test = suite('many tenants, one of them hostile');
const CLUSTERS = 5;
const stub = await HostedStub.start();
stub.clusters = CLUSTERS;

interface Seen {
  /** Requests of the management cluster and of all good ones, until each good one had its pull secret. */
  readonly requests: number;
}

function started(): ReconcilerProcess {
  stub.forget();
  stub.requests = 0;
  return new ReconcilerProcess(NODE, [
    `--kubeconfig=${stub.kubeconfig}`,
    '--discover',
    '--allow-address=127.0.0.0/8',
    `--config=${stub.config}`,
    '--health-port=0',
  ]);
}

async function look(): Promise<Seen> {
  const reconciler = started();
  try {
    const allHaveTheirs = (): void => {
      const missing = Array.from({ length: CLUSTERS }, (_, at) => `hosted-${at}`)
        .slice(stub.hostility === undefined ? 0 : 1)
        .filter((name) => !stub.merges.at.has(name));
      assert.deepEqual(missing, [], reconciler.log.slice(-1500));
    };
    await eventually(allHaveTheirs, { withinMs: 120_000 });
    const requests = stub.requests - stub.hostileRequests;
    if (stub.hostility !== undefined) assert.ok(stub.hostileRequests > 0, 'nobody asked the hostile cluster');
    const health = await fetch(`http://127.0.0.1:${await reconciler.port('health')}/healthz`);
    assert.equal(health.status, 200);
    assert.equal(reconciler.running, true);
    return { requests };
  } finally {
    await reconciler.stop('SIGKILL');
  }
}

const quiet = await look();

for (const hostility of HOSTILITIES)
  test(`${hostility}: every other cluster gets its pull secret, for no more requests`, async () => {
    stub.hostility = hostility;
    const { requests } = await look();
    // Its own kubeconfig and places in the management cluster are asked for again: not once per good cluster.
    assert.ok(requests <= quiet.requests * 1.25, `${requests} requests, ${quiet.requests} without it`);
    if (hostility === 'ten thousand changes a second') assert.ok(stub.changes > 0, 'no change was ever read');
  });

test('one restarts, goes, and comes back: the others are asked nothing, and no watch of theirs ends', async () => {
  stub.hostility = undefined;
  const reconciler = started();
  const names = Array.from({ length: CLUSTERS }, (_, at) => `hosted-${at}`);
  const [one = '', ...others] = names;
  const counts = (): readonly (readonly number[])[] =>
    others.map((name) => [stub.asked.get(name) ?? 0, stub.watches(name)]);
  try {
    // At rest: each holds its watches and its secret, and all watches of one are those of another.
    await eventually(
      () => {
        assert.equal(stub.merges.at.size, CLUSTERS, reconciler.log.slice(-1500));
        const [first = 0] = names.map((name) => stub.watches(name));
        assert.deepEqual(
          names.map((name) => stub.watches(name)),
          names.map(() => first),
        );
        assert.ok(first > 2, `${first} watches`);
      },
      { withinMs: 120_000 },
    );
    let last = '';
    await eventually(
      () => {
        const [seen, now] = [last, JSON.stringify(counts())];
        last = now;
        assert.equal(now, seen);
      },
      { withinMs: 120_000, everyMs: 1000 },
    );
    const [before, held] = [counts(), stub.watches(one)];
    stub.restart(one);
    await eventually(() => assert.equal(stub.watches(one), held, reconciler.log.slice(-1500)), {
      withinMs: 120_000,
    });
    stub.show(one, 'gone');
    await eventually(() => assert.equal(stub.watches(one), 0, reconciler.log.slice(-1500)), {
      withinMs: 120_000,
    });
    stub.show(one, 'there');
    await eventually(() => assert.ok(stub.merges.at.has(one), reconciler.log.slice(-1500)), {
      withinMs: 120_000,
    });
    assert.deepEqual(counts(), before);
    assert.equal(reconciler.running, true);
  } finally {
    await reconciler.stop('SIGKILL');
  }
});

test.lastly('the clusters stop', () => stub.stop());
test.run();
