/** Lists of the HyperFleet API: one document that cannot be used hides no other. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { listen } from '../support/loopback.ts';
import { type Case, table, test } from '../support/suite.ts';
import { HyperfleetDouble } from './doubles/hyperfleet-api.ts';
import { clientOf, goodSpec } from './scene.ts';

/** At the start, in the middle, side by side, at the end. */
const LARGE = [0, 101, 102, 229];

test('documents that are too large, and identifiers that are none, are left out; all others come, on every page', async () => {
  const api = await HyperfleetDouble.start();
  api.strict = false;
  const good: string[] = [];
  for (let index = 0; index < 230; index += 1) {
    const id = index === 7 ? '../x' : index === 130 ? `x${'y'.repeat(64)}` : `cls-${index}`;
    const isLarge = LARGE.includes(index);
    api.add(id, isLarge ? { ...goodSpec('large'), padding: 'x'.repeat(33 * 2 ** 20) } : goodSpec('list'));
    if (!isLarge && id.startsWith('cls-')) good.push(id);
  }
  const leftOut: unknown[] = [];
  const client = clientOf(api.url, { onLeftOut: (one) => leftOut.push(one) });
  const seen: string[] = [];
  for await (const page of client.clusters('')) seen.push(...page.map(({ id }) => id));
  assert.deepEqual(seen.toSorted(), good.toSorted());
  // The newest come first.
  assert.deepEqual(
    leftOut,
    LARGE.toReversed().map((at) => ({ subject: 'clusters', position: 230 - 1 - at })),
  );
  await api.close();
});

interface Paged extends Case {
  /** Answer of the API to the request of each page. */
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
      fails: /Cannot list "clusters": HyperFleet API request failed: same page for every page number$/,
    },
    {
      name: 'one that says besides that there are more',
      reason: 'its count would end the list only after as many pages',
      page: () => ({ items: clustersOf('a'), total: 1_000_000 }),
      clusters: 100,
      requests: 2,
      fails: /same page for every/,
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
    const baseUrl = `http://127.0.0.1:${await listen(server)}`;
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
  // Pages shrink to one document each around a large one, and the newest come first.
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
