/* oxlint-disable max-lines -- one table of cases */
/** What the adapter makes of every way in which the HyperFleet API, or its own cluster, can fail: one table. */
import assert from 'node:assert/strict';
import { eventually } from '../control-plane/eventually.ts';
import { findPlanted } from '../support/canary.ts';
import { type Case, suite, table } from '../support/suite.ts';
import type { ApiFault, HyperfleetDouble } from './doubles/hyperfleet-api.ts';
import { eventFor, goodSpec, Scene } from './scene.ts';

const test = suite('adapter and a failing API');
const HTML = '<html><body>Sign in</body></html>';
const ALWAYS = Number.POSITIVE_INFINITY;

interface Row extends Case {
  readonly faults?: readonly ApiFault[];
  readonly prepare?: (scene: Scene) => void;
  readonly undo?: (scene: Scene) => void;
  readonly baseUrl?: (api: HyperfleetDouble) => string;
  readonly timeoutMs?: number;
  /** What becomes of the message. */
  readonly message: 'done' | 'again' | RegExp;
  /** The last line that is logged; absent: none is. */
  readonly log?: RegExp;
  /** Available and Health as reported while it lasts. */
  readonly reported: readonly [available: string, health: string];
  /** A pause that must have been asked for. */
  readonly pause?: (ms: number) => boolean;
}

const STARTED = ['False JobInProgress', 'True Healthy'] as const;
const NOTHING = ['nothing', 'nothing'] as const;
const always = (fault: ApiFault): readonly ApiFault[] => [{ ...fault, times: ALWAYS }];
const problem = (status: number, code: string): ApiFault => ({
  status,
  headers: { 'content-type': 'application/problem+json' },
  body: JSON.stringify({
    type: 'https://api.hyperfleet.io/errors/x',
    title: 'x',
    status,
    code,
    detail: HTML,
  }),
});

