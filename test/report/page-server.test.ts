/** The server of the page against a cluster that is a stand-in: what an unknown visitor costs, and what is remembered. */
import assert from 'node:assert/strict';
import { Gate } from '../../runtime/reports/gate.ts';
import { LatestReport } from '../../runtime/reports/latest.ts';
import { PullwrightError } from '../../runtime/rules/errors.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { redact } from '../../runtime/rules/redacted.ts';
import type { Report } from '../../runtime/rules/report/types.ts';
import { readPageRequest } from '../../runtime/rules/report-page/request.ts';
import { isAllowed, REPORT_AUDIENCE, reviewedUser } from '../../runtime/rules/report-page/reviews.ts';
import { createLogger } from '../../runtime/telemetry/logger.ts';
import { suite } from '../support/suite.ts';

const test = suite('the server of the report');
const lines: string[] = [];
const log = createLogger({ write: (line) => lines.push(line) });

/** An API server that knows users by their token, and lets each see the namespaces that are named after them. */
function cluster(now: () => number) {
  const asked: string[] = [];
  let fails: Error | undefined;
  const gate = new Gate({
    now,
    log,
    client: {
      create: async (review: KubeObject): Promise<KubeObject> => {
        asked.push(review.kind);
        if (fails !== undefined) throw fails;
        const spec = review.spec as {
          readonly user?: string;
          readonly resourceAttributes?: { readonly namespace?: string };
        };
        const status =
          review.kind === 'TokenReview'
            ? { authenticated: true, audiences: [REPORT_AUDIENCE], user: { username: 'ann' } }
            : { allowed: spec.resourceAttributes?.namespace === spec.user };
        return { ...review, status };
      },
    },
  });
  return { gate, asked, fail: (error: Error | undefined) => (fails = error) };
}

test('two questions for one who comes again and again, and again after ten seconds', async () => {
  let now = 0;
  const { gate, asked } = cluster(() => now);
  for (let at = 0; at < 100; at += 1)
    assert.deepEqual(await gate.judge(redact('t'), 'ann', '10.0.0.1'), { is: 'allowed' });
  assert.deepEqual(asked, ['TokenReview', 'SubjectAccessReview']);
  now = 10_001;
  await gate.judge(redact('t'), 'ann', '10.0.0.1');
  assert.equal(asked.length, 4);
});

test('who asks at once is one question', async () => {
  const { gate, asked } = cluster(() => 0);
  await Promise.all(Array.from({ length: 15 }, () => gate.judge(redact('t'), 'ann', '10.0.0.1')));
  assert.deepEqual(asked, ['TokenReview', 'SubjectAccessReview']);
});

test('made-up tokens cost the cluster a bounded number of questions, and others still get in', async () => {
  const { gate, asked } = cluster(() => 0);
  const statuses = new Set<unknown>();
  for (let at = 0; at < 1000; at += 1) {
    const judged = await gate.judge(redact(`made-up-${at}`), 'b', '10.0.0.66');
    statuses.add(judged.is === 'refused' ? judged.status : judged.is);
  }
  assert.deepEqual([...statuses], [403, 429]);
  assert.ok(asked.length <= 40, String(asked.length));
  assert.deepEqual(await gate.judge(redact('t'), 'ann', '10.0.0.1'), { is: 'allowed' });
});

test('one token that asks for every namespace is bounded too', async () => {
  const { gate, asked } = cluster(() => 0);
  for (let at = 0; at < 1000; at += 1) await gate.judge(redact('t'), `n-${at}`, '10.0.0.1');
  assert.ok(asked.length <= 21, String(asked.length));
});

test('a failure lets nobody in, is not remembered, and says nothing of its cause', async () => {
  const { gate, fail } = cluster(() => 0);
  fail(new PullwrightError('Cannot reach "10.9.8.7"', { code: 'ConnectionRefused' }));
  const judged = await gate.judge(redact('secret-token'), 'ann', '10.0.0.1');
  assert.equal(judged.is === 'refused' && judged.status, 503);
  assert.equal(JSON.stringify(judged).includes('10.9.8.7'), false);
  fail(undefined);
  assert.equal((await gate.judge(redact('secret-token'), 'ann', '10.0.0.1')).is, 'allowed');
  assert.equal(lines.join('').includes('secret-token'), false);
});

