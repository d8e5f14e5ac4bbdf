// deadline: 600 s
/**
 * One process looks after many clusters, and the API servers of some of them do harm: all others get theirs, and cost no more requests
 * than beside good ones. Somebody may have more clusters than this process has places for anything. Work is counted here;
 * `bench/tenants.bench.ts` measures time.
 */
import assert from 'node:assert/strict';
import { HostedStub } from '../../bench/hosted-stub.ts';
import { HOSTILITIES } from '../../bench/hostile-answers.ts';
import { eventually } from '../control-plane/eventually.ts';
import { NODE, ReconcilerProcess } from '../reconcile/process.ts';
import { suite } from '../support/suite.ts';

const test = suite('many tenants, some of them hostile');
const CLUSTERS = 5;
/** Good ones beside many hostile ones: the last that are found, so that whoever waits in line waits behind all others. */
const GOOD = 4;
/** More than any limit has places, and more than could be waited for one after the other. */
const MANY = 400;
const stub = await HostedStub.start();

interface Seen {
  /** Requests of the management cluster and of all good ones, until each good one had its pull secret. */
  readonly requests: number;
  /** Of those, what the good ones were asked. */
  readonly ofGood: number;
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

/** @param hostile how many there are, beside those that are good */
async function look({ hostile, good }: { readonly hostile: number; readonly good: number }): Promise<Seen> {
  [stub.hostile, stub.clusters] = [hostile, hostile + good];
  const reconciler = started();
  const names = Array.from({ length: good }, (_, at) => `hosted-${hostile + at}`);
  try {
    const allHaveTheirs = (): void => {
      const missing = names.filter((name) => !stub.merges.at.has(name));
      assert.deepEqual(missing, [], reconciler.log.slice(-1500));
    };
    await eventually(allHaveTheirs, { withinMs: 120_000 });
    const requests = stub.requests - stub.hostileRequests;
    const ofGood = names.reduce((sum, name) => sum + (stub.asked.get(name) ?? 0), 0);
    if (stub.hostility !== undefined) await eventually(() => assert.ok(stub.hostileRequests > 0));
    const health = await fetch(`http://127.0.0.1:${await reconciler.port('health')}/healthz`);
    assert.equal(health.status, 200);
    assert.equal(reconciler.running, true);
    return { requests, ofGood };
  } finally {
    await reconciler.stop('SIGKILL');
  }
}

const quiet = await look({ hostile: 0, good: CLUSTERS });

for (const hostility of HOSTILITIES)
  test(`${hostility}: every other cluster gets its pull secret, for no more requests`, async () => {
    stub.hostility = hostility;
    const { requests } = await look({ hostile: 1, good: CLUSTERS - 1 });
    // Its own kubeconfig and places in the management cluster are asked for again: not once per good cluster.
    assert.ok(requests <= quiet.requests * 1.25, `${requests} requests, ${quiet.requests} without it`);
    if (hostility === 'ten thousand changes a second') assert.ok(stub.changes > 0, 'no change was ever read');
  });

for (const hostility of ['silence', 'no TLS handshake', 'one byte a second', 'come back in a year'] as const)
  test(`${hostility} of ${MANY} clusters: none waits for another's server`, async () => {
    stub.hostility = hostility;
    const { ofGood } = await look({ hostile: MANY, good: GOOD });
    const most = (quiet.ofGood / CLUSTERS) * GOOD * 1.25;
    assert.ok(ofGood <= most, `${ofGood} requests to the good ones, ${most} would do`);
  });

test('one restarts, goes, and comes back: the others are asked nothing, and no watch of theirs ends', async () => {
  [stub.hostility, stub.clusters] = [undefined, CLUSTERS];
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