const ROWS: readonly Row[] = [
  {
    name: '401',
    reason: 'the token is wrong for every cluster',
    prepare: ({ api }) => (api.token = 'right'),
    undo: ({ api }) => (api.token = undefined),
    message: 'again',
    log: /ApiAccessDenied.*HTTP 401 HYPERFLEET-AUT-001\. Look at the token file/,
    reported: NOTHING,
  },
  {
    name: '403 on the report',
    reason: 'a right is missing for every cluster',
    faults: always({ on: /^PUT/, ...problem(403, 'HYPERFLEET-AUZ-001') }),
    message: 'again',
    log: /ApiAccessDenied.*HTTP 403 HYPERFLEET-AUZ-001\. Give the identity/,
    reported: NOTHING,
  },
  {
    name: '404, the cluster has gone',
    reason: 'a late event',
    prepare: ({ api }) => void api.clusters.delete('cls-1'),
    undo: ({ api }) => void api.add('cls-1', goodSpec('faults')),
    message: 'done',
    reported: NOTHING,
  },
  {
    name: '404, no such endpoint',
    reason: 'not a missing cluster: nothing may be cleaned up',
    baseUrl: (api) => `${api.url}/elsewhere`,
    message: 'again',
    log: /HTTP 404 HYPERFLEET-NTF-000\. Look at the base URL/,
    reported: NOTHING,
  },
  {
    name: '404 of a proxy',
    reason: 'says nothing about the cluster',
    faults: always({ status: 404, body: HTML }),
    message: 'again',
    log: /HTTP 404\. Look at the base URL/,
    reported: NOTHING,
  },
  {
    name: '405 for both methods',
    reason: 'no generation of the API',
    faults: always({ on: /^(PUT|POST)/, ...problem(405, 'HYPERFLEET-VAL-000') }),
    message: 'again',
    log: /HTTP 405/,
    reported: NOTHING,
  },
  {
    name: '409 on the report, once',
    reason: 'somebody else reported: the next look decides anew',
    faults: [{ on: /^PUT/, ...problem(409, 'HYPERFLEET-CNF-001') }],
    message: 'done',
    log: /ApiRefused.*HTTP 409/,
    reported: STARTED,
  },
  {
    name: '409 on the report, always',
    reason: 'about this cluster alone',
    faults: always({ on: /^PUT/, ...problem(409, 'HYPERFLEET-CNF-001') }),
    message: /the look at the cluster failed: ApiRefused/,
    log: /ApiRefused.*HTTP 409 HYPERFLEET-CNF-001/,
    reported: NOTHING,
  },
  {
    name: '429 with seconds',
    reason: 'the server says how long',
    faults: [{ ...problem(429, 'HYPERFLEET-LMT-001'), headers: { 'retry-after': '7' } }],
    message: 'done',
    reported: STARTED,
    pause: (ms) => ms === 7000,
  },
  {
    name: '429 with a date',
    reason: 'the other form',
    faults: [
      {
        ...problem(429, 'HYPERFLEET-LMT-001'),
        headers: { 'retry-after': new Date(Date.now() + 20_000).toUTCString() },
      },
    ],
    message: 'done',
    reported: STARTED,
    pause: (ms) => ms > 1000 && ms <= 20_000,
  },
  {
    name: '429 with an hour',
    reason: 'nobody holds a message that long',
    faults: [{ ...problem(429, 'HYPERFLEET-LMT-001'), headers: { 'retry-after': '3600' } }],
    message: 'done',
    reported: STARTED,
    pause: (ms) => ms === 30_000,
  },
  {
    name: '429 with nonsense',
    reason: 'our own pause',
    faults: [{ ...problem(429, 'HYPERFLEET-LMT-001'), headers: { 'retry-after': 'soon' } }],
    message: 'done',
    reported: STARTED,
    pause: (ms) => ms === 250,
  },
  {
    name: '429 always',
    reason: 'the API is overloaded, the message waits',
    faults: always(problem(429, 'HYPERFLEET-LMT-001')),
    message: 'again',
    log: /ApiUnavailable.*HTTP 429 HYPERFLEET-LMT-001/,
    reported: NOTHING,
  },
  {
    name: '500 once',
    reason: 'tried again at once',
    faults: [problem(500, 'HYPERFLEET-INT-001')],
    message: 'done',
    reported: STARTED,
  },
  {
    name: '500 with problem+json, always',
    reason: 'its code is shown, its detail is not',
    faults: always(problem(500, 'HYPERFLEET-INT-001')),
    message: 'again',
    log: /ApiUnavailable.*HTTP 500 HYPERFLEET-INT-001"/,
    reported: NOTHING,
  },
  {
    name: '500 on the report only',
    reason: 'the Job runs all the same',
    faults: always({ on: /^PUT/, ...problem(500, 'HYPERFLEET-INT-001') }),
    message: 'again',
    log: /HTTP 500/,
    reported: NOTHING,
  },
  {
    name: 'slow once',
    reason: 'tried again',
    timeoutMs: 400,
    faults: [{ delayMs: 1500 }],
    message: 'done',
    reported: STARTED,
  },
  {
    name: 'slow always',
    reason: 'every try has an end',
    timeoutMs: 200,
    faults: always({ delayMs: 1000 }),
    message: 'again',
    log: /ApiUnavailable.*no answer in time/,
    reported: NOTHING,
  },
  {
    name: 'HTML with status 200, once',
    reason: 'a proxy starts',
    faults: [{ status: 200, body: HTML }],
    message: 'done',
    reported: STARTED,
  },
  {
    name: 'HTML with status 200, always',
    reason: 'a page to sign in',
    faults: always({ status: 200, body: HTML }),
    message: 'again',
    log: /HTTP 200 without JSON/,
    reported: NOTHING,
  },
  {
    name: 'HTML with status 201 on the report',
    reason: 'not stored, whatever the status says',
    faults: [{ on: /^PUT/, status: 201, body: HTML }],
    message: 'done',
    reported: STARTED,
  },
  {
    name: 'a redirection',
    reason: 'a page to sign in is no answer',
    faults: always({ status: 302, headers: { location: '/login' } }),
    message: 'again',
    log: /HTTP 302\. Look at the base URL/,
    reported: NOTHING,
  },
  {
    name: 'connection reset once',
    reason: 'tried again',
    faults: [{ connection: 'reset' }],
    message: 'done',
    reported: STARTED,
  },
  {
    name: 'connection reset, always',
    reason: 'the way to the API is broken',
    faults: always({ connection: 'reset' }),
    message: 'again',
    log: /no connection \(\w+\)/,
    reported: NOTHING,
  },
  {
    name: 'nothing listens',
    reason: 'the API is down',
    baseUrl: () => 'http://127.0.0.1:9',
    message: 'again',
    log: /no connection/,
    reported: NOTHING,
  },
  {
    name: 'body cut off once',
    reason: 'half a document is none',
    faults: [{ connection: 'truncate' }],
    message: 'done',
    reported: STARTED,
  },
  {
    name: 'body cut off, always',
    reason: 'a broken proxy',
    faults: always({ connection: 'truncate' }),
    message: 'again',
    log: /no connection/,
    reported: NOTHING,
  },
  {
    name: 'answer to the report cut off',
    reason: 'it was stored: the same again does no harm',
    faults: [{ on: /^PUT/, connection: 'truncate' }],
    message: 'done',
    reported: STARTED,
  },
  {
    name: 'answer too large',
    reason: 'nobody may fill the memory',
    faults: always({ status: 200, body: ' '.repeat(33 * 2 ** 20) }),
    message: 'again',
    log: /an answer that is too large/,
    reported: NOTHING,
  },
  {
    name: 'a document that is none',
    reason: 'the same at every try',
    faults: always({ on: /^GET .*cls-1$/, status: 200, body: '{"id":"cls-1"}' }),
    message: /ClusterFetchFailed/,
    log: /ClusterFetchFailed.*no generation/,
    reported: NOTHING,
  },
  {
    name: 'the document of another cluster',
    reason: 'must never be acted on',
    faults: always({ on: /^GET .*cls-1$/, status: 200, body: '{"id":"cls-2","generation":1}' }),
    message: /ClusterFetchFailed/,
    log: /answered with another cluster/,
    reported: NOTHING,
  },
  {
    name: 'statuses without a list',
    reason: 'nothing may be concluded from it',
    faults: always({ on: /statuses\?/, status: 200, body: '{"items":null}' }),
    message: 'again',
    log: /without a list/,
    reported: NOTHING,
  },
  {
    name: 'our cluster refuses a Job',
    reason: 'said where the user looks, and tried again',
    prepare: ({ cluster }) =>
      (cluster.refuse = (method, path) => (method === 'PATCH' && path.includes('/jobs/') ? 403 : undefined)),
    undo: ({ cluster }) => (cluster.refuse = undefined),
    message: 'again',
    log: /A cluster could not be looked at.*403/,
    reported: ['False ManagementPermissionDenied', 'False ManagementPermissionDenied'],
  },
  {
    name: 'our cluster is down',
    reason: 'said where the user looks, and tried again',
    prepare: ({ cluster }) => (cluster.refuse = () => 503),
    undo: ({ cluster }) => (cluster.refuse = undefined),
    message: 'again',
    log: /A cluster could not be looked at.*503/,
    reported: ['False ManagementClusterUnavailable', 'False ManagementClusterUnavailable'],
  },
];