test('only a plain yes is one', () => {
  const user = { username: 'ann' };
  const yes = { authenticated: true, audiences: [REPORT_AUDIENCE], user };
  for (const status of [
    undefined,
    null,
    [],
    { ...yes, authenticated: 'true' },
    { ...yes, audiences: undefined },
    { ...yes, audiences: [] },
    { ...yes, audiences: ['https://kubernetes.default.svc'] },
    { ...yes, user: undefined },
    { ...yes, user: { username: '' } },
    { ...yes, user: { username: 7 } },
  ])
    assert.equal(reviewedUser({ status }), undefined, JSON.stringify(status));
  assert.ok(reviewedUser({ status: yes }));
  for (const status of [undefined, {}, { allowed: 'true' }, { allowed: 1 }, { allowed: true, denied: true }])
    assert.equal(isAllowed({ status }), false, JSON.stringify(status));
});

test('requests by method, path and header', () => {
  const authorization = 'Bearer abc.def-ghi_j~k+l/m==';
  const is = (method: string, url: string, given?: string) => {
    const read = readPageRequest({ method, url, authorization: given });
    return read.is === 'refused'
      ? read.status
      : read.is === 'report'
        ? `${read.namespace ?? '*'} ${read.form}`
        : read.is;
  };
  const long = 'a'.repeat(63);
  for (const [expected, ...given] of [
    ['sign-in', 'GET', '/'],
    ['sign-in', 'HEAD', '/?next=//evil.example.com'],
    ['* html', 'GET', '/report.html?x', authorization],
    ['shop json', 'GET', '/namespaces/shop/report.json', authorization],
    [`${long} json`, 'GET', `/namespaces/${long}/report.json`, authorization],
    [404, 'GET', `/namespaces/${long}a/report.json`, authorization],
    [404, 'GET', '/namespaces/-a/report.json', authorization],
    [404, 'GET', '/namespaces/a//report.json', authorization],
    [404, 'GET', 'http://other/report.json', authorization],
    [404, 'GET', '', authorization],
    [401, 'GET', '/report.json'],
    [400, 'GET', '/report.json', ''],
    [400, 'GET', '/report.json', 'Bearer '],
    [400, 'GET', '/report.json', 'Bearer a b'],
    [400, 'GET', '/report.json', `Bearer ${'a'.repeat(8193)}`],
    [400, 'GET', '/report.json', 'Bearer a\u0000'],
    [405, 'POST', '/report.json', authorization],
    [405, '', '/', authorization],
  ] as const)
    assert.equal(is(...(given as [string, string, string?])), expected, JSON.stringify(given));
});

const EMPTY: Report = { version: 1, madeAt: 'x', source: 'x', clusters: [], problems: [], unread: [] };

test('the report is made once for all who ask, and anew after its time', async () => {
  let now = 0;
  let made = 0;
  let rendered = 0;
  const latest = new LatestReport({
    everyMs: 60_000,
    now: () => now,
    make: async () => ({ ...EMPTY, source: String((made += 1)) }),
    render: ({ source }) => `${(rendered += 1)} ${source}`,
  });
  const said = await Promise.all([latest.get('json', 'a'), latest.get('json', 'a'), latest.get('html', 'a')]);
  assert.equal(made, 1);
  assert.ok(said.every((bytes) => bytes.toString().endsWith(' 1')));
  await latest.get('json', 'a');
  assert.ok(rendered <= 3);
  now = 60_001;
  assert.match((await latest.get('json', 'a')).toString(), / 2$/);
});

test('one that cannot be made is tried again after seconds, not with every request', async () => {
  let now = 0;
  let tries = 0;
  const latest = new LatestReport({
    everyMs: 60_000,
    now: () => now,
    make: async () => {
      tries += 1;
      throw new Error('no');
    },
    render: () => '',
  });
  for (let at = 0; at < 10; at += 1) await assert.rejects(latest.get('json', undefined));
  assert.equal(tries, 1);
  now = 5001;
  await assert.rejects(latest.get('json', undefined));
  assert.equal(tries, 2);
});

test.run();
