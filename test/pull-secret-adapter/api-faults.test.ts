/** Behaviour of the adapter for every fault of the HyperFleet API or of its own cluster, and its recovery. */
import assert from 'node:assert/strict';
import { eventually } from '../control-plane/eventually.ts';
import { findPlanted } from '../support/canary.ts';
import { type Case, table, test } from '../support/suite.ts';
import type { ApiFault, HyperfleetDouble } from './doubles/hyperfleet-api.ts';
import { eventFor, goodSpec, Scene } from './scene.ts';

interface ApiFaultCase extends Case {
  /** Made when the case runs: a date in an answer counts from then. */
  readonly faults?: () => readonly ApiFault[];
  readonly prepare?: (scene: Scene) => void;
  readonly undo?: (scene: Scene) => void;
  readonly baseUrl?: (api: HyperfleetDouble) => string;
  readonly timeoutMs?: number;
  /** What the adapter does with the message. @default {'again' when something is logged, else 'done'} */
  readonly message?: 'again' | 'done' | RegExp;
  /** The last line that is logged; absent: none is. */
  readonly log?: RegExp;
  /** Available and Health as reported while it lasts. @default {the Job runs when the message is done, else nothing} */
  readonly reported?: readonly [available: string, health: string];
  /** Checks the pause that the adapter must request. */
  readonly pause?: (ms: number) => boolean;
}

/** The Job runs: what is reported when the fault was overcome. */
const STARTED = ['False JobInProgress', 'True Healthy'] as const;
/** No report has arrived. */
const NOTHING = ['nothing', 'nothing'] as const;
/** Answer of a proxy or a sign-in page; its text must never be printed. */
const HTML = '<html><body>Sign in</body></html>';

/** The fault at every call, not at the first alone. */
function always(fault: ApiFault): readonly ApiFault[] {
  return [{ ...fault, times: Number.POSITIVE_INFINITY }];
}

/** A refusal in the API's own form. */
function problem(status: number, code: string): ApiFault {
  return {
    status,
    headers: { 'content-type': 'application/problem+json' },
    body: JSON.stringify({
      type: 'https://api.hyperfleet.io/errors/x',
      title: 'x',
      status,
      code,
      detail: HTML,
    }),
  };
}

/** The API is overloaded and says, or does not say, how long to stay away. */
function overloaded(retryAfter: string): ApiFault {
  return { ...problem(429, 'HYPERFLEET-LMT-001'), headers: { 'retry-after': retryAfter } };
}