table(test, ROWS, async (row) => {
  const scene = await Scene.start((api) => ({
    ...(row.baseUrl === undefined ? {} : { baseUrl: row.baseUrl(api) }),
    ...(row.timeoutMs === undefined ? {} : { timeoutMs: row.timeoutMs }),
  }));
  scene.cluster.jobMs = 60_000;
  scene.api.add('cls-1', goodSpec('faults'));
  row.prepare?.(scene);
  scene.api.faults = [...(row.faults ?? [])];
  const handled = await scene.handle(eventFor('cls-1', '1'));
  const ended = handled.outcome === 'dead' ? handled.reason : handled.outcome;
  if (row.message instanceof RegExp) assert.match(ended, row.message);
  else assert.equal(ended, row.message);
  if (row.log === undefined) assert.deepEqual(scene.log, []);
  else assert.match(scene.log.at(-1) ?? '', row.log);
  assert.deepEqual([scene.reported('cls-1', 'Available'), scene.reported('cls-1', 'Health')], row.reported);
  if (row.pause !== undefined) assert.ok(scene.pauses.some(row.pause), String(scene.pauses));
  assert.equal(findPlanted(scene.log.join('')), undefined);
  assert.deepEqual([scene.api.violations, scene.api.refused], [[], []]);
  if (row.baseUrl === undefined) await mends(scene, row);
  await scene.close();
});

