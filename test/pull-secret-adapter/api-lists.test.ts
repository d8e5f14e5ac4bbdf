/** Lists of the HyperFleet API: one document that cannot be used hides no other. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { wantsPass } from '../../runtime/pull-secret-adapter/adapter/process.ts';
import { clusterDocument } from '../../runtime/pull-secret-adapter/cluster.ts';
import { type Case, table, test } from '../support/suite.ts';
import { HyperfleetDouble } from './doubles/hyperfleet-api.ts';
import { clientOf, goodSpec } from './scene.ts';

test('a document that is too large, and identifiers that are none, are left out; all others come, on every page', async () => {
  const api = await HyperfleetDouble.start();
  api.strict = false;
  const good: string[] = [];
  for (let index = 0; index < 230; index += 1) {
    const id = index === 7 ? '../x' : index === 130 ? `x${'y'.repeat(64)}` : `cls-${index}`;
    const isLarge = index === 42;
    api.add(id, isLarge ? { ...goodSpec('large'), padding: 'x'.repeat(33 * 2 ** 20) } : goodSpec('list'));
    if (!isLarge && id.startsWith('cls-')) good.push(id);
  }
  const leftOut: unknown[] = [];
  const client = clientOf(api.url, { onLeftOut: (one) => leftOut.push(one) });
  const seen: string[] = [];
  for await (const page of client.clusters('')) seen.push(...page.map(({ id }) => id));
  assert.deepEqual(seen.toSorted(), good.toSorted());
  // The newest come first.
  assert.deepEqual(leftOut, [{ subject: 'clusters', position: 230 - 1 - 42 }]);
  await api.close();
});

interface Paged extends Case {
  /** What the API answers to each page that is asked for. */
  readonly page: (number: number) => Readonly<Record<string, unknown>>;
  readonly clusters: number;
  readonly requests: number;
  readonly fails?: RegExp;
}

const clustersOf = (prefix: string): readonly object[] =>
  Array.from({ length: 100 }, (_, at) => ({ id: `${prefix}-${at}`, generation: 1 }));

table(
  test,
  [
    {
      name: 'an API that ignores the number of the page',
      reason: 'it would have been asked 100,000 times, and the list taken for whole',
      page: () => ({ items: clustersOf('a') }),
      clusters: 100,
      requests: 2,
      fails:
        /Cannot list "clusters": the HyperFleet API answered the same page again, whichever was requested$/,
    },
    {
      name: 'one that says besides that there are more',
      reason: 'its count would end the list only after as many pages',
      page: () => ({ items: clustersOf('a'), total: 1_000_000 }),
      clusters: 100,
      requests: 2,
      fails: /the same page again/,
    },
    {
      name: 'pages that differ, and a short one',
      reason: 'a list ends there',
      page: (number) => ({
        items: number === 3 ? [{ id: 'last', generation: 1 }] : clustersOf(`p${number}`),
      }),
      clusters: 201,
      requests: 3,
    },
    {
      name: 'an empty page after a full one',
      reason: 'a list of a hundred',
      page: (number) => ({ items: number === 1 ? clustersOf('a') : [] }),
      clusters: 100,
      requests: 2,
    },
  ] satisfies readonly Paged[],
  async ({ page, clusters, requests, fails }: Paged) => {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      const { searchParams } = new URL(request.url ?? '', 'http://localhost');
      asked.push(searchParams.get('page') ?? '');
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(page(Number(searchParams.get('page')))));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = clientOf(baseUrl);
    const seen: string[] = [];
    const read = async (): Promise<void> => {
      for await (const page of client.clusters('')) seen.push(...page.map(({ id }) => id));
    };
    if (fails === undefined) await read();
    else await assert.rejects(read(), fails);
    assert.deepEqual([seen.length, asked.length], [clusters, requests]);
    server.close();
  },
);

test('a cluster that comes while pages of one are read is no page that comes again', async () => {
  const api = await HyperfleetDouble.start();
  api.strict = false;
  for (let index = 0; index < 4; index += 1) api.add(`cls-${index}`, goodSpec('list'));
  // Pages shrink to one document each where a heavy one stands, and the newest come first.
  api.add('cls-heavy', { ...goodSpec('large'), padding: 'x'.repeat(33 * 2 ** 20) });
  const client = clientOf(api.url, { onLeftOut: () => api.add('cls-new', goodSpec('list')) });
  const seen: string[] = [];
  for await (const page of client.clusters('')) {
    seen.push(...page.map(({ id }) => id));
    if (seen.at(-1) === 'cls-3') api.add('cls-newer', goodSpec('list'));
  }
  for (const id of ['cls-0', 'cls-1', 'cls-2', 'cls-3']) assert.ok(seen.includes(id), id);
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
  const cluster = clusterDocument.parse({ id: 'cls-1', generation: 2, ...document });
  assert.equal(wantsPass(cluster, { adapterName: 'pullsecret' }), wanted);
});