const FAULTS: readonly ApiFaultCase[] = [
  // The API itself rejects the request: for identity, content or rate.
  {
    name: '401',
    reason: 'the token is wrong for every cluster',
    prepare: ({ api }) => (api.token = 'right'),
    undo: ({ api }) => (api.token = undefined),
    log: /ApiAccessDenied.*HTTP 401 HYPERFLEET-AUT-001\. Check the token file/,
  },
  {
    name: '403 on the report',
    reason: 'a right is missing for every cluster',
    faults: () => always({ on: /^PUT/, ...problem(403, 'HYPERFLEET-AUZ-001') }),
    log: /ApiAccessDenied.*HTTP 403 HYPERFLEET-AUZ-001\. Allow the identity/,
  },
  {
    name: '404, the cluster has gone',
    reason: 'a late event',
    prepare: ({ api }) => void api.clusters.delete('cls-1'),
    undo: ({ api }) => void api.add('cls-1', goodSpec('faults')),
    reported: NOTHING,
  },
  {
    name: '404, no such endpoint',
    reason: 'not a missing cluster: nothing may be cleaned up',
    baseUrl: (api) => `${api.url}/elsewhere`,
    log: /HTTP 404 HYPERFLEET-NTF-000\. Check the base URL/,
  },
  {
    name: '404 of a proxy',
    reason: 'says nothing about the cluster',
    faults: () => always({ status: 404, body: HTML }),
    log: /HTTP 404\. Check the base URL/,
  },
  {
    name: '405 for both methods',
    reason: 'no generation of the API',
    faults: () => always({ on: /^(PUT|POST)/, ...problem(405, 'HYPERFLEET-VAL-000') }),
    log: /HTTP 405/,
  },
  {
    name: '409 on the report, once',
    reason: 'somebody else reported: the next look decides anew',
    faults: () => [{ on: /^PUT/, ...problem(409, 'HYPERFLEET-CNF-001') }],
    message: 'done',
    log: /ApiRefused.*HTTP 409/,
  },
  {
    name: '409 on the report, always',
    reason: 'about this cluster alone',
    faults: () => always({ on: /^PUT/, ...problem(409, 'HYPERFLEET-CNF-001') }),
    message: /the reconcile of the cluster failed: ApiRefused/,
    log: /ApiRefused.*HTTP 409 HYPERFLEET-CNF-001/,
  },
  {
    name: '429 with seconds',
    reason: 'the server says how long',
    faults: () => [overloaded('7')],
    pause: (ms) => ms === 7125,
  },
  {
    name: '429 with a date',
    reason: 'the other form',
    faults: () => [overloaded(new Date(Date.now() + 20_000).toUTCString())],
    pause: (ms) => ms > 1000 && ms <= 20_125,
  },
  {
    name: '429 with an hour',
    reason: 'nobody holds a message that long',
    faults: () => [overloaded('3600')],
    pause: (ms) => ms === 30_125,
  },
  {
    name: '429 with nonsense',
    reason: 'our own pause',
    faults: () => [overloaded('soon')],
    pause: (ms) => ms === 125,
  },
  {
    name: '429 always',
    reason: 'the API is overloaded, the message waits',
    faults: () => always(problem(429, 'HYPERFLEET-LMT-001')),
    log: /ApiUnavailable.*HTTP 429 HYPERFLEET-LMT-001/,
  },
  // The API, or the way to it, is broken.
  {
    name: '500 once',
    reason: 'tried again at once',
    faults: () => [problem(500, 'HYPERFLEET-INT-001')],
  },
  {
    name: '500 with problem+json, always',
    reason: 'its code is shown, its detail is not',
    faults: () => always(problem(500, 'HYPERFLEET-INT-001')),
    log: /ApiUnavailable.*HTTP 500 HYPERFLEET-INT-001"/,
  },
  {
    name: '500 on the report only',
    reason: 'the Job runs all the same',
    faults: () => always({ on: /^PUT/, ...problem(500, 'HYPERFLEET-INT-001') }),
    log: /HTTP 500/,
  },
  {
    name: 'slow once',
    reason: 'tried again',
    timeoutMs: 3000,
    faults: () => [{ delayMs: 4500 }],
  },
  {
    name: 'slow always',
    reason: 'every try has an end',
    timeoutMs: 200,
    faults: () => always({ delayMs: 1000 }),
    log: /ApiUnavailable.*timed out/,
  },
  {
    name: 'HTML with status 200, once',
    reason: 'a proxy starts',
    faults: () => [{ status: 200, body: HTML }],
  },
  {
    name: 'HTML with status 200, always',
    reason: 'a page to sign in',
    faults: () => always({ status: 200, body: HTML }),
    log: /HTTP 200 without JSON/,
  },
  {
    name: 'HTML with status 201 on the report',
    reason: 'not stored, whatever the status says',
    faults: () => [{ on: /^PUT/, status: 201, body: HTML }],
  },
  {
    name: 'a redirection',
    reason: 'a page to sign in is no answer',
    faults: () => always({ status: 302, headers: { location: '/login' } }),
    log: /HTTP 302\. Check the base URL/,
  },
  {
    name: 'connection reset once',
    reason: 'tried again',
    faults: () => [{ connection: 'reset' }],
  },
  {
    name: 'connection reset, always',
    reason: 'the way to the API is broken',
    faults: () => always({ connection: 'reset' }),
    log: /no connection \(\w+\)/,
  },
  {
    name: 'nothing listens',
    reason: 'the API is down',
    baseUrl: () => 'http://127.0.0.1:9',
    log: /no connection/,
  },
  {
    name: 'body cut off once',
    reason: 'half a document is none',
    faults: () => [{ connection: 'truncate' }],
  },
  {
    name: 'body cut off, always',
    reason: 'a broken proxy',
    faults: () => always({ connection: 'truncate' }),
    log: /no connection/,
  },
  {
    name: 'answer to the report cut off',
    reason: 'it was stored: the same again does no harm',
    faults: () => [{ on: /^PUT/, connection: 'truncate' }],
  },
  {
    name: 'answer too large',
    reason: 'nobody may fill the memory',
    faults: () => always({ status: 200, body: ' '.repeat(33 * 2 ** 20) }),
    log: /response too large/,
  },
  // An answer that must not be believed, and our own cluster failing behind a good one.
  {
    name: 'a document that is none',
    reason: 'the same at every try',
    faults: () => always({ on: /^GET .*cls-1$/, status: 200, body: '{"id":"cls-1"}' }),
    message: /ClusterFetchFailed/,
    log: /ClusterFetchFailed.*no generation/,
  },
  {
    name: 'the document of another cluster',
    reason: 'must never be acted on',
    faults: () => always({ on: /^GET .*cls-1$/, status: 200, body: '{"id":"cls-2","generation":1}' }),
    message: /ClusterFetchFailed/,
    log: /returned another cluster/,
  },
  {
    name: 'statuses without a list',
    reason: 'nothing may be concluded from it',
    faults: () => always({ on: /statuses\?/, status: 200, body: '{"items":null}' }),
    log: /without a list/,
  },
  {
    name: 'our cluster refuses a Job',
    reason: 'said where the user looks, and tried again by the adapter itself',
    prepare: ({ cluster }) =>
      (cluster.refuse = (method, path) => (method === 'PATCH' && path.includes('/jobs/') ? 403 : undefined)),
    undo: ({ cluster }) => (cluster.refuse = undefined),
    message: 'done',
    log: /tried again.*403/,
    reported: ['False ManagementPermissionDenied', 'False ManagementPermissionDenied'],
  },
  {
    name: 'our cluster is down',
    reason: 'said where the user looks, and tried again by the adapter itself',
    prepare: ({ cluster }) => (cluster.refuse = () => 503),
    undo: ({ cluster }) => (cluster.refuse = undefined),
    message: 'done',
    log: /tried again.*503/,
    reported: ['False ManagementClusterUnavailable', 'False ManagementClusterUnavailable'],
  },
];