/** Once the fault is over, the message that was given back, or the next one, has its effect. */
async function mends(scene: Scene, row: Row): Promise<void> {
  scene.api.faults = [];
  row.undo?.(scene);
  scene.cluster.jobMs = 0;
  assert.deepEqual(await scene.handle(eventFor('cls-1', '2')), { outcome: 'done' });
  await eventually(() => assert.ok(scene.cluster.started.length > 0), { withinMs: 60_000 });
  assert.equal(scene.reported('cls-1', 'Health'), 'True Healthy');
}

test('a fault that follows one cluster, while others succeed, ends in the dead letters', async () => {
  const scene = await Scene.start();
  scene.api.add('cls-1', goodSpec('one'));
  scene.api.add('cls-2', goodSpec('two'));
  scene.api.faults = [{ on: /cls-1/, times: ALWAYS, ...problem(500, 'HYPERFLEET-INT-001') }];
  const outcomes: string[] = [];
  for (const round of ['a', 'b', 'c']) {
    outcomes.push((await scene.handle(eventFor('cls-1', 'same'))).outcome);
    outcomes.push((await scene.handle(eventFor('cls-2', round))).outcome);
  }
  assert.deepEqual(outcomes, ['again', 'done', 'again', 'done', 'dead', 'done']);
  await scene.close();
});

test('an API that fails for all is waited for, however long', async () => {
  const scene = await Scene.start();
  scene.api.faults = [{ times: ALWAYS, ...problem(500, 'HYPERFLEET-INT-001') }];
  for (let round = 0; round < 10; round += 1)
    assert.equal((await scene.handle(eventFor('cls-1', 'same'))).outcome, 'again');
  await scene.close();
});

for (const generation of ['old', 'current'] as const)
  test(`the ${generation} API: its method is found out once, and everything fits its document`, async () => {
    const scene = await Scene.start();
    scene.api.generation = generation;
    for (const id of ['cls-1', 'cls-2', 'cls-3']) {
      scene.api.add(id, goodSpec(id));
      assert.deepEqual(await scene.handle(eventFor(id, id)), { outcome: 'done' });
    }
    const methods = scene.api.requests
      .filter((one) => !one.startsWith('GET'))
      .map((one) => one.split(' ')[0]);
    assert.deepEqual(methods, generation === 'old' ? ['PUT', 'POST', 'POST', 'POST'] : ['PUT', 'PUT', 'PUT']);
    scene.api.clusters.delete('cls-1');
    assert.deepEqual(await scene.handle(eventFor('cls-1', 'late')), { outcome: 'done' });
    assert.deepEqual([scene.api.violations, scene.api.refused], [[], []]);
    await scene.close();
  });

test('a wrong client or a wrong double is noticed', async () => {
  const scene = await Scene.start();
  const cluster = scene.api.add('cls-1', goodSpec('one'));
  const put = (body: unknown): Promise<Response> =>
    fetch(`${scene.api.url}/api/hyperfleet/v1/clusters/cls-1/statuses`, {
      method: 'PUT',
      body: JSON.stringify(body),
    });
  assert.equal((await put({ adapter: 'x', conditions: [{ type: 'Available', status: 'Yes' }] })).status, 400);
  assert.match(scene.api.violations[0] ?? '', /observed_generation.*observed_time.*conditions\.0\.status/);
  cluster.name = 'Not A Name';
  await fetch(`${scene.api.url}/api/hyperfleet/v1/clusters/cls-1`);
  assert.match(scene.api.violations[1] ?? '', /answer 200 of GET \/clusters\/\{id\}: name/);
  await scene.close();
});

test.run();
