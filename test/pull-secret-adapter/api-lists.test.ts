/** Lists of the HyperFleet API: one document that cannot be used hides no other. */
import assert from 'node:assert/strict';
import { openHttpClient } from '../../runtime/http/open.ts';
import { wantsPass } from '../../runtime/pull-secret-adapter/adapter/process.ts';
import { readCluster } from '../../runtime/pull-secret-adapter/cluster.ts';
import { HyperfleetApi } from '../../runtime/pull-secret-adapter/hyperfleet-api.ts';
import { type Case, suite, table } from '../support/suite.ts';
import { HyperfleetDouble } from './doubles/hyperfleet-api.ts';
import { goodSpec } from './scene.ts';

const test = suite('lists of the API');

test('a document that is too large, and identifiers that are none, are left out; all others come, on every page', async () => {
  const api = await HyperfleetDouble.start();
  api.strict = false;
  const good: string[] = [];
  for (let index = 0; index < 230; index += 1) {
    const isLarge = index === 42;
    const id = index === 7 ? '../x' : index === 130 ? `x${'y'.repeat(64)}` : `cls-${index}`;
    api.add(id, isLarge ? { ...goodSpec('large'), padding: 'x'.repeat(33 * 2 ** 20) } : goodSpec('list'));
    if (!isLarge && id.startsWith('cls-')) good.push(id);
  }
  const leftOut: unknown[] = [];
  const client = new HyperfleetApi({
    baseUrl: api.url,
    http: openHttpClient({}, [api.url]),
    userAgent: 'test',
    pause: () => Promise.resolve(),
    onLeftOut: (one) => leftOut.push(one),
  });
  const seen: string[] = [];
  for await (const cluster of client.clusters('')) seen.push(cluster.id);
  assert.deepEqual(seen.toSorted(), good.toSorted());
  // The newest come first.
  assert.deepEqual(leftOut, [{ subject: 'clusters', position: 230 - 1 - 42 }]);
  await api.close();
});

interface Row extends Case {
  readonly document: Readonly<Record<string, unknown>>;
  readonly wanted: boolean;
}

const own = (status: string, generation: number): Readonly<Record<string, unknown>> => ({
  status: { conditions: [{ type: 'PullsecretSuccessful', status, observed_generation: generation }] },
});

const ROWS: readonly Row[] = [
  { name: 'no report', reason: 'nobody has looked', document: {}, wanted: true },
  { name: 'in order', reason: 'it has its time in the queue', document: own('True', 2), wanted: false },
  { name: 'of an older generation', reason: 'it has changed', document: own('True', 1), wanted: true },
  { name: 'not in order', reason: 'it may be by now', document: own('False', 2), wanted: true },
  {
    name: 'deleted',
    reason: 'its end is to be reported',
    document: { ...own('True', 2), deleted_time: '2026-01-01T00:00:00Z' },
    wanted: true,
  },
];

table(test, ROWS, ({ document, wanted }) => {
  const read = readCluster({ id: 'cls-1', generation: 2, ...document });
  assert.ok(read.ok);
  assert.equal(wantsPass(read.value, { adapterName: 'pullsecret' }), wanted);
});

test.run();