table(test, FAULTS, async (row) => {
  const scene = await Scene.start((api) => ({
    ...(row.baseUrl === undefined ? {} : { baseUrl: row.baseUrl(api) }),
    ...(row.timeoutMs === undefined ? {} : { timeoutMs: row.timeoutMs }),
  }));
  scene.cluster.jobMs = 60_000;
  scene.api.add('cls-1', goodSpec('faults'));
  row.prepare?.(scene);
  scene.api.faults = [...(row.faults?.() ?? [])];
  const handled = await scene.handle(eventFor('cls-1', '1'));
  const ended = handled.outcome === 'dead' ? handled.reason : handled.outcome;
  const { message = row.log === undefined ? 'done' : 'again' } = row;
  const { reported = message === 'done' ? STARTED : NOTHING } = row;
  if (message instanceof RegExp) assert.match(ended, message);
  else assert.equal(ended, message);
  if (row.log === undefined) assert.deepEqual(scene.log, []);
  else assert.match(scene.log.at(-1) ?? '', row.log);
  assert.deepEqual([scene.reported('cls-1', 'Available'), scene.reported('cls-1', 'Health')], reported);
  if (row.pause !== undefined) assert.ok(scene.pauses.some(row.pause), String(scene.pauses));
  assert.equal(findPlanted(scene.log.join('')), undefined);
  assert.deepEqual([scene.api.violations, scene.api.refused], [[], []]);
  if (row.baseUrl === undefined) await mends(scene, row);
  await scene.close();
});

/** Once the fault is over, the message that was given back, or the next one, has its effect. */
async function mends(scene: Scene, row: ApiFaultCase): Promise<void> {
  scene.api.faults = [];
  row.undo?.(scene);
  scene.cluster.jobMs = 0;
  assert.deepEqual(await scene.handle(eventFor('cls-1', '2')), { outcome: 'done' });
  await eventually(() => assert.ok(scene.cluster.started.length > 0));
  assert.equal(scene.reported('cls-1', 'Health'), 'True Healthy');
}

test('a fault that follows one cluster, while others succeed, ends in the dead letters', async () => {
  const scene = await Scene.start();
  scene.api.add('cls-1', goodSpec('one'));
  scene.api.add('cls-2', goodSpec('two'));
  scene.api.faults = [...always({ on: /cls-1/, ...problem(500, 'HYPERFLEET-INT-001') })];
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
  scene.api.faults = [...always(problem(500, 'HYPERFLEET-INT-001'))];
  for (let round = 0; round < 10; round += 1)
    assert.equal((await scene.handle(eventFor('cls-1', 'same'))).outcome, 'again');
  await scene.close();
});
