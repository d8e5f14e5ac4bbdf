// deadline: 600 s
/**
 * One process looks after many clusters, and the API server of one of them does harm: all others get theirs, and cost no more requests
 * than beside a good one. Work is counted here; `bench/tenants.bench.ts` measures time.
 */
import assert from 'node:assert/strict';
import { HOSTILITIES, HostedStub } from '../../bench/hosted-stub.ts';
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

async function look(): Promise<Seen> {
  stub.forget();
  stub.requests = 0;
  const reconciler = new ReconcilerProcess(NODE, [
    `--kubeconfig=${stub.kubeconfig}`,
    '--discover',
    '--allow-address=127.0.0.0/8',
    `--config=${stub.config}`,
    '--health-port=0',
  ]);
  try {
    const allHaveTheirs = (): void => {
      const missing = Array.from({ length: CLUSTERS }, (_, at) => `hosted-${at}`)
        .slice(stub.hostility === undefined ? 0 : 1)
        .filter((name) => !stub.mergedAt.has(name));
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

test.lastly('the clusters stop', () => stub.stop());
test.run();
