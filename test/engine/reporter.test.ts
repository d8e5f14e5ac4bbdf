/** Reporter.report(): when a key is due again, by what its pass came to. */
import assert from 'node:assert/strict';
import { createLogger } from '../../runtime/core/logger.ts';
import type { Cluster } from '../../runtime/engine/cluster.ts';
import type { ReconcileError } from '../../runtime/engine/contract.ts';
import { createMetrics } from '../../runtime/engine/metrics.ts';
import { type Next, Reporter } from '../../runtime/engine/reporter.ts';
import { type Cases, cases, test } from '../support/suite.ts';

type Row = [problems: readonly ReconcileError[], next: Next, requeueAfterMs?: number];

function problem(retryPolicy: ReconcileError['retryPolicy'], afterMs?: number): ReconcileError {
  return { code: 'Tried', message: 'a problem', retryPolicy, ...(afterMs === undefined ? {} : { afterMs }) };
}

const rows: Cases<Row> = [
  ['nothing', 'only a change brings it back', [], 'idle'],
  ['a time that the pass names', 'a grace period ends by itself', [], { afterMs: 500 }, 500],
  [
    'a failure',
    'the back-off decides, whatever else waits',
    [problem('waiting', 20), problem('retry')],
    'retry',
    10,
  ],
  ['waiting, with a time', '', [problem('waiting', 4000), problem('waiting', 3000)], { afterMs: 3000 }, 5000],
  ['waiting, without a time', '', [problem('waiting')], { afterMs: 30_000 }],
  ['refused for good', 'the same again would be refused again', [problem('terminal')], 'idle'],
  [
    'refused a moment ago, and not sent again',
    'what has changed since must not wait for the next resync',
    [problem('terminal', 7000)],
    { afterMs: 7000 },
  ],
];

cases<Row>(test, rows, (problems, next, requeueAfterMs) => {
  const unused = undefined as unknown as Cluster;
  const reporter = new Reporter({
    log: createLogger({ level: () => 'error', write: () => undefined }),
    metrics: createMetrics(),
    clusters: { hosted: unused, management: unused },
  });
  const key = { scope: 'local', name: 'a', namespace: 'web' };
  const result = requeueAfterMs === undefined ? {} : { requeueAfterMs };
  const author = { reconciler: 'test', key };
  assert.deepEqual(reporter.report({ author, result, committed: [], problems, seconds: 0 }), next);
});

test('no log line shows user info of a registry or a URL', () => {
  const text = 'held: "robot:canary@quay.io" stays; GET https://robot:canary@quay.io/v2/';
  for (const format of ['json', 'logfmt'] as const) {
    const lines: string[] = [];
    const fields = { message: text, key: 'robot:canary@quay.io', keys: ['robot:canary@quay.io'] };
    createLogger({ format, write: (line) => lines.push(line) }).info(text, fields);
    assert.match(lines.join(), /quay\.io/);
    assert.doesNotMatch(lines.join(), /canary/);
  }
});
